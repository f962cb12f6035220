//! A result for people: its numbers in columns, and their origin below.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use warptape_replay::utc;
use warptape_schemas::risk::{
    BadPosition, ImpliedVolatilityResult, MarketAsOf, NamedContract, OptimisationResult, OptionResult,
    OptionValue, PortfolioResult, RiskErrorCode, RiskOutcome, RiskProblem, RiskRequest, RiskResult,
    SimulationResult, StressOutcome, StressResult, SweepResult, TradingRule, VanillaOption,
};

use super::exchange::Answer;
use crate::commands::columns::{Align, aligned};
use crate::commands::tail::show;

const NS_PER_MS: f64 = 1e6;
const NS_PER_S: f64 = 1e9;
/// A number that an answer does not have, such as vanna and volga of American options. In JSON it is null.
const NOT_AVAILABLE: &str = "–";

/// Returns the whole text of a result without an error.
pub fn of(request: &RiskRequest, answer: &Answer, wants_greeks: bool, url: &str) -> String {
    let mut text = match (&answer.result.outcome, &request.problem) {
        _ if answer.result.cancels.is_some() => {
            format!("{} is cancelled\n", answer.result.cancels.as_deref().unwrap_or_default())
        }
        (RiskOutcome::Options(result), RiskProblem::Options(problem)) => {
            let cells = problem.options.iter().map(option_cells).collect();
            options(result, columns(&["KIND"], &["STRIKE", "YEARS"]), cells, wants_greeks)
        }
        (RiskOutcome::Options(result), RiskProblem::Contracts(problem)) => {
            let cells = problem.contracts.iter().map(contract_cells).collect();
            options(result, columns(&["ID", "TYPE", "KIND"], &["STRIKE", "YEARS"]), cells, wants_greeks)
        }
        (RiskOutcome::Options(result), problem) => named_options(result, problem, wants_greeks),
        (RiskOutcome::ImpliedVolatilities(result), RiskProblem::ImpliedVolatilities(problem)) => {
            implied(result, &problem.options, &problem.prices)
        }
        (RiskOutcome::Simulation(result), _) => simulation(result),
        (RiskOutcome::Portfolio(result), _) => portfolio(result),
        (RiskOutcome::Stress(result), _) => stress(result),
        (RiskOutcome::Optimisation(result), RiskProblem::Optimisation(problem)) => {
            let symbols = problem.assets.iter().map(|asset| asset.symbol.as_str());
            optimisation(result, symbols)
        }
        (RiskOutcome::Sweep(result), RiskProblem::Sweep(problem)) => sweep(result, &problem.rules),
        (outcome, problem) => of_lists(outcome, problem),
    };
    text.push('\n');
    text += &origin(answer, url);
    text
}

/// Formats an answer that has no layout of its own: its lists as columns with their JSON names, and its other fields
/// below. If a list has a number for each asset, the assets are the first column.
fn of_lists(outcome: &RiskOutcome, problem: &RiskProblem) -> String {
    let outcome = serde_json::to_value(outcome).unwrap_or_default();
    let fields = || outcome.as_object().into_iter().flatten().filter(|(name, _)| *name != "type");
    let lists: Vec<(&String, &Vec<Value>)> =
        fields().filter_map(|(name, value)| Some((name, value.as_array()?))).collect();
    let rows = lists.iter().map(|(_, list)| list.len()).max().unwrap_or(0);
    let cell = |value: &Value| match value {
        Value::String(word) => word.clone(),
        Value::Number(number) => number.as_f64().map_or_else(String::new, float),
        Value::Null => NOT_AVAILABLE.to_owned(),
        other => other.to_string(),
    };
    let title = |name: &str| name.replace('_', " ").to_uppercase();
    let mut columns: Vec<(String, Align, Vec<String>)> = Vec::new();
    if problem.assets().len() == rows {
        let symbols = problem.assets().iter().map(|asset| asset.symbol.clone()).collect();
        columns.push(("ASSET".to_owned(), Align::Left, symbols));
    }
    for (name, list) in lists {
        // A list of records gets a column for each field.
        match list.first().and_then(Value::as_object) {
            None => columns.push((title(name), Align::Right, list.iter().map(cell).collect())),
            Some(record) => columns.extend(record.keys().map(|field| {
                (title(field), Align::Right, list.iter().map(|record| cell(&record[field])).collect())
            })),
        }
    }
    let header: Vec<_> = columns.iter().map(|(title, align, _)| (title.as_str(), *align)).collect();
    let row = |place: usize| -> Vec<String> {
        columns.iter().map(|(_, _, cells)| cells.get(place).cloned().unwrap_or_default()).collect()
    };
    let mut text = String::new();
    if rows > 0 {
        text += &aligned(&header, &(0..rows).map(row).collect::<Vec<_>>());
    }
    for (name, value) in fields().filter(|(_, value)| !value.is_array()) {
        writeln!(text, "{:<10} {}", name.replace('_', " "), cell(value)).expect(STRING);
    }
    text
}

