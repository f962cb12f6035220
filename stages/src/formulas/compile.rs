//! Configurations to programs, and the mistakes in them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use warptape_kernels::ParameterMistake;

use super::function::{Constant, Function, Registered, registered};
use super::parse::{Binary, Expression, Mistake, Unary, parse};
use super::program::{Alert, Call, Program, Step};
use super::{FORMULAS_MAX, builtin, inputs, is_name};
use crate::StageConfig;

/// Most numbers of state of a symbol under one specification of bars: 64 KiB.
const STATE_LEN_MAX: usize = 8_192;

/// The formula or alert whose steps are made.
struct Owner<'a> {
    name: &'a str,
    /// The registered functions of the configuration. Other names mean functions that every program has, whatever a
    /// program has registered since.
    functions: &'a BTreeMap<String, u32>,
    /// Its number of state that is 1 after a panic; `None` if it calls no registered function.
    failed: Option<usize>,
}

impl Owner<'_> {
    fn function(&self, name: &str) -> Option<Registered> {
        match self.functions.contains_key(name) {
            true => registered(name),
            false => builtin::find(name).map(|function| function as Registered),
        }
    }

    fn is_crossing(&self, function: &str) -> bool {
        ["crosses_above", "crosses_below"].contains(&function) && !self.functions.contains_key(function)
    }
}

impl Program {
    /// The program of a configuration that was [checked](StageConfig::check).
    pub(crate) fn of(config: &StageConfig) -> Self {
        Self::compile(config)
            .unwrap_or_else(|mistakes| unreachable!("the configuration was checked: {mistakes:?}"))
    }

    /// All mistakes of the formulas and alerts of a configuration, recorded ones as well.
    pub(crate) fn check(config: &StageConfig) -> Vec<ParameterMistake> {
        let mut mistakes = Vec::new();
        for (field, texts) in [("formulas", &config.formulas), ("alerts", &config.alerts)] {
            if texts.len() > FORMULAS_MAX {
                let allowed = format!("at most {FORMULAS_MAX} are allowed");
                mistakes.push(ParameterMistake::new(field, texts.len(), allowed));
            }
        }
        for (name, version) in &config.functions {
            let wrong = match registered(name).map(Function::version) {
                Some(found) if found == *version => continue,
                Some(found) => {
                    format!("this program has version {found}: run the program that has version {version}")
                }
                None => "this program does not register it: run the program that does".to_owned(),
            };
            mistakes.push(ParameterMistake::new("functions", format!("{name} version {version}"), wrong));
        }
        if mistakes.is_empty()
            && let Err(found) = Self::compile(config)
        {
            mistakes.extend(found);
        }
        mistakes
    }

    /// Names of formulas and alerts that mean something else already. Recorded ones are allowed: bars may have got numbers
    /// of these names since.
    pub(crate) fn check_names(config: &StageConfig) -> Vec<ParameterMistake> {
        let mut mistakes = Vec::new();
        for (field, name, text) in named(config) {
            let wrong = if !is_name(name) {
                "a name has up to 64 lower case letters, digits and _, a letter first; and, or, not are no names"
            } else if inputs::place(name).is_some() {
                "a number of bars or an indicator has this name: choose another one"
            } else if builtin::find(name).is_some() || registered(name).is_some() {
                "a function has this name: choose another one"
            } else if field == "alerts" && config.formulas.contains_key(name) {
                "a formula has this name: choose another one"
            } else {
                continue;
            };
            mistakes.push(ParameterMistake::new(format!("{field}[{name}]"), text, wrong));
        }
        mistakes
    }

    /// Formulas and alerts that read an indicator which is off, and so never have a value.
    pub(crate) fn check_inputs(config: &StageConfig) -> Vec<ParameterMistake> {
        let mut mistakes = Vec::new();
        for (field, name, text) in named(config) {
            let Ok(tree) = parse(text) else { continue };
            tree.visit_names(&mut |read| {
                if !config.formulas.contains_key(read) && inputs::is_off(read, &config.indicators) {
                    let words = format!("{read} is off: give it a number of bars in stages.indicators");
                    mistakes.push(ParameterMistake::new(format!("{field}[{name}]"), text, words));
                }
            });
        }
        mistakes
    }

