//! Builds a request from the arguments: reads a file, or converts flags to the same JSON form.

mod parse;
mod portfolio_file;

use std::path::Path;

use serde_json::{Map, Value, json};
use warptape_schemas::risk::{RiskMeasure, RiskProblem, RiskRequest};
use warptape_stages::risk::symbols_of;

use super::row_places::RowPlaces;
use super::rows::is_table;
use crate::bounded_file;
use crate::cli::{
    AskingArgs, FileArgs, ImpliedVolArgs, OptionFlags, PortfolioArgs, PriceArgs, RecordedFlags, RiskCommand,
    SimulationFlags,
};
use crate::usage_error::UsageError;

/// Days in a year.
const YEAR_DAYS: f64 = 365.0;
/// Samples of a simulation if no number is given.
const PATHS_DEFAULT: i64 = 1 << 20;
/// Greatest number of rules in a request.
const RULES_MAX: usize = 20_000;
const NS_PER_MS: i64 = 1_000_000;
/// Greatest length of a request's text, in bytes.
const REQUEST_BYTES_MAX: u64 = 256 << 20;

/// Reads the recorded bars that flags name, as JSON.
pub type ReadBars<'a> = &'a dyn Fn(&RecordedFlags) -> anyhow::Result<Value>;

/// Returns the request of a command, and the file rows that it was made of. `made_up_id` is the id of a request without
/// one.
pub fn request_of(
    command: &RiskCommand,
    now_ns: i64,
    made_up_id: &str,
    read_bars: ReadBars<'_>,
) -> anyhow::Result<(RiskRequest, RowPlaces)> {
    let mut rows = RowPlaces::default();
    let mut contracts = |file: &Path, has_greeks: bool| -> Result<_, UsageError> {
        let (problem, places) = portfolio_file::contracts(file, has_greeks)?;
        rows = places;
        Ok(of_problem(problem))
    };
    let mut request = match command {
        RiskCommand::Price(PriceArgs { file: Some(file), .. }) if is_table(file) => contracts(file, false)?,
        RiskCommand::Greeks(PriceArgs { file: Some(file), .. }) if is_table(file) => contracts(file, true)?,
        RiskCommand::Var(args) | RiskCommand::Stress(args) => {
            let (request, places) = portfolio(args)?;
            rows = places;
            request
        }
        RiskCommand::Price(PriceArgs { file: Some(file), .. })
        | RiskCommand::Greeks(PriceArgs { file: Some(file), .. })
        | RiskCommand::ImpliedVol(ImpliedVolArgs { file: Some(file), .. })
        | RiskCommand::Optimise(FileArgs { file, .. })
        | RiskCommand::Request(FileArgs { file, .. }) => read_object(file)?,
        RiskCommand::Price(args) | RiskCommand::Greeks(args) => of_problem(price_problem(args)?),
        RiskCommand::ImpliedVol(args) => of_problem(implied_problem(args)?),
        RiskCommand::Sweep(args) => match (&args.recorded, &args.file) {
            (Some(recorded), _) => of_problem(sweep_problem(recorded, read_bars)?),
            (None, Some(file)) => read_object(file)?,
            (None, None) => return Err(UsageError("give FILE, or --symbols".to_owned()).into()),
        },
        RiskCommand::Cancel(args) => cancelling(&args.cancels),
    };
    overlay(&mut request, command.asking(), now_ns, made_up_id);
    let mut request: RiskRequest = parse::request(request)?;
    check_kind(command, &request)?;
    match (command, &mut request.problem) {
        (RiskCommand::Greeks(_), RiskProblem::Simulation(problem)) => problem.greeks = true,
        (RiskCommand::Greeks(_), RiskProblem::Contracts(problem)) => problem.greeks = true,
        _ => {}
    }
    Ok((request, rows))
}

/// Returns the request of a JSON object, which has the form of a file.
pub fn of_object(mut request: Map<String, Value>, made_up_id: &str) -> Result<RiskRequest, UsageError> {
    request.entry("request_id").or_insert_with(|| json!(made_up_id));
    parse::request(request)
}

/// Returns the fields of a request that cancels another one, without its own id.
pub fn cancelling(request_id: &str) -> Map<String, Value> {
    let mut request = of_problem(json!({"type": "options", "assets": [], "options": []}));
    request.insert("cancels".to_owned(), json!(request_id));
    request
}

