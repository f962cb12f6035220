//! Converts rows of a CSV or Parquet file to contracts and positions, in the JSON form of a request.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::row_places::RowPlaces;
use super::super::rows::{FileRow, Rows};
use super::YEAR_DAYS;
use crate::usage_error::UsageError;

/// Columns of an instrument.
const INSTRUMENT: [&str; 8] =
    ["type", "symbol", "kind", "strike", "expiry_years", "expiry_days", "pays", "amount"];
/// Further columns of a contract, for the market of its asset.
const OF_CONTRACT: [&str; 7] =
    ["id", "spot", "volatility", "rate", "dividend_yield", "foreign_rate", "future"];
/// Placeholder for the volatility of an asset held without an option, on which no result depends.
const ANY_VOLATILITY: f64 = 1.0;
/// Further columns of a position.
const OF_POSITION: [&str; 4] = ["id", "name", "book", "quantity"];

/// Returns the problem that prices the contracts of a file, one a row. Missing fields of an asset with a symbol are
/// taken from the market.
pub fn contracts(path: &Path, has_greeks: bool) -> Result<(Value, RowPlaces), UsageError> {
    let rows = Rows::read(path, &[&INSTRUMENT[..], &OF_CONTRACT].concat())?;
    let (mut assets, mut contracts): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
    let (mut places, mut rows_of_assets) = (BTreeMap::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let asset = asset(&row)?;
        let place = *places.entry(asset.to_string()).or_insert_with(|| {
            assets.push(asset);
            rows_of_assets.push(number);
            assets.len() - 1
        });
        let id = row.text("id").unwrap_or_default();
        contracts.push(json!({"id": id, "contract": instrument(&row, place)?}));
    }
    let problem =
        json!({"type": "contracts", "assets": assets, "contracts": contracts, "greeks": has_greeks});
    Ok((problem, RowPlaces::of_contracts(rows, rows_of_assets)))
}

/// Returns the positions of a file, one a row. Rows name assets and books of the request; the default book is the
/// first.
pub fn positions(path: &Path, request: &Map<String, Value>) -> Result<(Value, RowPlaces), UsageError> {
    let named = |list: &str, field: &str| -> Vec<String> {
        let items = request.get("problem").and_then(|problem| problem[list].as_array());
        let name = |item: &Value| item[field].as_str().unwrap_or_default().to_owned();
        items.into_iter().flatten().map(name).collect()
    };
    let (assets, books) = (named("assets", "symbol"), named("books", "name"));
    let place = |row: &FileRow<'_>, column: &str, name: &str, of: &[String]| {
        let known = of.iter().position(|known| known == name);
        known.ok_or_else(|| {
            row.mistake(column, &format!("`{name}` is not in the request, which has: {}", of.join(", ")))
        })
    };
    let rows = Rows::read(path, &[&INSTRUMENT[..], &OF_POSITION].concat())?;
    let position = |(number, row): (usize, FileRow<'_>)| {
        let name =
            row.text("name").or_else(|| row.text("id")).unwrap_or_else(|| format!("row {}", number + 1));
        let book = match row.text("book") {
            Some(name) => place(&row, "book", &name, &books)?,
            None => 0,
        };
        let symbol = row.text("symbol").ok_or_else(|| missing(&row, "symbol"))?;
        let asset = place(&row, "symbol", &symbol, &assets)?;
        let quantity = row.number("quantity")?.ok_or_else(|| missing(&row, "quantity"))?;
        let instrument = instrument(&row, asset)?;
        Ok(json!({"name": name, "book": book, "quantity": quantity, "instrument": instrument}))
    };
    let positions: Result<Vec<Value>, UsageError> = rows.iter().enumerate().map(position).collect();
    Ok((Value::Array(positions?), RowPlaces::of_positions(rows)))
}

fn missing(row: &FileRow<'_>, column: &str) -> UsageError {
    row.mistake(column, "the cell is empty: fill it")
}

/// Returns the asset of a row.
fn asset(row: &FileRow<'_>) -> Result<Value, UsageError> {
    let symbol = row.text("symbol");
    let is_option = !matches!(kind_of(row).as_deref(), Some("spot" | "forward"));
    let of_market = |column: &str| -> Result<Value, UsageError> {
        match (row.number(column)?, &symbol) {
            (Some(number), _) => Ok(json!(number)),
            (None, Some(_)) => Ok(json!({"from": "market"})),
            (None, None) => Err(row.mistake(
                column,
                "the cell is empty: fill it, or give a symbol to take the value from \
                                         the market",
            )),
        }
    };
    let dividend_yield = match (row.number("dividend_yield")?, row.number("foreign_rate")?) {
        (Some(_), Some(_)) => {
            return Err(row.mistake(
                "foreign_rate",
                "it is the dividend yield of a currency: give only one of the two",
            ));
        }
        (given, foreign) => given.or(foreign).unwrap_or(0.0),
    };
    let kind = if row.flag("future")? { "future" } else { "spot" };
    Ok(json!({
        "symbol": symbol.clone().unwrap_or_else(|| "given".to_owned()),
        "spot": of_market("spot")?,
        "volatility": match row.number("volatility")? {
            None if !is_option => json!(ANY_VOLATILITY),
            _ => of_market("volatility")?,
        },
        "rate": row.number("rate")?.unwrap_or(0.0),
        "dividend_yield": dividend_yield,
        "kind": kind,
    }))
}

/// Returns the type of a row, in lower case.
fn kind_of(row: &FileRow<'_>) -> Option<String> {
    row.text("type").map(|kind| kind.to_ascii_lowercase())
}

/// Returns the instrument of a row; a row without a type has a European option.
fn instrument(row: &FileRow<'_>, asset: usize) -> Result<Value, UsageError> {
    let kind = match kind_of(row).as_deref() {
        None | Some("option" | "european") => "option",
        Some("american") => "american",
        Some("digital") => "digital",
        Some("forward") => "forward",
        Some("spot") => return Ok(json!({"type": "spot", "asset": asset})),
        Some(other) => {
            let message = format!("`{other}` is not one of european, american, digital, forward, spot");
            return Err(row.mistake("type", &message));
        }
    };
    let years = match (row.number("expiry_years")?, row.number("expiry_days")?) {
        (Some(_), Some(_)) => {
            return Err(row.mistake("expiry_days", "expiry_years is given as well: give only one of the two"));
        }
        (Some(years), None) => years,
        (None, Some(days)) => days / YEAR_DAYS,
        (None, None) => return Err(missing(row, "expiry_years")),
    };
    let strike = row.number("strike")?.ok_or_else(|| missing(row, "strike"))?;
    let mut instrument = json!({"type": kind, "asset": asset, "strike": strike, "expiry_years": years});
    if kind != "forward" {
        let right = row.text("kind").map(|right| right.to_ascii_lowercase());
        instrument["kind"] = match right.as_deref() {
            Some("call" | "c") => json!("call"),
            Some("put" | "p") => json!("put"),
            Some(other) => return Err(row.mistake("kind", &format!("`{other}` is neither call nor put"))),
            None => return Err(missing(row, "kind")),
        };
    }
    if kind == "digital" {
        instrument["pays"] = match row.text("pays").map(|pays| pays.to_ascii_lowercase()).as_deref() {
            None | Some("cash") => json!("cash"),
            Some("asset") => json!("asset"),
            Some(other) => return Err(row.mistake("pays", &format!("`{other}` is neither cash nor asset"))),
        };
        instrument["amount"] = json!(row.number("amount")?.unwrap_or(1.0));
    }
    Ok(instrument)
}
