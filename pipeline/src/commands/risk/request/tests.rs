use std::fs;

use clap::Parser;
use warptape_schemas::risk::SymbolBars;

use super::*;
use crate::cli::{Cli, Command, RiskSubcommand};

const NOW_NS: i64 = 1_000_000_000_000;

fn command(line: &str) -> Result<RiskCommand, String> {
    let words = ["warptape", "risk"].into_iter().chain(line.split_whitespace());
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let Command::Risk(args) = cli.command else { panic!("{line}") };
    let RiskSubcommand::Ask(command) = args.command else { panic!("{line}") };
    Ok(*command)
}

fn bars(flags: &RecordedFlags) -> anyhow::Result<Value> {
    let closes = vec![flags.bars.len() as f64, 2.0];
    let of = |symbol: &String| SymbolBars { symbol: symbol.clone(), closes: closes.clone() };
    Ok(serde_json::to_value(flags.symbols.iter().map(of).collect::<Vec<_>>())?)
}

fn request(line: &str) -> Result<RiskRequest, String> {
    let made = request_of(&command(line)?, NOW_NS, "made-up", &bars);
    made.map(|(request, _)| request).map_err(|error| error.to_string())
}

/// Compares the problem of flags with the JSON that a file would hold.
#[track_caller]
fn check(line: &str, problem: Value) -> RiskRequest {
    let found = request(line).unwrap();
    let expected = serde_json::from_value::<RiskProblem>(problem).unwrap();
    assert_eq!(found.problem, expected, "{line}");
    found
}