/// Returns the request of a file. Positions from a second file replace its own.
fn portfolio(args: &PortfolioArgs) -> Result<(Map<String, Value>, RowPlaces), UsageError> {
    let (mut request, mut rows) = (read_object(&args.file)?, RowPlaces::default());
    if let Some(file) = &args.positions {
        let (positions, places) = portfolio_file::positions(file, &request)?;
        rows = places;
        if let Some(Value::Object(problem)) = request.get_mut("problem") {
            problem.insert("positions".to_owned(), positions);
        }
    }
    Ok((request, rows))
}

fn of_problem(problem: Value) -> Map<String, Value> {
    Map::from_iter([("problem".to_owned(), problem)])
}

fn read_object(path: &Path) -> Result<Map<String, Value>, UsageError> {
    match read_json(path)? {
        Value::Object(object) => Ok(object),
        _ => Err(UsageError(format!("{}: a request is a JSON object; see docs/risk.md", path.display()))),
    }
}

/// Reads the JSON value in a file, or on standard input.
pub fn read_json(path: &Path) -> Result<Value, UsageError> {
    let text = match path == Path::new("-") {
        true => bounded_file::read_stdin(REQUEST_BYTES_MAX),
        false => bounded_file::read_text(path, REQUEST_BYTES_MAX),
    };
    let text = text.map_err(|error| UsageError(format!("{}: {error}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| {
        let may_be_rows = path.extension().is_none_or(|extension| extension != "json");
        let hint = match may_be_rows && !text.trim_start().starts_with(['{', '[']) {
            true => "; the file is not JSON: files with rows need names that end in .csv or .parquet",
            false => "",
        };
        UsageError(format!("{}: {error}{hint}", path.display()))
    })
}

/// Overrides fields of the request with the common flags.
fn overlay(request: &mut Map<String, Value>, asking: &AskingArgs, now_ns: i64, made_up_id: &str) {
    let deadline = asking.deadline_ms.map(|ms| json!(now_ns.saturating_add(ms.saturating_mul(NS_PER_MS))));
    let given = [
        ("request_id", asking.request_id.as_ref().map(|id| json!(id))),
        ("class", asking.class.as_ref().map(|class| json!(class))),
        ("tenant", asking.tenant.as_ref().map(|tenant| json!(tenant))),
        ("seed", asking.seed.map(|seed| json!(seed))),
        ("gang", asking.gang.then_some(json!(true))),
        ("deadline_ns", deadline),
    ];
    for (name, value) in given {
        if let Some(value) = value {
            request.insert(name.to_owned(), value);
        }
    }
    request.entry("request_id").or_insert_with(|| json!(made_up_id));
}

/// Refuses a request for another command.
fn check_kind(command: &RiskCommand, request: &RiskRequest) -> Result<(), UsageError> {
    let fitting = fitting_commands(&request.problem);
    let name = name_of(command);
    if fitting.contains(&name) || name == "request" || request.cancels.is_some() {
        return Ok(());
    }
    Err(UsageError(format!(
        "the request is {} and does not fit `risk {name}`: use `warptape risk {}`",
        kind_of(&request.problem),
        fitting.join("` or `warptape risk ")
    )))
}

fn name_of(command: &RiskCommand) -> &'static str {
    match command {
        RiskCommand::Price(_) => "price",
        RiskCommand::Greeks(_) => "greeks",
        RiskCommand::ImpliedVol(_) => "implied-vol",
        RiskCommand::Var(_) => "var",
        RiskCommand::Stress(_) => "stress",
        RiskCommand::Optimise(_) => "optimise",
        RiskCommand::Sweep(_) => "sweep",
        RiskCommand::Request(_) => "request",
        RiskCommand::Cancel(_) => "cancel",
    }
}

/// Returns the commands for a problem; `request` takes kinds that have no command of their own.
fn fitting_commands(problem: &RiskProblem) -> &'static [&'static str] {
    match problem {
        RiskProblem::Options(_) | RiskProblem::Simulation(_) | RiskProblem::Contracts(_) => {
            &["price", "greeks"]
        }
        RiskProblem::ImpliedVolatilities(_) => &["implied-vol"],
        RiskProblem::Portfolio(_) if is_stress(problem) => &["stress"],
        RiskProblem::Portfolio(_) => &["var"],
        RiskProblem::Optimisation(_) => &["optimise"],
        RiskProblem::Sweep(_) => &["sweep"],
        _ => &["request"],
    }
}

