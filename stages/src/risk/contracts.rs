//! Contracts of several kinds in one request, each priced by its formula. A unit is a contract.

use std::ops::Range;

use warptape_events::risk::{
    Asset, Contracts, NamedContract, OptionResult, OptionValue, RiskError, RiskOutcome,
};
use warptape_kernels::Isa;
use warptape_kernels::device::{Device, DeviceError};
use warptape_kernels::math::exp;
use warptape_kernels::portfolio;
use warptape_kernels::pricing::{
    AmericanError, AmericanOption, AmericanValue, AssetMarket, DigitalPayout, Digitals, Greeks, Options,
};

use super::assets::Resolved;
use super::bad_rows::BadRows;
use super::options::{OPTIONS_MAX, Terms, asset_of, value, value_of, without_value};
use super::portfolio::{instrument_of, judged};
use super::rounds::{DeviceRisk, Next, Partial, Plan, ProblemKind, Round, places};
use super::{check_count, check_length, cost};

/// Bytes of a contract and its values.
const CONTRACT_BYTES: usize = 256;
/// Greatest size of an id, in bytes.
const ID_BYTES_MAX: usize = 64;
/// Number of contracts in closed form that cost as much as an American option.
const AMERICAN_COST: usize = 1_000;

impl ProblemKind for Contracts {
    fn assets(&self) -> &[Asset] {
        &self.assets
    }

    fn has_rows(&self) -> bool {
        true
    }

    fn plan(&self, assets: &Resolved, _: i64) -> Result<Plan, RiskError> {
        check_count("problem.contracts", self.contracts.len(), 1..=OPTIONS_MAX)?;
        for (number, NamedContract { id, .. }) in self.contracts.iter().enumerate() {
            check_length(&format!("problem.contracts[{number}].id"), id, 0..=ID_BYTES_MAX)?;
        }
        let read = |(number, contract): (usize, &NamedContract)| {
            let field = |name: &str| format!("problem.contracts[{number}].contract.{name}");
            let (asset, instrument) = instrument_of(&contract.contract);
            let (market, terms) = asset_of(assets, asset, years_of(&instrument), || field("asset"))?;
            judged(&instrument, (market, terms.is_future), asset, &field)?;
            Ok(Priced { market: *market, instrument, terms })
        };
        let (contracts, bad) = BadRows::divide(self.contracts.iter().enumerate().map(read))?;
        let americans = contracts.iter().filter(|priced| priced.american().is_some()).count();
        let texts: usize = self.contracts.iter().map(|contract| contract.id.len()).sum();
        let bytes = self.contracts.len() * CONTRACT_BYTES + texts + bad.bytes();
        let cost_ns = cost::contracts(contracts.len() - americans, americans);
        let ids = self.contracts.iter().map(|contract| contract.id.clone()).collect();
        let unit_cost = (1 + AMERICAN_COST * americans / contracts.len()) as i64;
        let first = Box::new(ContractRound { contracts, ids, bad, has_greeks: self.greeks, unit_cost });
        Ok(Plan { first, bytes, cost_ns })
    }
}

fn years_of(instrument: &portfolio::Instrument) -> f64 {
    match *instrument {
        portfolio::Instrument::Spot => 0.0,
        portfolio::Instrument::Forward { expiry_years, .. }
        | portfolio::Instrument::Option { expiry_years, .. }
        | portfolio::Instrument::American { expiry_years, .. }
        | portfolio::Instrument::Digital { expiry_years, .. } => expiry_years,
    }
}

/// A contract with its asset's market.
#[derive(Debug)]
struct Priced {
    market: AssetMarket,
    instrument: portfolio::Instrument,
    terms: Terms,
}

#[derive(Debug)]
struct ContractRound {
    contracts: Vec<Priced>,
    /// Ids, by contract of the request.
    ids: Vec<String>,
    bad: BadRows,
    /// True if Greeks of American options are wanted.
    has_greeks: bool,
    unit_cost: i64,
}

impl Round for ContractRound {
    fn units(&self) -> i64 {
        self.contracts.len() as i64
    }

    fn rate_key(&self) -> String {
        if self.has_greeks { "contracts/greeks".to_owned() } else { "contracts".to_owned() }
    }

    fn unit_cost(&self) -> i64 {
        self.unit_cost
    }

    fn run(&self, isa: Isa, units: Range<i64>) -> Partial {
        let priced = self.contracts[places(units)].iter().map(|priced| match priced.american() {
            Some(option) => priced.told(option.value(isa, self.has_greeks)),
            None => priced.value(isa),
        });
        Partial::Values(priced.collect())
    }

    fn run_on_device(
        &self,
        memory: &mut DeviceRisk,
        device: &mut dyn Device,
        units: Range<i64>,
    ) -> Result<Partial, DeviceError> {
        let mut values = Vec::with_capacity(self.contracts.len());
        for priced in &self.contracts[places(units)] {
            values.push(match priced.american() {
                Some(option) => {
                    priced.told(option.value_on_device(device, &mut memory.work, self.has_greeks)?)
                }
                None => priced.value(Isa::detect()),
            });
        }
        Ok(Partial::Values(values))
    }