#[track_caller]
fn check_error(line: &str, part: &str) {
    let error = request(line).expect_err(line);
    assert!(error.contains(part), "{line}: {error}");
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn flags_without_a_simulation_are_a_closed_form() {
    let request = check(
        "price --kind call --strike 100 --expiry-days 73 --spot 99.5 --volatility 0.2 --rate -0.01 --dividend-yield 0.02",
        json!({"type": "options",
               "assets": [{"symbol": "given", "spot": 99.5, "volatility": 0.2, "rate": -0.01, "dividend_yield": 0.02}],
               "options": [{"asset": 0, "kind": "call", "strike": 100.0, "expiry_years": 0.2}]}),
    );
    assert_eq!((request.request_id.as_str(), request.seed, request.deadline_ns), ("made-up", 0, None));
    assert_eq!(market_symbol(&request.problem), None);
}

#[test]
fn a_symbol_gives_what_flags_do_not() {
    let market = json!({"from": "market"});
    let options = json!([{"asset": 0, "kind": "put", "strike": 5.0, "expiry_years": 1.0}]);
    let flags = "--kind put --strike 5 --expiry-days 365 --symbol A:X";
    let problem = |spot: &Value, volatility: Value| {
        let asset = json!({"symbol": "A:X", "spot": spot, "volatility": volatility});
        json!({"type": "options", "assets": [asset], "options": options})
    };
    let request = check(&format!("greeks {flags}"), problem(&market, market.clone()));
    assert_eq!(market_symbol(&request.problem), Some("A:X"));
    check(&format!("price {flags} --volatility 0.3"), problem(&market, json!(0.3)));
    let request =
        check(&format!("price {flags} --volatility 0.3 --spot 4"), problem(&json!(4.0), json!(0.3)));
    assert_eq!(market_symbol(&request.problem), None);
    let assets = json!([{"symbol": "A:X", "spot": market}]);
    check(
        &format!("implied-vol {flags} --price 0.5"),
        json!({"type": "implied-volatilities", "assets": assets, "options": options, "prices": [0.5]}),
    );
}

#[test]
fn any_flag_of_a_simulation_makes_one() {
    let simulation = |contract: Value, more: Value| {
        let asset = json!({"symbol": "given", "spot": 100.0, "volatility": 0.2});
        let mut problem = json!({"type": "simulation", "assets": [asset], "contract": contract, "expiry_years": 1.0,
                                 "steps": 1, "paths_max": PATHS_DEFAULT});
        problem.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        problem
    };
    let flags = "--kind call --expiry-days 365 --spot 100 --volatility 0.2";
    check(
        &format!("price {flags} --strike 100 --antithetic"),
        simulation(json!({"type": "european", "kind": "call", "strike": 100.0}), json!({"antithetic": true})),
    );
    let greeks = check(
        &format!(
            "greeks {flags} --strike 90 --contract asian --steps 12 --paths 4096 --standard-error 0.5 --precision mixed \
             --sampling sobol"
        ),
        simulation(
            json!({"type": "asian", "kind": "call", "strike": 90.0}),
            json!({"steps": 12, "paths_max": 4096, "standard_error": 0.5, "precision": "mixed", "sampling": "sobol",
                   "greeks": true}),
        ),
    );
    assert_eq!(market_symbol(&greeks.problem), None);
    // An American option takes the flags of its simulation.
    let american = json!({"type": "american", "kind": "call", "strike": 100.0});
    check(
        &format!("price {flags} --strike 100 --contract american"),
        simulation(american.clone(), json!({"steps": 0, "paths_max": 0})),
    );
    check(
        &format!("price {flags} --strike 100 --contract american --steps 50"),
        simulation(american, json!({"steps": 50})),
    );
    check(
        &format!("price {flags} --contract lookback"),
        simulation(json!({"type": "lookback", "kind": "call"}), json!({})),
    );
    check(
        &format!("price {flags} --strike 100 --contract barrier --barrier 120 --barrier-kind up-in"),
        simulation(
            json!({"type": "barrier", "kind": "call", "strike": 100.0, "barrier_kind": "up-in", "barrier": 120.0}),
            json!({}),
        ),
    );
}

#[test]
fn what_flags_lack_is_named() {
    check_error("price", "give FILE, or an option by flags: --kind call or put");
    check_error("price --kind call", "--spot S, or --symbol");
    check_error("price --kind call --spot 1", "--volatility V, or --symbol");
    check_error("price --kind call --symbol A:X", "--expiry-days");
    check_error("price --kind call --symbol A:X --expiry-days 1", "--strike");
    let whole = "price --kind call --symbol A:X --expiry-days 1 --strike 1";
    check_error(&format!("{whole} --contract asian"), "--steps N, the number of fixings");
    check_error(&format!("{whole} --contract american --paths 9"), "--steps N, the number of exercise dates");
    check_error(&format!("{whole} --contract barrier --barrier 2"), "--barrier-kind");
    check_error(&format!("{whole} --contract barrier --barrier-kind up-in"), "--barrier B");
    check_error(
        &format!("{whole} --contract asian --steps 2 --barrier 2"),
        "for --contract barrier, not asian",
    );
    check_error(&format!("{whole} --antithetic --sampling sobol"), "--antithetic or --sampling sobol");
    check_error("implied-vol --kind call --symbol A:X --expiry-days 1 --strike 1", "--price P");
    check_error("sweep", "<FILE>");
    check_error("sweep --symbols A:X --bars 1m", "--rules");
    check_error("sweep --symbols A:X --rules x", "--bars");
    check_error("sweep --bars 1m", "--symbols");
    check_error("var", "<FILE>");
    check_error("price --kind call --symbol A:X --expiry-days 1 --strike nan", "not a finite number");
    check_error("price --kind call --spot inf --expiry-days 1 --strike 1", "not a finite number");
    check_error("price x.json --strike 1", "cannot be used with");
    check_error("price x.json --volatility 1", "cannot be used with");
    check_error("price x.json --antithetic", "cannot be used with");
    check_error("sweep x.json --symbols A:X --bars 1m --rules y", "cannot be used with");
}

#[test]
fn what_flags_say_of_the_asking_stands_over_the_file() {
    let problem = json!({"type": "sweep", "symbols": [], "rules": []});
    let full = json!({"request_id": "mine", "tenant": "desk", "class": "batch", "deadline_ns": 5, "seed": 9,
                      "problem": problem});
    let file = file(&full.to_string());
    let path = file.path().display();
    let as_it_is = request(&format!("sweep {path}")).unwrap();
    assert_eq!(serde_json::to_value(&as_it_is).unwrap()["request_id"], "mine");
    assert_eq!((as_it_is.seed, as_it_is.deadline_ns), (9, Some(5)));
    let flags = "--class critical --tenant t --deadline-ms 7 --request-id other --seed -3 --gang";
    let with_flags = request(&format!("sweep {path} {flags}")).unwrap();
    let expected = json!({"request_id": "other", "tenant": "t", "class": "CRITICAL", "deadline_ns": NOW_NS + 7_000_000,
                          "seed": -3, "gang": true, "problem": problem});
    assert_eq!(with_flags, serde_json::from_value::<RiskRequest>(expected).unwrap());
}

#[test]
fn a_file_must_be_a_request_that_the_command_is_for() {
    let sweep = file(r#"{"problem": {"type": "sweep", "symbols": [], "rules": []}}"#);
    check_error(
        &format!("price {}", sweep.path().display()),
        "the request is of type sweep and does not fit `risk price`: use `warptape risk sweep`",
    );
    assert!(request(&format!("request {}", sweep.path().display())).is_ok(), "`request` is for all kinds");
    let options = file(r#"{"problem": {"type": "options", "assets": [], "options": []}}"#);
    check_error(
        &format!("var {}", options.path().display()),
        "use `warptape risk price` or `warptape risk greeks`",
    );
    let stress = json!({"type": "portfolio", "assets": [], "books": [], "positions": [],
                        "measure": {"type": "stress", "scenarios": []}});
    let stress = file(&json!({ "problem": stress }).to_string());
    check_error(&format!("var {}", stress.path().display()), "portfolio with a stress");
    request(&format!("stress {}", stress.path().display())).unwrap();
    for (text, part) in [
        ("[]", "a request is a JSON object"),
        ("{", "EOF"),
        (r#"{"problem": {"type": "oops"}}"#, "unknown variant `oops`"),
        (r#"{"problem": {"type": "sweep", "symbols": []}}"#, "missing field `rules`"),
        (r#"{"clas": 1, "problem": {"type": "sweep", "symbols": [], "rules": []}}"#, "unknown field `clas`"),
    ] {
        let written = file(text);
        check_error(&format!("sweep {}", written.path().display()), part);
    }
    check_error("stress /no/such/file", "/no/such/file: ");
}

#[test]
fn lists_in_rules_are_combined() {
    let rules = file(
        r#"[{"type": "ema-cross", "fast": [5, 10], "slow": [20, 50]},
            {"type": "band-breakout", "window": 20, "width": 2.0}]"#,
    );
    let cross = |fast: i32, slow: i32| json!({"type": "ema-cross", "fast": fast, "slow": slow});
    let rule = json!({"type": "band-breakout", "window": 20, "width": 2.0});
    let symbols = json!([{"symbol": "A:X", "closes": [2.0, 2.0]}, {"symbol": "A:Y", "closes": [2.0, 2.0]}]);
    let flags = format!("--symbols A:X,A:Y --bars 1m --rules {}", rules.path().display());
    let problem = |cost: f64| {
        json!({"type": "sweep", "symbols": symbols, "cost": cost,
               "rules": [cross(5, 20), cross(5, 50), cross(10, 20), cross(10, 50), rule]})
    };
    check(&format!("sweep {flags}"), problem(0.0));
    check(&format!("sweep {flags} --cost 0.001"), problem(0.001));

    let list: Vec<i32> = (2..402).collect();
    let many = file(&json!([{"type": "ema-cross", "fast": list, "slow": list}]).to_string());
    let flags = format!("sweep --symbols A:X --bars 1m --rules {}", many.path().display());
    check_error(&flags, "160000 rules, but at most 20000");
}

#[test]
fn a_matrix_of_the_market_is_of_the_first_asset() {
    let assets = json!([{"symbol": "A:X", "spot": 1.0, "volatility": 0.1}, {"symbol": "A:Y", "spot": 1.0}]);
    let problem = |covariance: Value| {
        let problem = json!({"type": "optimisation", "assets": assets, "expected_returns": [], "covariance": covariance,
                             "budget": 1.0, "lower": [], "upper": []});
        serde_json::from_value::<RiskProblem>(problem).unwrap()
    };
    assert_eq!(market_symbol(&problem(json!([0.1]))), None);
    assert_eq!(market_symbol(&problem(json!({"from": "market"}))), Some("A:X"));
}

fn rows(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".csv").tempfile().unwrap();
    fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn contracts_are_rows_of_a_file() {
    let file = rows(
        "id,type,kind,strike,expiry_days,symbol,spot,volatility,rate,foreign_rate,future,pays,amount\n\
         a,american,put,100,73,,100,0.2,0.03,,,,\n\
         b,,C,63,36.5,F,60,0.35,0.04,,yes,,\n\
         c,digital,put,1.1,73,FX:E,,0.08,0.04,0.02,no,asset,5\n\
         d,european,put,90,73,,100,0.2,0.03,,,,\n",
    );
    let asset = |symbol: &str, spot: Value, volatility: f64, rate: f64, foreign: f64, kind: &str| json!({"symbol": symbol, "spot": spot, "volatility": volatility, "rate": rate, "dividend_yield": foreign, "kind": kind});
    let contract = |id: &str, contract: Value| json!({"id": id, "contract": contract});
    let expected = json!({"type": "contracts", "greeks": true,
        "assets": [asset("given", json!(100.0), 0.2, 0.03, 0.0, "spot"), asset("F", json!(60.0), 0.35, 0.04, 0.0, "future"),
                   asset("FX:E", json!({"from": "market"}), 0.08, 0.04, 0.02, "spot")],
        "contracts": [
            contract("a", json!({"type": "american", "asset": 0, "kind": "put", "strike": 100.0, "expiry_years": 0.2})),
            contract("b", json!({"type": "option", "asset": 1, "kind": "call", "strike": 63.0, "expiry_years": 0.1})),
            contract("c", json!({"type": "digital", "asset": 2, "kind": "put", "strike": 1.1, "expiry_years": 0.2,
                                 "pays": "asset", "amount": 5.0})),
            contract("d", json!({"type": "option", "asset": 0, "kind": "put", "strike": 90.0, "expiry_years": 0.2}))]});
    check(&format!("greeks {}", file.path().display()), expected);
    let wrong =
        rows("id,kind,strike,expiry_years,spot,volatility\na,put,100,1,100,0.2\nb,putt,100,1,100,0.2\n");
    check_error(
        &format!("price {}", wrong.path().display()),
        "line 3, column `kind`: `putt` is neither call nor put",
    );
}

#[test]
fn positions_are_rows_of_a_file() {
    let problem = json!({"type": "portfolio", "assets": [{"symbol": "A", "spot": 1.0, "volatility": 0.2}],
        "books": [{"name": "all"}, {"name": "desk", "parent": 0}], "positions": [],
        "measure": {"type": "historical", "confidence": 0.9, "returns": [0.1]}});
    let base = file(&json!({"problem": problem}).to_string());
    let book = rows(
        "name,book,quantity,type,kind,strike,expiry_years,symbol\nx,desk,-2,american,put,1,0.5,A\ny,,3,spot,,,,A\n",
    );
    let mut expected = problem;
    expected["positions"] = json!([
        {"name": "x", "book": 1, "quantity": -2.0,
         "instrument": {"type": "american", "asset": 0, "kind": "put", "strike": 1.0, "expiry_years": 0.5}},
        {"name": "y", "book": 0, "quantity": 3.0, "instrument": {"type": "spot", "asset": 0}}]);
    let line = |rows: &tempfile::NamedTempFile| {
        format!("var {} --positions {}", base.path().display(), rows.path().display())
    };
    check(&line(&book), expected);
    let wrong = rows("name,quantity,type,symbol\nx,1,spot,B\n");
    check_error(&line(&wrong), "line 2, column `symbol`: `B` is not in the request, which has: A");
}

#[test]
fn an_option_on_a_future_is_asked_for_by_a_flag() {
    let line = "price --kind call --strike 63 --expiry-days 73 --spot 60 --volatility 0.35 --rate 0.04";
    let asset = json!({"symbol": "given", "spot": 60.0, "volatility": 0.35, "rate": 0.04, "kind": "future"});
    let option = json!({"asset": 0, "kind": "call", "strike": 63.0, "expiry_years": 0.2});
    check(&format!("{line} --future"), json!({"type": "options", "assets": [asset], "options": [option]}));
    assert!(command(&format!("{line} --future --foreign-rate 0.02")).is_err());
}