fn kind_of(problem: &RiskProblem) -> String {
    let name = problem.type_name();
    match problem {
        RiskProblem::Portfolio(_) if is_stress(problem) => format!("of type {name} with a stress"),
        RiskProblem::Portfolio(_) => format!("of type {name} with a value at risk"),
        _ => format!("of type {name}"),
    }
}

fn is_stress(problem: &RiskProblem) -> bool {
    matches!(problem, RiskProblem::Portfolio(portfolio) if matches!(portfolio.measure, RiskMeasure::Stress(_)))
}

/// Returns the first symbol that takes data from the market; `None` if there is none. The request goes to the partition
/// of this symbol's ticks.
pub fn market_symbol(problem: &RiskProblem) -> Option<&str> {
    symbols_of(problem).next()
}

// Flags --------------------------------------------------------------------------------------------------------------

fn price_problem(args: &PriceArgs) -> Result<Value, UsageError> {
    let PriceArgs { option, volatility, simulation, .. } = args;
    kind(option)?;
    let asset = asset(option, *volatility, true)?;
    let expiry_years = expiry_years(option)?;
    if !simulation.any() && expiry_years == 0.0 {
        let contract = json!({"type": "option", "asset": 0, "kind": kind(option)?, "strike": strike(option)?, "expiry_years": 0.0});
        return Ok(json!({"type": "contracts", "assets": [asset], "contracts": [{"contract": contract}]}));
    }
    if !simulation.any() {
        let options = [vanilla(option)?];
        return Ok(json!({"type": "options", "assets": [asset], "options": options}));
    }
    if simulation.is_of_boundary() {
        let contract = contract(option, simulation)?;
        return Ok(
            json!({"type": "simulation", "assets": [asset], "contract": contract, "expiry_years": expiry_years}),
        );
    }
    if simulation.antithetic && simulation.sampling.as_deref() == Some("sobol") {
        return Err(UsageError("give --antithetic or --sampling sobol, not both".to_owned()));
    }
    Ok(json!({
        "type": "simulation",
        "assets": [asset],
        "contract": contract(option, simulation)?,
        "expiry_years": expiry_years,
        "steps": steps(simulation)?,
        "precision": simulation.precision.as_deref().unwrap_or("f64"),
        "sampling": simulation.sampling.as_deref().unwrap_or("philox"),
        "antithetic": simulation.antithetic,
        "paths_max": simulation.paths.unwrap_or(PATHS_DEFAULT),
        "standard_error": simulation.standard_error,
    }))
}

fn implied_problem(args: &ImpliedVolArgs) -> Result<Value, UsageError> {
    kind(&args.option)?;
    let price = args.price.ok_or_else(|| missing("--price P, the price of the option"))?;
    Ok(json!({
        "type": "implied-volatilities",
        "assets": [asset(&args.option, None, false)?],
        "options": [vanilla(&args.option)?],
        "prices": [price],
    }))
}

/// Builds the asset. With a symbol, missing fields are taken from the market.
fn asset(option: &OptionFlags, volatility: Option<f64>, wants_volatility: bool) -> Result<Value, UsageError> {
    let of = |given: Option<f64>, flag: &str| match (given, &option.symbol) {
        (Some(number), _) => Ok(json!(number)),
        (None, Some(_)) => Ok(json!({"from": "market"})),
        (None, None) => Err(missing(&format!("{flag}, or --symbol VENUE:TICKER to take it from the market"))),
    };
    let mut asset = json!({
        "symbol": option.symbol.as_deref().unwrap_or("given"),
        "spot": of(option.spot, "--spot S")?,
        "rate": option.rate.unwrap_or(0.0),
        "dividend_yield": option.dividend_yield.unwrap_or(0.0),
    });
    if option.future {
        asset["kind"] = json!("future");
    }
    if wants_volatility {
        asset["volatility"] = of(volatility, "--volatility V")?;
    }
    Ok(asset)
}