    fn finish(&self, partials: &[&Partial]) -> Next {
        let mut found = Vec::with_capacity(self.contracts.len());
        for partial in partials {
            if let Partial::Values(values) = partial {
                found.extend_from_slice(values);
            }
        }
        let mut values = self.bad.between(found, |_, error| without_value(error));
        values.iter_mut().zip(&self.ids).for_each(|(value, id)| value.id.clone_from(id));
        Next::Outcome(RiskOutcome::Options(OptionResult { values }))
    }
}

impl Priced {
    /// The American option that has not expired; `None` for any other contract.
    fn american(&self) -> Option<AmericanOption> {
        match self.instrument {
            portfolio::Instrument::American { kind, strike, expiry_years } if expiry_years > 0.0 => {
                Some(AmericanOption { market: self.market, kind, strike, expiry_years })
            }
            _ => None,
        }
    }

    /// The value of an American option; numbers that were not asked for are NaN.
    fn told(&self, found: Result<AmericanValue, AmericanError>) -> OptionValue {
        let AmericanValue { price, greeks } = match found {
            Ok(found) => found,
            Err(error) => return without_value(error.to_string()),
        };
        let Some(greeks) = greeks else { return OptionValue { price, ..value(f64::NAN) } };
        let Terms { years, is_future, .. } = self.terms;
        let told = self.terms.told(OptionValue {
            price,
            delta: greeks.delta,
            gamma: greeks.gamma,
            vega: greeks.vega,
            theta: greeks.theta,
            rho: greeks.rho,
            vanna: f64::NAN,
            volga: f64::NAN,
            ..value(0.0)
        });
        debug_assert!(years > 0.0, "one that has not expired");
        // Exercise may be at any time, so neither Greek follows from the others.
        match is_future {
            true => OptionValue { rho: greeks.rho + greeks.rho_foreign, ..told },
            false => OptionValue { rho_foreign: greeks.rho_foreign, ..told },
        }
    }

    /// The value of a contract in closed form.
    fn value(&self, isa: Isa) -> OptionValue {
        const CHECKED: &str = "the contract was checked with the request";
        let AssetMarket { spot, rate, dividend_yield, .. } = self.market;
        let mut greeks = Greeks::default();
        match self.instrument {
            portfolio::Instrument::Option { kind, strike, expiry_years } if expiry_years > 0.0 => {
                let mut options = Options::default();
                options.push(kind, &self.market, strike, expiry_years).expect(CHECKED);
                greeks.add(isa, &options, 0..1);
                self.terms.told(value_of(&greeks, 0))
            }
            portfolio::Instrument::Digital { kind, strike, expiry_years, pays, amount }
                if expiry_years > 0.0 =>
            {
                let mut digitals = Digitals::default();
                digitals.push(kind, &self.market, strike, expiry_years, (pays, amount)).expect(CHECKED);
                digitals.greeks(isa, 0..1, &mut greeks);
                self.terms.told(value_of(&greeks, 0))
            }
            portfolio::Instrument::Spot => OptionValue { price: spot, delta: 1.0, ..value(0.0) },
            portfolio::Instrument::Forward { strike, expiry_years } => {
                let carried = exp(-(dividend_yield * expiry_years));
                let (asset, cash) = (spot * carried, strike * exp(-(rate * expiry_years)));
                self.terms.told(OptionValue {
                    price: asset - cash,
                    delta: carried,
                    theta: dividend_yield * asset - rate * cash,
                    rho: expiry_years * cash,
                    ..value(0.0)
                })
            }
            portfolio::Instrument::Option { kind, strike, .. }
            | portfolio::Instrument::American { kind, strike, .. } => {
                let pays = kind.sign() * (spot - strike);
                self.paid(pays, pays, kind.sign())
            }
            portfolio::Instrument::Digital { kind, strike, pays, amount, .. } => {
                let (paid, delta) = match pays {
                    DigitalPayout::Cash => (amount, 0.0),
                    DigitalPayout::Asset => (amount * spot, amount),
                };
                self.paid(kind.sign() * (spot - strike), paid, delta)
            }
        }
    }

