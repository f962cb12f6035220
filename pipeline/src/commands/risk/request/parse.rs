//! Parses a request from JSON. Errors name the place of a mistake: `problem.positions[3].quantity`.
//!
//! Values with a `type` are read in two steps, because serde reports no place for mistakes in such values.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use warptape_schemas::risk::{
    Contract, HistoricalRisk, Instrument, MonteCarloRisk, ParametricRisk, RiskMeasure, RiskProblem,
    RiskRequest, Stress, TradingRule,
};

use crate::usage_error::UsageError;

/// Parses a request.
pub fn request(mut request: Map<String, Value>) -> Result<RiskRequest, UsageError> {
    // Editors read the file's JSON Schema from this key.
    request.remove("$schema");
    let given = request.get("problem").cloned();
    // A valid problem takes its place while the other fields are read.
    if given.is_some() {
        request.insert("problem".to_owned(), json!({"type": "options", "assets": [], "options": []}));
    }
    let mut request: RiskRequest = read("", Value::Object(request))?;
    if let Some(given) = given {
        request.problem = problem(given)?;
    }
    Ok(request)
}

fn problem(value: Value) -> Result<RiskProblem, UsageError> {
    let at = "problem";
    let (kind, fields) = tagged(at, value)?;
    check_parts(&fields)?;
    read_by(at, fields, |fields| RiskProblem::of_type(&kind, fields).transpose())?
        // serde's own error reports an unknown type.
        .map_or_else(|| read(at, json!({"type": kind})), Ok)
}

/// Reads the parts that have types of their own, to locate their mistakes.
fn check_parts(fields: &Value) -> Result<(), UsageError> {
    let part = |name: &str| fields.get(name).cloned();
    if let Some(contract) = part("contract") {
        read::<Contract>("problem.contract", contract)?;
    }
    if let Some(measure) = part("measure") {
        let at = "problem.measure";
        let (kind, fields) = tagged(at, measure.clone())?;
        match kind.as_str() {
            "historical" => drop(read::<HistoricalRisk>(at, fields)?),
            "monte-carlo" => drop(read::<MonteCarloRisk>(at, fields)?),
            "parametric" => drop(read::<ParametricRisk>(at, fields)?),
            "stress" => drop(read::<Stress>(at, fields)?),
            _ => drop(read::<RiskMeasure>(at, measure)?),
        }
    }
    for (number, rule) in part("rules").iter().flat_map(Value::as_array).flatten().enumerate() {
        read::<TradingRule>(&format!("problem.rules[{number}]"), rule.clone())?;
    }
    for (number, contract) in part("contracts").iter().flat_map(Value::as_array).flatten().enumerate() {
        if let Some(contract) = contract.get("contract") {
            let at = format!("problem.contracts[{number}].contract");
            read::<Instrument>(&at, contract.clone())?;
        }
    }
    for (number, position) in part("positions").iter().flat_map(Value::as_array).flatten().enumerate() {
        if let Some(instrument) = position.get("instrument") {
            let at = format!("problem.positions[{number}].instrument");
            read::<Instrument>(&at, instrument.clone())?;
        }
    }
    Ok(())
}

/// Returns the type of an object, and its other fields.
fn tagged(at: &str, value: Value) -> Result<(String, Value), UsageError> {
    let Value::Object(mut fields) = value else {
        return Err(mistake(at, "an object with a `type` is expected"));
    };
    match fields.remove("type") {
        Some(Value::String(kind)) => Ok((kind, Value::Object(fields))),
        Some(other) => Err(mistake(at, &format!("type: {other} is not a request type"))),
        None => Err(mistake(at, "missing field `type`")),
    }
}

fn read<T: DeserializeOwned>(at: &str, value: Value) -> Result<T, UsageError> {
    read_by(at, value, |value| T::deserialize(value))
}

/// Reads a value. An error names the place of the mistake.
fn read_by<T>(
    at: &str,
    value: Value,
    read: impl FnOnce(serde_path_to_error::Deserializer<'_, '_, Value>) -> Result<T, serde_json::Error>,
) -> Result<T, UsageError> {
    let mut track = serde_path_to_error::Track::new();
    let found = read(serde_path_to_error::Deserializer::new(value, &mut track));
    found.map_err(|error| {
        let path = match (at, track.path().to_string().as_str()) {
            (at, ".") => at.to_owned(),
            ("", path) => path.to_owned(),
            (at, path) => format!("{at}.{path}"),
        };
        mistake(&path, &error.to_string())
    })
}

fn mistake(at: &str, what: &str) -> UsageError {
    match at {
        "" => UsageError(format!("not a risk request: {what}")),
        at => UsageError(format!("not a risk request: {at}: {what}")),
    }
}