fn vanilla(option: &OptionFlags) -> Result<Value, UsageError> {
    let (kind, strike) = (kind(option)?, strike(option)?);
    Ok(json!({"asset": 0, "kind": kind, "strike": strike, "expiry_years": expiry_years(option)?}))
}

fn contract(option: &OptionFlags, simulation: &SimulationFlags) -> Result<Value, UsageError> {
    let name = simulation.contract.as_deref().unwrap_or("european");
    let mut contract = json!({"type": name, "kind": kind(option)?});
    contract["strike"] = match option.strike {
        // A lookback option without a strike has a floating one.
        None if name == "lookback" => Value::Null,
        _ => json!(strike(option)?),
    };
    if name == "barrier" {
        let barrier_kind = simulation.barrier_kind.as_deref();
        contract["barrier_kind"] =
            json!(barrier_kind.ok_or_else(|| missing("--barrier-kind up-out, up-in, down-out or down-in"))?);
        contract["barrier"] = json!(simulation.barrier.ok_or_else(|| missing("--barrier B"))?);
    } else if simulation.barrier_kind.is_some() || simulation.barrier.is_some() {
        let message = format!("--barrier and --barrier-kind are for --contract barrier, not {name}");
        return Err(UsageError(message));
    }
    Ok(contract)
}

fn steps(simulation: &SimulationFlags) -> Result<i32, UsageError> {
    match (simulation.steps, simulation.contract.as_deref()) {
        (Some(steps), _) => Ok(steps),
        (None, Some("asian")) => Err(missing("--steps N, the number of fixings")),
        (None, Some("american")) => Err(missing(
            "--steps N, the number of exercise dates, or no simulation flags, for exercise at any time",
        )),
        (None, _) => Ok(1),
    }
}

fn kind(option: &OptionFlags) -> Result<&str, UsageError> {
    option.kind.as_deref().ok_or_else(|| missing("FILE, or an option by flags: --kind call or put"))
}

fn strike(option: &OptionFlags) -> Result<f64, UsageError> {
    option.strike.ok_or_else(|| missing("--strike K"))
}

fn expiry_years(option: &OptionFlags) -> Result<f64, UsageError> {
    option.expiry_days.map(|days| days / YEAR_DAYS).ok_or_else(|| missing("--expiry-days D"))
}

fn missing(what: &str) -> UsageError {
    UsageError(format!("give {what}"))
}

fn sweep_problem(recorded: &RecordedFlags, read_bars: ReadBars<'_>) -> anyhow::Result<Value> {
    let rules = match read_json(&recorded.rules)? {
        Value::Array(rules) => rules,
        _ => {
            let message = format!("{}: rules are a JSON array; see docs/risk.md", recorded.rules.display());
            return Err(UsageError(message).into());
        }
    };
    let count = rules.iter().map(combination_count).fold(0_usize, usize::saturating_add);
    if count > RULES_MAX {
        let message =
            format!("{}: {count} rules, but at most {RULES_MAX} are allowed", recorded.rules.display());
        return Err(UsageError(message).into());
    }
    let rules: Vec<Value> = rules.into_iter().flat_map(combinations).collect();
    let symbols = read_bars(recorded)?;
    Ok(json!({"type": "sweep", "symbols": symbols, "rules": rules, "cost": recorded.cost.unwrap_or(0.0)}))
}

fn combination_count(rule: &Value) -> usize {
    let lists = rule.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_array());
    lists.map(Vec::len).fold(1, usize::saturating_mul)
}

/// Returns a rule for each combination of the numbers in the rule's lists.
fn combinations(rule: Value) -> Vec<Value> {
    let Value::Object(fields) = rule else { return vec![rule] };
    let mut rules = vec![Map::new()];
    for (name, value) in fields {
        let values = match value {
            Value::Array(values) => values,
            one => vec![one],
        };
        let with = |rule: &Map<String, Value>| {
            let with_value = |value: &Value| {
                let mut rule = rule.clone();
                rule.insert(name.clone(), value.clone());
                rule
            };
            values.iter().map(with_value).collect::<Vec<_>>()
        };
        rules = rules.iter().flat_map(with).collect();
    }
    rules.into_iter().map(Value::Object).collect()
}

#[cfg(test)]
mod tests;