/// Returns a number for a cell.
fn float(value: f64) -> String {
    if value.is_nan() { NOT_AVAILABLE.to_owned() } else { show::float(value) }
}

/// Returns a code's name in the schema.
pub fn code(code: RiskErrorCode) -> String {
    word(&code)
}

/// Returns an enum's name in JSON.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        other => unreachable!("an enum without fields is a string in JSON, not {other:?}"),
    }
}

/// Returns columns of words, followed by columns of numbers.
fn columns(words: &[&'static str], numbers: &[&'static str]) -> Vec<(&'static str, Align)> {
    let words = words.iter().map(|title| (*title, Align::Left));
    words.chain(numbers.iter().map(|title| (*title, Align::Right))).collect()
}

fn option_cells(option: &VanillaOption) -> Vec<String> {
    vec![word(&option.kind), float(option.strike), float(option.expiry_years)]
}

fn contract_cells(NamedContract { id, contract }: &NamedContract) -> Vec<String> {
    let said = serde_json::to_value(contract).unwrap_or_default();
    let text = |name: &str| said[name].as_str().unwrap_or_default().to_lowercase();
    let number = |name: &str| said[name].as_f64().map_or_else(String::new, float);
    vec![id.clone(), text("type"), text("kind"), number("strike"), number("expiry_years")]
}

/// Formats options of any kind; the columns are the problem's fields with their JSON names.
fn named_options(result: &OptionResult, problem: &RiskProblem, wants_greeks: bool) -> String {
    let problem = serde_json::to_value(problem).unwrap_or_default();
    let asked: Vec<&serde_json::Map<String, Value>> =
        problem["options"].as_array().into_iter().flatten().filter_map(Value::as_object).collect();
    let named = |is_of: fn(&Value) -> bool| -> Vec<&String> {
        let fields = asked.first().into_iter().flat_map(|option| option.iter());
        fields.filter(|(name, value)| *name != "asset" && is_of(value)).map(|(name, _)| name).collect()
    };
    let (words, numbers) = (named(Value::is_string), named(Value::is_number));
    let titles: Vec<String> =
        words.iter().chain(&numbers).map(|name| name.replace('_', " ").to_uppercase()).collect();
    let header = titles
        .iter()
        .enumerate()
        .map(|(place, title)| (title.as_str(), if place < words.len() { Align::Left } else { Align::Right }));
    let cell = |value: &Value| match value {
        Value::String(word) => word.clone(),
        other => other.as_f64().map_or_else(String::new, float),
    };
    let cells = |option: &&serde_json::Map<String, Value>| {
        words.iter().chain(&numbers).map(|name| option.get(*name).map_or_else(String::new, cell)).collect()
    };
    options(result, header.collect(), asked.iter().map(cells).collect(), wants_greeks)
}

/// Formats options; `cells` are the first columns of each.
fn options(
    result: &OptionResult,
    mut header: Vec<(&str, Align)>,
    cells: Vec<Vec<String>>,
    wants_greeks: bool,
) -> String {
    const GREEKS: [&str; 10] = [
        "DELTA",
        "GAMMA",
        "VEGA",
        "VEGA/POINT",
        "THETA",
        "THETA/DAY",
        "RHO",
        "FOREIGN RHO",
        "VANNA",
        "VOLGA",
    ];
    header.push(("PRICE", Align::Right));
    if wants_greeks {
        header.extend(columns(&[], &GREEKS));
    }
    let has_bad = result.values.iter().any(|value| !value.error.is_empty());
    if has_bad {
        header.push(("WHY NOT", Align::Left));
    }
    let row = |(value, mut cells): (&OptionValue, Vec<String>)| {
        cells.push(float(value.price));
        if wants_greeks {
            let greeks = [
                value.delta,
                value.gamma,
                value.vega,
                value.vega_per_point,
                value.theta,
                value.theta_per_day,
                value.rho,
                value.rho_foreign,
                value.vanna,
                value.volga,
            ];
            cells.extend(greeks.map(float));
        }
        if has_bad {
            cells.push(value.error.clone());
        }
        cells
    };
    aligned(&header, &result.values.iter().zip(cells).map(row).collect::<Vec<_>>())
}

