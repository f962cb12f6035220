//! The example from ticks to verification, and what another program says of its log.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

struct Example {
    folder: tempfile::TempDir,
}

impl Example {
    fn run(&self, arguments: &[&str]) -> Output {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("warptape.toml");
        Command::new(env!("CARGO_BIN_EXE_own-indicator"))
            .arg("--config")
            .arg(config)
            .args(arguments)
            .arg("--log")
            .arg(format!("sqlite:{}", self.folder.path().join("log.db").display()))
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn an_own_indicator_is_computed_and_verified() {
    let example = Example { folder: tempfile::tempdir().unwrap() };
    example.succeed(&["feed", "synth", "--symbols", "5", "--ticks", "60000"]);
    example.succeed(&["run", "--until-caught-up", "--close"]);
    let text = example.succeed(&["tail", "signals", "--from-beginning", "--exit-at-end", "-o", "json"]);
    let signals: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let records: Vec<&Value> = signals.iter().map(|signal| &signal["record"]).collect();
    let is_of = |kind: &str, record: &&&Value| record["kind"] == kind;
    let with_trend = records.iter().filter(|record| {
        let further = &record["further_indicators"];
        further["trend"].as_f64().is_some_and(|trend| {
            further["signed_trend"].as_f64().map(f64::abs) == Some(trend) && (0.0..=1.0).contains(&trend)
        })
    });
    assert!(with_trend.count() > 10, "bars have the indicator");
    let turned: Vec<_> =
        records.iter().filter(|record| is_of("ALERT", record) && record["name"] == "turned").collect();
    assert!(!turned.is_empty());
    assert!(turned.iter().all(|alert| alert["value"].as_f64() > Some(0.0) && alert["threshold"] == 0.0));
    let verified = example.succeed(&["replay", "verify", "--outputs"]);
    assert!(verified.contains("identical"), "{verified}");
}