    /// The value of a contract that expires now, which is paid if it is in the money.
    fn paid(&self, beyond: f64, paid: f64, delta: f64) -> OptionValue {
        if beyond > 0.0 { OptionValue { price: paid, delta, ..value(0.0) } } else { value(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use warptape_emulator::Emulator;

    use super::super::tests::{asset, check_cuts, task};
    use super::*;

    fn problem(contracts: &[(&str, Value)]) -> Value {
        let future = json!({"symbol": "F", "spot": 60.0, "volatility": 0.35, "rate": 0.04, "kind": "future"});
        let contract = |(id, contract): &(&str, Value)| json!({"id": id, "contract": contract});
        json!({"type": "contracts", "assets": [asset(), future], "greeks": true,
               "contracts": contracts.iter().map(contract).collect::<Vec<_>>()})
    }

    fn option(kind: &str, asset: i32, strike: f64, years: f64) -> Value {
        json!({"type": kind, "asset": asset, "kind": "put", "strike": strike, "expiry_years": years})
    }

    fn values(problem: Value) -> Vec<OptionValue> {
        match task(problem).expect("a good one").outcome(Isa::detect()) {
            RiskOutcome::Options(found) => found.values,
            other => panic!("{other:?}"),
        }
    }

    fn is_close(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-9
    }

    #[test]
    fn contracts_have_values_under_their_names_and_bad_ones_say_why() {
        let mut digital = option("digital", 0, 100.0, 0.5);
        digital["pays"] = json!("asset");
        let found = values(problem(&[
            ("european", option("option", 0, 100.0, 0.5)),
            ("bad", option("american", 0, -1.0, 0.5)),
            ("american", option("american", 0, 100.0, 0.5)),
            ("today", option("option", 0, 110.0, 0.0)),
            ("digital", digital),
            ("forward", json!({"type": "forward", "asset": 0, "strike": 100.0, "expiry_years": 1.0})),
            ("spot", json!({"type": "spot", "asset": 0})),
            ("nothing", option("option", 7, 110.0, 1.0)),
        ]));
        let ids: Vec<&str> = found.iter().map(|value| value.id.as_str()).collect();
        assert_eq!(ids, ["european", "bad", "american", "today", "digital", "forward", "spot", "nothing"]);
        let [european, bad, american, today, digital, forward, spot, nothing] = &found[..] else {
            panic!("eight")
        };
        // The other prices are those of QuantLib 1.44 and of 40-digit numbers.
        assert!(is_close(european.price, 5.100_073_264_748_621), "{european:?}");
        assert!((american.price - 5.185_32).abs() < 1e-5 && american.price > european.price, "{american:?}");
        assert!(american.rho_foreign.is_finite() && american.vanna.is_nan(), "{american:?}");
        assert_eq!((today.price, today.delta, today.gamma), (10.0, -1.0, 0.0));
        assert!(is_close(digital.price, 44.155_523_715_404_51), "{digital:?}");
        assert!(is_close(forward.price, 100.0 * (-0.01_f64).exp() - 100.0 * (-0.03_f64).exp()));
        assert_eq!((spot.price, spot.delta), (100.0, 1.0));
        assert!(bad.error.starts_with("problem.contracts[1].contract.strike: strike is -1"), "{bad:?}");
        assert!(
            nothing.error.starts_with("problem.contracts[7].contract.asset: 7; there are 2"),
            "{nothing:?}"
        );
        assert!(bad.price.is_nan());
        assert!(is_close(european.theta_per_day * 365.0, european.theta));
        assert!(is_close(european.vega_per_point * 100.0, european.vega));
    }

    /// A call on a future at 60 (Black 1976, in 50 digits): the rate only discounts it.
    #[test]
    fn options_on_futures_are_black_76() {
        let call = json!({"type": "option", "asset": 1, "kind": "call", "strike": 63.0, "expiry_years": 0.3});
        let found = &values(problem(&[("call", call), ("american", option("american", 1, 63.0, 0.3))]))[..];
        let [call, american] = found else { panic!("two") };
        assert!(is_close(call.price, 3.307_087_879_435_792), "{call:?}");
        assert!(is_close(call.rho, -0.3 * call.price), "{call:?}");
        assert_eq!(call.rho_foreign, 0.0);
        // Without early exercise the rate would have the same effect on the American option; with it, less.
        assert!(american.rho > -0.3 * american.price && american.rho < 0.0, "{american:?}");
    }

    /// The foreign rho is the slope of prices by the dividend yield (Garman and Kohlhagen 1983).
    #[test]
    fn both_rhos_are_slopes_of_prices() {
        for contract in ["option", "american", "digital"] {
            let at = |rate: f64, foreign: f64| {
                let mut contract = option(contract, 0, 1.1, 0.75);
                if contract["type"] == "digital" {
                    contract["pays"] = json!("cash");
                }
                let asset = json!({"symbol": "FX:EURUSD", "spot": 1.09, "volatility": 0.08, "rate": rate, "foreign_rate": foreign});
                let contract = json!({"contract": contract});
                let problem =
                    json!({"type": "contracts", "assets": [asset], "contracts": [contract], "greeks": true});
                values(problem).remove(0)
            };
            let (value, step) = (at(0.04, 0.02), 1e-4);
            let rho = (at(0.04 + step, 0.02).price - at(0.04 - step, 0.02).price) / (2.0 * step);
            let foreign = (at(0.04, 0.02 + step).price - at(0.04, 0.02 - step).price) / (2.0 * step);
            assert!((value.rho - rho).abs() < 1e-5, "{contract}: {value:?} {rho}");
            assert!((value.rho_foreign - foreign).abs() < 1e-5, "{contract}: {value:?} {foreign}");
        }
    }

    #[test]
    fn neither_cuts_nor_devices_show() {
        let kinds = ["option", "american", "option"];
        let contracts: Vec<(&str, Value)> = (0..9)
            .map(|number| {
                ("", option(kinds[number % 3], (number % 2) as i32, 55.0 + 10.0 * number as f64, 0.5))
            })
            .collect();
        check_cuts(&Emulator::default(), &problem(&contracts));
    }
}
