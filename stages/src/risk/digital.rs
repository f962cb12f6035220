//! European digital options in closed form. A unit is an option.

use std::ops::Range;

use warptape_events::risk::{Asset, DigitalOptions, RiskError};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::pricing::{Digitals, Greeks};

use super::assets::Resolved;
use super::options::{OPTIONS_MAX, ReadOptions, asset_of, of_option};
use super::rounds::{DeviceRisk, Next, Partial, Plan, ProblemKind, Round, places};
use super::{check_count, cost};

impl ProblemKind for DigitalOptions {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn has_rows(&self) -> bool {
        true
    }

    fn plan(&self, assets: &Resolved, _: i64) -> Result<Plan, RiskError> {
        check_count("problem.options", self.options.len(), 1..=OPTIONS_MAX)?;
        let rows = ReadOptions::new(&self.options, |digitals: &mut Digitals, option, field| {
            let (asset, terms) = asset_of(assets, option.asset, option.expiry_years, || field("asset"))?;
            let pushed = digitals.push(
                option.kind,
                asset,
                option.strike,
                option.expiry_years,
                (option.pays, option.amount),
            );
            pushed.map_err(|error| of_option(error, field, option.asset))?;
            Ok(terms)
        })?;
        let count = rows.options.len();
        let (bytes, cost_ns) = (rows.bytes(count), cost::options(count));
        Ok(Plan { first: Box::new(DigitalRound { rows }), bytes, cost_ns })
    }
}

#[derive(Debug)]
struct DigitalRound {
    rows: ReadOptions<Digitals>,
}

impl Round for DigitalRound {
    fn units(&self) -> i64 {
        self.rows.options.len() as i64
    }

    fn rate_key(&self) -> String {
        "digital-options".to_owned()
    }

    fn unit_width(&self) -> usize {
        1
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let mut greeks = Box::<Greeks>::default();
        self.rows.options.greeks(isa, places(units), &mut greeks);
        Partial::Greeks(greeks)
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let mut greeks = Box::<Greeks>::default();
        self.rows.options.greeks_on_device(&mut memory.pricing, device, places(units), &mut greeks)?;
        Ok(Partial::Greeks(greeks))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        Next::Outcome(self.rows.outcome(partials))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use warptape_emulator::Emulator;
    use warptape_events::risk::RiskOutcome;
    use warptape_kernels::pricing::PRICE_DIGITALS;

    use super::super::tests::{asset, check_cuts, task};
    use super::*;

    fn problem(options: &[Value]) -> Value {
        json!({"type": "digital-options", "assets": [asset()], "options": options})
    }

    fn option(kind: &str, pays: &str, strike: f64) -> Value {
        json!({"asset": 0, "kind": kind, "pays": pays, "strike": strike, "expiry_years": 0.5, "amount": 10.0})
    }

    #[test]
    fn neither_cuts_nor_devices_show() {
        let option = |number: i32| {
            let kind = if number % 2 == 0 { "call" } else { "put" };
            option(kind, if number % 4 < 2 { "cash" } else { "asset" }, f64::from(60 + number))
        };
        let options: Vec<Value> = (0..90).map(option).collect();
        check_cuts(&Emulator::of(&[PRICE_DIGITALS]), &problem(&options));
    }

    /// Prices against numbers of 50 digits for a spot of 100, a volatility of 0.2, a rate of 0.03 and a yield of 0.01.
    /// A bad row stands between them.
    #[test]
    fn options_are_priced_as_they_are_asked() {
        let options =
            [option("call", "cash", 100.0), option("put", "asset", 0.0), option("put", "asset", 100.0)];
        let task = task(problem(&options)).expect("two of them are good");
        assert_eq!((task.rate_key().as_str(), task.unit_cost(), task.cost_ns()), ("digital-options", 1, 500));
        let RiskOutcome::Options(found) = task.outcome(Isa::detect()) else { panic!("prices") };
        let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-14;
        assert!(close(found.values[0].price, CALL_OF_CASH), "{found:?}");
        assert!(found.values[1].error.starts_with("problem.options[1].strike: strike is 0"), "{found:?}");
        assert!(close(found.values[2].price, PUT_OF_ASSET), "{found:?}");
    }

    const CALL_OF_CASH: f64 = 4.925_559_698_015_313;
    const PUT_OF_ASSET: f64 = 441.555_237_154_045_13;

    #[test]
    fn mistakes_are_named() {
        let field = |option: Value| task(problem(&[option])).expect_err("a mistake").field;
        let changed = |name: &str, number: f64| {
            let mut option = option("call", "cash", 100.0);
            option[name] = json!(number);
            option
        };
        assert_eq!(field(changed("amount", -1.0)), "problem.options[0].amount");
        assert_eq!(field(changed("expiry_years", 61.0)), "problem.options[0].expiry_years");
        assert_eq!(task(problem(&[])).expect_err("none").field, "problem.options");
    }
}
