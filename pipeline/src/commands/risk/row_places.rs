//! Renames errors about rows of a file: a result names their index in the request, but users need line and column.

use warptape_schemas::risk::{RiskOutcome, RiskResult};

use super::rows::Rows;

/// The file rows from which a request's contracts or positions were made.
#[derive(Default)]
pub struct RowPlaces(Option<Of>);

struct Of {
    rows: Rows,
    /// List in the request with an item for each row, such as `problem.contracts`.
    list: &'static str,
    /// The first row of each asset in the request; empty if the assets come from another file.
    assets: Vec<usize>,
}

impl RowPlaces {
    /// Keeps the rows of contracts, one each. `assets` has the first row of each asset.
    pub fn of_contracts(rows: Rows, assets: Vec<usize>) -> Self {
        Self(Some(Of { rows, list: "problem.contracts", assets }))
    }

    /// Keeps the rows of positions, one each.
    pub fn of_positions(rows: Rows) -> Self {
        Self(Some(Of { rows, list: "problem.positions", assets: Vec::new() }))
    }

    /// Renames all errors of a result to name line and column.
    pub fn name_errors(&self, result: &mut RiskResult) {
        let Some(of) = &self.0 else { return };
        let name_of = |text: &mut String, row: Option<usize>| {
            if let Some(named) = of.named(text, row) {
                *text = named;
            }
        };
        let name = |text: &mut String| name_of(text, None);
        match &mut result.outcome {
            RiskOutcome::Error(error) => name(&mut error.field),
            // A contract has its own row, even if it shares its asset with others.
            RiskOutcome::Options(found) => {
                let values = found.values.iter_mut().enumerate();
                values.for_each(|(row, value)| name_of(&mut value.error, Some(row)));
            }
            RiskOutcome::Portfolio(found) => {
                found.positions.iter_mut().for_each(|position| name(&mut position.error));
            }
            RiskOutcome::Stress(found) => found.bad_positions.iter_mut().for_each(|bad| name(&mut bad.error)),
            _ => {}
        }
    }
}

impl Of {
    /// Replaces the field of a row or an asset at the beginning of a text with its place in the file. Returns `None` if
    /// the text begins otherwise.
    fn named(&self, text: &str, row: Option<usize>) -> Option<String> {
        let (row, rest) = match item_of(text, self.list) {
            Some((row, rest)) => (row, rest),
            None => {
                let (asset, rest) = item_of(text, "problem.assets")?;
                let first = *self.assets.get(asset)?;
                (row.unwrap_or(first), rest)
            }
        };
        if row >= self.rows.len() {
            return None;
        }
        let (path, message) = rest.find(": ").map_or((rest, ""), |end| rest.split_at(end));
        let field = path.rsplit('.').next().unwrap_or_default();
        let column = match field {
            "asset" => "symbol",
            "expiry_years" if self.rows.has_cell(row, "expiry_days") => "expiry_days",
            "dividend_yield" if self.rows.has_cell(row, "foreign_rate") => "foreign_rate",
            same => same,
        };
        Some(self.rows.cell_place(row, column) + message)
    }
}

/// Splits `list[3].strike: why` into the index and the text after it.
fn item_of<'a>(text: &'a str, list: &str) -> Option<(usize, &'a str)> {
    let (place, rest) = text.strip_prefix(list)?.strip_prefix('[')?.split_once(']')?;
    Some((place.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_request_are_lines_and_columns_of_the_file() {
        let file = tempfile::Builder::new().suffix(".csv").tempfile().expect("a file");
        std::fs::write(file.path(), "id,symbol,strike,expiry_days,expiry_years\n\na,X:Y,1,30,\nb,X:Z,2,,1\n")
            .expect("written");
        let columns = ["id", "symbol", "strike", "expiry_days", "expiry_years"];
        let rows = || Rows::read(file.path(), &columns).unwrap_or_else(|error| panic!("{error}"));
        let path = file.path().display();
        let named = |places: RowPlaces, text: &str| places.0.expect("rows").named(text, None);
        let contracts = |text: &str| named(RowPlaces::of_contracts(rows(), vec![0, 1]), text);
        for (text, expected) in [
            ("problem.contracts[0].contract.strike: strike is -1", "line 3, column `strike`: strike is -1"),
            ("problem.contracts[0].contract.expiry_years: no", "line 3, column `expiry_days`: no"),
            ("problem.contracts[1].contract.expiry_years: no", "line 4, column `expiry_years`: no"),
            ("problem.contracts[1].id", "line 4, column `id`"),
            ("problem.assets[1].symbol: unknown", "line 4, column `symbol`: unknown"),
            ("problem.assets[1].spot: none", "line 4: none"),
        ] {
            assert_eq!(contracts(text), Some(format!("{path}: {expected}")), "{text}");
        }
        let positions = |text: &str| named(RowPlaces::of_positions(rows()), text);
        let expected = format!("{path}: line 4, column `symbol`: 7");
        assert_eq!(positions("problem.positions[1].instrument.asset: 7"), Some(expected));
        // The file has no rows for these texts.
        for text in ["problem.assets[1].spot: none", "problem.positions[2].quantity: no", "problem.seed", ""]
        {
            assert_eq!(positions(text), None, "{text}");
        }
    }
}
