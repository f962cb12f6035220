//! The JSON Schemas that `warptape` prints accept what `warptape` accepts, according to an independent validator.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::kafka_clients::given;
use super::processes::{WARPTAPE, folder};

/// Script that checks files with a schema. Each output line is the name of a file that the schema refuses.
const VALIDATE: &str = "
import json, sys, tomllib
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
for path in sys.argv[2:]:
    text = open(path).read()
    value = tomllib.loads(text) if path.endswith('.toml') else json.loads(text)
    for error in validator.iter_errors(value):
        print(path, error.json_path, error.message[:200])
        break
";

/// Returns the validator's output about files.
fn refused(schema: &[&str], files: &[&Path]) -> String {
    let folder = folder();
    let path = folder.path().join("schema.json");
    let printed = Command::new(WARPTAPE).args(schema).output().expect("warptape");
    assert!(printed.status.success(), "{printed:?}");
    fs::write(&path, printed.stdout).expect("the schema");
    let mut python = Command::new(given("WARPTAPE_TEST_PYTHON"));
    let said = python.args(["-c", VALIDATE]).arg(&path).args(files).output().expect("Python");
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).expect("text")
}

#[test]
fn requests_of_the_examples_are_valid_and_mistakes_are_not() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/risk");
    let entries = fs::read_dir(&examples).expect("the examples").map(|entry| entry.expect("an entry").path());
    let files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    assert!(files.len() > 20, "{files:?}");
    let paths: Vec<&Path> = files.iter().map(|path| path.as_path()).collect();
    assert_eq!(refused(&["risk", "schema"], &paths), "");
    let folder = folder();
    let text = fs::read_to_string(examples.join("price.json")).expect("an example");
    for (name, from, to) in [
        ("field.json", "\"strike\"", "\"strke\""),
        ("word.json", "\"call\"", "\"coll\""),
        ("type.json", "\"options\",", "\"opitons\","),
        ("number.json", "100.0", "\"hundred\""),
    ] {
        let path = folder.path().join(name);
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replace(from, to)).expect("a request");
        assert!(refused(&["risk", "schema"], &[&path]).contains(name), "{to} is taken");
    }
}

#[test]
fn the_example_of_settings_is_valid_and_mistakes_are_not() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../warptape.example.toml");
    assert_eq!(refused(&["config", "schema"], &[&example]), "");
    let folder = folder();
    let wrong = folder.path().join("wrong.toml");
    fs::write(&wrong, "[stages]\nallowed_lateness = 5\n").expect("settings");
    assert!(refused(&["config", "schema"], &[&wrong]).contains("allowed_lateness"));
}