    fn compile(config: &StageConfig) -> Result<Self, Vec<ParameterMistake>> {
        let mut mistakes = Vec::new();
        let [mut formulas, mut alerts] = [BTreeMap::new(), BTreeMap::new()];
        for (field, name, text) in named(config) {
            let trees = if field == "formulas" { &mut formulas } else { &mut alerts };
            match parse(text) {
                Ok(tree) => drop(trees.insert(name, tree)),
                Err(mistake) => mistakes.push(said(field, name, text, &mistake)),
            }
        }
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let mut program = Self::default();
        for name in in_order(&formulas)? {
            match program.formula_of(name, &formulas[name], config) {
                Ok(step) => program.formulas.push((name.to_owned(), step)),
                Err(mistake) => mistakes.push(said("formulas", name, &config.formulas[name], &mistake)),
            }
        }
        for (name, tree) in &alerts {
            match program.alert_of(name, tree, config) {
                Ok(alert) => program.alerts.push(alert),
                Err(mistake) => mistakes.push(said("alerts", name, &config.alerts[*name], &mistake)),
            }
        }
        if program.state_len > STATE_LEN_MAX {
            let found = program.state_len;
            let words =
                format!("all of them keep {found} numbers, and {STATE_LEN_MAX} are allowed: use fewer bars");
            mistakes.push(ParameterMistake::new("formulas", found, words));
        }
        if mistakes.is_empty() { Ok(program) } else { Err(mistakes) }
    }

    /// The step with a formula's value: null once one of its own functions panicked.
    fn formula_of(&mut self, name: &str, tree: &Expression, config: &StageConfig) -> Result<usize, Mistake> {
        let mut owner = Owner { name, functions: &config.functions, failed: None };
        let step = self.step_of(tree, &mut owner)?;
        Ok(self.unless(owner.failed, step))
    }

    fn unless(&mut self, failed: Option<usize>, step: usize) -> usize {
        failed.map_or(step, |failed| self.push(Step::Unless(failed, step)))
    }

    fn alert_of(&mut self, name: &str, tree: &Expression, config: &StageConfig) -> Result<Alert, Mistake> {
        let mut owner = Owner { name, functions: &config.functions, failed: None };
        let step = self.step_of(tree, &mut owner)?;
        let (sides, is_crossing) = match (tree, &self.steps[step]) {
            (Expression::Binary { .. }, Step::Binary(operator, sides)) if is_comparison(*operator) => {
                (Some(*sides), false)
            }
            (Expression::Call { name, .. }, Step::Call(call)) if owner.is_crossing(name) => {
                (Some([call.series[0], call.series[1]]), true)
            }
            _ => (None, false),
        };
        let condition = self.unless(owner.failed, step);
        Ok(Alert { name: name.to_owned(), condition, sides, is_crossing, state: self.keep(1).start })
    }

    /// Reserves numbers of state.
    fn keep(&mut self, numbers: usize) -> Range<usize> {
        let start = self.state_len;
        self.state_len = start.saturating_add(numbers);
        start..self.state_len
    }

    fn push(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// The step that computes an expression of this formula or alert.
    fn step_of(&mut self, tree: &Expression, owner: &mut Owner<'_>) -> Result<usize, Mistake> {
        let step = match tree {
            Expression::Number(number) => Step::Number(*number),
            Expression::Name { name, at } => {
                if let Some((_, step)) = self.formulas.iter().find(|(other, _)| other == name) {
                    return Ok(*step);
                }
                Step::Input(inputs::place(name).ok_or_else(|| unknown_name(name, *at, &self.formulas))?)
            }
            Expression::Unary { operator, of } => Step::Unary(*operator, self.step_of(of, owner)?),
            Expression::Binary { operator, of } => {
                Step::Binary(*operator, [self.step_of(&of[0], owner)?, self.step_of(&of[1], owner)?])
            }
            Expression::Call { name, at, arguments } => self.call_of(name, *at, arguments, owner)?,
        };
        Ok(self.push(step))
    }

    fn call_of(
        &mut self,
        name: &str,
        at: usize,
        arguments: &[Expression],
        owner: &mut Owner<'_>,
    ) -> Result<Step, Mistake> {
        let function = owner.function(name).ok_or_else(|| {
            let similar = similar(name, builtin::BUILTIN.iter().map(|function| function.name()));
            let words = "docs/formulas.md lists all, and a program of yours may register more";
            Mistake::new(at, format!("no function {name}{similar}; {words}"))
        })?;
        let takes = (function.series(), function.constants());
        if arguments.len() != takes.0 + takes.1.len() {
            return Err(Mistake::new(at, format!("{} is needed", signature(function))));
        }
        let (series, constants) = arguments.split_at(takes.0);
        let constants = constants
            .iter()
            .zip(takes.1)
            .map(|(given, constant)| constant_of(given, constant, at, name))
            .collect::<Result<Vec<_>, _>>()?;
        let series = series.iter().map(|one| self.step_of(one, owner)).collect::<Result<Vec<_>, _>>()?;
        let is_own = owner.functions.contains_key(name);
        let failed = is_own.then(|| {
            let failed = *owner.failed.get_or_insert_with(|| self.keep(1).start);
            (failed, owner.name.to_owned())
        });
        let state = self.keep(function.state_len(&constants));
        Ok(Step::Call(Call { function, series, constants, state, failed }))
    }
}

fn is_comparison(operator: Binary) -> bool {
    use Binary::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Unequal};
    matches!(operator, Equal | Greater | GreaterOrEqual | Less | LessOrEqual | Unequal)
}