fn implied(result: &ImpliedVolatilityResult, options: &[VanillaOption], prices: &[f64]) -> String {
    let mut header = columns(&["KIND"], &["STRIKE", "YEARS", "PRICE", "VOLATILITY"]);
    header.push(("WHY NOT", Align::Left));
    let rows: Vec<_> = result
        .volatilities
        .iter()
        .zip(options.iter().zip(prices))
        .map(|(implied, (option, price))| {
            let mut cells = option_cells(option);
            let volatility = implied.volatility.map_or_else(|| "none".to_owned(), float);
            cells.extend([float(*price), volatility, implied.error.clone()]);
            cells
        })
        .collect();
    aligned(&header, &rows)
}

fn simulation(result: &SimulationResult) -> String {
    let row = |name: &str, value: f64, error: f64| vec![name.to_owned(), float(value), float(error)];
    let mut rows = vec![row("price", result.price, result.standard_error)];
    rows.extend(result.greeks.iter().map(|greek| row(&greek.name, greek.value, greek.standard_error)));
    let mut text = aligned(&columns(&["NAME"], &["VALUE", "STANDARD ERROR"]), &rows);
    writeln!(text, "\nsamples    {}", result.paths).expect(STRING);
    if result.standard_error_met == Some(false) {
        writeln!(text, "missed     the standard error is greater than requested, or is not reliable")
            .expect(STRING);
    }
    text
}

fn portfolio(result: &PortfolioResult) -> String {
    let figure = |name: &str, value: f64| vec![name.to_owned(), float(value)];
    let mut text = aligned(
        &columns(&["PORTFOLIO"], &[""]),
        &[
            figure("value", result.value),
            figure("value at risk", result.value_at_risk),
            figure("expected shortfall", result.expected_shortfall),
            vec!["scenarios".to_owned(), result.scenarios.to_string()],
        ],
    );
    let errors = result.value_at_risk_error.zip(result.expected_shortfall_error);
    if let Some((of_value_at_risk, of_expected_shortfall)) = errors {
        let [first, second] = [of_value_at_risk, of_expected_shortfall].map(float);
        writeln!(text, "\nstandard errors {first} of the value at risk, {second} of the expected shortfall")
            .expect(STRING);
    }
    if let Some(horizon_years) = result.horizon_years {
        writeln!(text, "\nhorizon    {} years", float(horizon_years)).expect(STRING);
    }
    let books: Vec<_> = result
        .books
        .iter()
        .map(|book| {
            let numbers = [
                book.value,
                book.value_at_risk,
                book.expected_shortfall,
                book.component_value_at_risk,
                book.component_expected_shortfall,
            ];
            named(&book.name, &numbers)
        })
        .collect();
    text.push('\n');
    text += &aligned(&columns(&["BOOK"], &["VALUE", "VAR", "ES", "COMPONENT VAR", "COMPONENT ES"]), &books);
    let has_bad = result.positions.iter().any(|position| !position.error.is_empty());
    let positions: Vec<_> = result
        .positions
        .iter()
        .map(|position| {
            let numbers = [
                position.value,
                position.component_value_at_risk,
                position.component_expected_shortfall,
                position.marginal_value_at_risk,
            ];
            let mut cells = named(&position.name, &numbers);
            cells.extend(has_bad.then(|| position.error.clone()));
            cells
        })
        .collect();
    text.push('\n');
    let numbers = ["VALUE", "COMPONENT VAR", "COMPONENT ES", "MARGINAL VAR"];
    let mut header = columns(&["POSITION"], &numbers);
    header.extend(has_bad.then_some(("WHY NOT", Align::Left)));
    text += &aligned(&header, &positions);
    text
}

fn named(name: &str, numbers: &[f64]) -> Vec<String> {
    std::iter::once(name.to_owned()).chain(numbers.iter().copied().map(float)).collect()
}

fn stress(result: &StressResult) -> String {
    let mut header: Vec<(&str, Align)> = columns(&["SCENARIO"], &["PROFIT"]);
    header.extend(result.books.iter().map(|book| (book.as_str(), Align::Right)));
    let row = |outcome: &StressOutcome| {
        let numbers: Vec<f64> =
            std::iter::once(outcome.profit).chain(outcome.books.iter().copied()).collect();
        named(&outcome.name, &numbers)
    };
    let mut text = aligned(&header, &result.scenarios.iter().map(row).collect::<Vec<_>>());
    writeln!(text, "\nvalue      {}", float(result.value)).expect(STRING);
    for BadPosition { name, error, .. } in &result.bad_positions {
        writeln!(text, "left out   {name}: {error}").expect(STRING);
    }
    text
}

fn optimisation<'a>(result: &OptimisationResult, symbols: impl Iterator<Item = &'a str>) -> String {
    let rows: Vec<_> =
        symbols.zip(&result.weights).map(|(symbol, weight)| named(symbol, &[*weight])).collect();
    let mut text = aligned(&columns(&["ASSET"], &["WEIGHT"]), &rows);
    writeln!(text, "\nreturn     {} a year", float(result.expected_return)).expect(STRING);
    writeln!(text, "volatility {} per square root of a year", float(result.volatility)).expect(STRING);
    text
}

fn sweep(result: &SweepResult, rules: &[TradingRule]) -> String {
    let rows: Vec<_> = result
        .cells
        .iter()
        .zip(rules)
        .map(|(cell, rule)| {
            let mut cells = named(&rule_text(rule), &[cell.profit, cell.drawdown, cell.sharpe]);
            cells.push(cell.trades.to_string());
            cells
        })
        .collect();
    aligned(&columns(&["RULE"], &["PROFIT", "DRAWDOWN", "SHARPE", "TRADES"]), &rows)
}

/// Formats a rule: `ema-cross fast=5 slow=20`.
fn rule_text(rule: &TradingRule) -> String {
    let value = serde_json::to_value(rule).unwrap_or_default();
    let name = value["type"].as_str().unwrap_or_default().to_owned();
    let fields = value.as_object().into_iter().flatten().filter(|(field, _)| *field != "type");
    fields.fold(name, |text, (field, value)| format!("{text} {field}={value}"))
}

const STRING: &str = "a string takes any text";

/// Describes the origin of the numbers: data, time, place, and the decision that scheduled them.
fn origin(answer: &Answer, url: &str) -> String {
    let result = &answer.result;
    let mut text = String::new();
    for taken in &result.as_of {
        writeln!(text, "as of      {}", as_of(taken)).expect(STRING);
    }
    writeln!(text, "seed       {}", result.seed).expect(STRING);
    writeln!(text, "time       {}", times(result)).expect(STRING);
    if !result.devices.is_empty() {
        writeln!(text, "devices    {}", result.devices.join(", ")).expect(STRING);
    }
    let (topic, partition) = (&answer.place.topic, answer.place.partition);
    writeln!(text, "request    {}, {partition}:{} of {}", result.request_id, result.offset, result.topic)
        .expect(STRING);
    writeln!(text, "result     {partition}:{} of {topic}, by {}", answer.offset, result.node).expect(STRING);
    if result.decision_sequence >= 0 {
        let sequence = result.decision_sequence;
        writeln!(
            text,
            "decision   sequence {sequence}: warptape tail journal --from-beginning --exit-at-end -o json --log {url} | \
             grep '\"sequence\":{sequence},'"
        )
        .expect(STRING);
    }
    text
}

fn as_of(taken: &MarketAsOf) -> String {
    let mut text = taken.symbol.clone();
    if let Some(spot) = taken.spot {
        write!(text, ", spot {}", float(spot)).expect(STRING);
    }
    if let Some(volatility) = taken.volatility {
        write!(text, ", volatility {}", float(volatility)).expect(STRING);
    }
    if let Some(time_ns) = taken.time_ns {
        write!(text, " of {}", utc(time_ns)).expect(STRING);
    }
    if taken.returns > 0 {
        let seconds = taken.window_ns as f64 / NS_PER_S;
        write!(text, ", of {} returns over {} s", taken.returns, float(seconds)).expect(STRING);
    }
    write!(text, ", after the ticks before {}:{}", taken.partition, taken.next_offset).expect(STRING);
    text
}

fn times(result: &RiskResult) -> String {
    let ms = |from: i64, to: i64| to.saturating_sub(from).max(0) as f64 / NS_PER_MS;
    let total = ms(result.received_ns, result.finished_ns);
    if result.started_ns == 0 {
        return format!("answered after {total:.3} ms");
    }
    format!(
        "queued {:.3} ms, computed {:.3} ms on all lanes together, answered after {total:.3} ms",
        ms(result.received_ns, result.started_ns),
        result.compute_ns as f64 / NS_PER_MS,
    )
}

#[cfg(test)]
mod tests;