/// All formulas and alerts: field, name and text.
fn named(config: &StageConfig) -> impl Iterator<Item = (&'static str, &str, &str)> {
    let texts = [("formulas", &config.formulas), ("alerts", &config.alerts)];
    texts.into_iter().flat_map(|(field, texts)| {
        texts.iter().map(move |(name, text)| (field, name.as_str(), text.as_str()))
    })
}

/// The most similar name as a question; empty if none is similar.
fn similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let likeness = |other: &&str| (strsim::normalized_damerau_levenshtein(name, other) * 1_000.0) as u32;
    let nearest = names.max_by_key(likeness).filter(|other| likeness(other) >= 500);
    nearest.map_or_else(String::new, |other| format!(" (did you mean {other}?)"))
}

/// A call of the function, such as `zscore(x, bars)`.
pub fn signature(function: Registered) -> String {
    let series =
        ["x", "y", "z"].into_iter().map(str::to_owned).chain((4..).map(|number| format!("x{number}")));
    let constants = function.constants().iter().map(|constant| constant.name.to_owned());
    let arguments: Vec<String> = series.take(function.series()).chain(constants).collect();
    format!("{}({})", function.name(), arguments.join(", "))
}

fn constant_of(given: &Expression, constant: &Constant, at: usize, function: &str) -> Result<f64, Mistake> {
    let Constant { name, min, max, is_whole } = *constant;
    let number = match given {
        Expression::Number(number) => Some(*number),
        Expression::Unary { operator: Unary::Minus, of } => match **of {
            Expression::Number(number) => Some(-number),
            _ => None,
        },
        _ => None,
    };
    let kind = if is_whole { "a whole number" } else { "a number" };
    number
        .filter(|number| (min..=max).contains(number) && (!is_whole || number.fract() == 0.0))
        .ok_or_else(|| Mistake::new(at, format!("{name} of {function} is {kind} from {min} to {max}")))
}

fn unknown_name(name: &str, at: usize, formulas: &[(String, usize)]) -> Mistake {
    let names: Vec<&str> = formulas
        .iter()
        .map(|(name, _)| name.as_str())
        .chain(inputs::names().map(|name| -> &str { name }))
        .collect();
    let similar = similar(name, names.iter().copied());
    Mistake::new(
        at,
        format!("no name {name}{similar}; formulas read other formulas and {}", names.join(", ")),
    )
}

fn said(field: &str, name: &str, text: &str, mistake: &Mistake) -> ParameterMistake {
    let column = text[..mistake.at].chars().count() + 1;
    ParameterMistake::new(format!("{field}[{name}]"), text, format!("column {column}: {}", mistake.words))
}

/// Names of the formulas, each behind those that it reads; by name where that leaves a choice.
fn in_order<'a>(trees: &BTreeMap<&'a str, Expression>) -> Result<Vec<&'a str>, Vec<ParameterMistake>> {
    if let Some(name) = trees.keys().find(|name| reads(trees, name).contains(**name)) {
        let words = "it reads itself, perhaps by others: a formula cannot depend on its own value";
        return Err(vec![ParameterMistake::new(format!("formulas[{name}]"), name, words)]);
    }
    let mut order: Vec<&str> = Vec::new();
    while order.len() < trees.len() {
        let is_next = |name: &&&str| {
            let waits = |read: &String| trees.contains_key(read.as_str()) && !order.contains(&read.as_str());
            !order.contains(*name) && !reads(trees, name).iter().any(waits)
        };
        let next: Vec<&str> = trees.keys().filter(is_next).copied().collect();
        order.extend(next);
    }
    Ok(order)
}

/// Names that a formula reads, itself or by other formulas.
fn reads(trees: &BTreeMap<&str, Expression>, name: &str) -> BTreeSet<String> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(next) = waiting.pop() {
        if let Some(tree) = trees.get(next.as_str()) {
            tree.visit_names(&mut |read| {
                if seen.insert(read.to_owned()) {
                    waiting.push(read.to_owned());
                }
            });
        }
    }
    seen
}
