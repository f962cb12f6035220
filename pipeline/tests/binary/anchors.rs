//! Tests of a signed journal, with keys made by Warptape and by openssl, verified with and without Warptape.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use warptape_eventlog::SqliteLog;

use super::files_of_logs::{copy_log, remove_log};
use super::processes::{Running, folder, run_until_drained, texts, warptape, warptape_with};

const LOG: [&str; 2] = ["--log", "sqlite:w.db"];

fn signing(key: &str) -> [(&str, &str); 3] {
    [
        ("WARPTAPE__JOURNAL__SIGNING_KEY_FILE", key),
        ("WARPTAPE__JOURNAL__ANCHOR_FILE", "anchors"),
        ("WARPTAPE__JOURNAL__ANCHOR_LOG", "sqlite:other.db"),
    ]
}

fn feed_and_run(folder: &Path, seed: &str, environment: &[(&str, &str)]) {
    let feed = ["feed", "synth", "--symbols", "10", "--ticks", "5000", "--seed", seed];
    texts(&warptape(folder, &[&feed[..], &LOG].concat()), 0);
    let mut run = Running::start_with(folder, &[&["run"][..], &LOG].concat(), environment);
    let log = SqliteLog::open_existing(folder.join("w.db")).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    run.stop("TERM");
}

fn verify(folder: &Path, arguments: &[&str], code: i32) -> String {
    let (told, error) =
        texts(&warptape(folder, &[&["replay", "verify", "--outputs"], arguments, &LOG].concat()), code);
    told + &error
}

/// Runs openssl; `None` if it is not installed.
fn openssl(folder: &Path, arguments: &[&str]) -> Option<Output> {
    Command::new("openssl").args(arguments).current_dir(folder).output().ok()
}

#[test]
fn a_signed_log_is_proven_and_an_older_one_is_refused() {
    let folder = folder();
    let path = folder.path();
    let (told, _) = texts(&warptape(path, &["journal", "keygen", "key"]), 0);
    assert!(told.contains("key.pub (replay verify --public-key), id "), "{told}");
    let (_, error) = texts(&warptape(path, &["journal", "keygen", "key"]), 2);
    assert!(error.contains("key exists; keys are never overwritten"), "{error}");
    feed_and_run(path, "1", &signing("key"));
    copy_log(&path.join("w.db"), &path.join("older.db"));
    feed_and_run(path, "2", &signing("key"));
    let told = verify(path, &["--public-key", "key.pub", "--from-anchor", "anchors"], 0);
    for expected in
        [": identical", "entries 0 to ", " are signed, by ", "anchors of anchors were compared, verified"]
    {
        assert!(told.contains(expected), "{expected:?} is missing in {told}");
    }
    let told = verify(path, &["--from-anchor", "sqlite:other.db"], 0);
    assert!(
        told.contains("accepted without a check of their signatures, because no public key was given"),
        "{told}"
    );
    // The earlier copy lacks entries that have an anchor.
    remove_log(&path.join("w.db"));
    copy_log(&path.join("older.db"), &path.join("w.db"));
    for place in ["anchors", "sqlite:other.db"] {
        let told = verify(path, &["--public-key", "key.pub", "--from-anchor", place], 1);
        assert!(told.contains("it was cut, or replaced by an older one"), "{told}");
    }
    let refused = warptape_with(path, &[&["run"][..], &LOG].concat(), &signing("key"));
    assert!(texts(&refused, 1).1.contains("anchors has an anchor of sequence"));
}

#[test]
fn a_stranger_needs_openssl_alone() {
    let folder = folder();
    let path = folder.path();
    if openssl(path, &["genpkey", "-algorithm", "ed25519", "-out", "key"]).is_none() {
        eprintln!("openssl is not here: nothing to compare");
        return;
    }
    texts(&Command::new("chmod").args(["600", "key"]).current_dir(path).output().expect("chmod"), 0);
    let done = openssl(path, &["pkey", "-in", "key", "-pubout", "-out", "key.pub"]).expect("it was here");
    texts(&done, 0);
    feed_and_run(path, "1", &signing("key"));
    verify(path, &["--public-key", "key.pub"], 0);
    let (lines, _) = texts(&warptape(path, &[&["journal", "anchors"][..], &LOG].concat()), 0);
    let line = lines.lines().last().expect("an anchor");
    let (statement, _) = line.split_once(" key=").expect("it names its key");
    fs::write(path.join("statement"), statement).expect("it is written");
    let script =
        format!("printf %s '{}' | base64 -d > signature", line.rsplit("signature=").next().unwrap_or(""));
    texts(&Command::new("sh").args(["-c", &script]).current_dir(path).output().expect("sh"), 0);
    let check = [
        "pkeyutl",
        "-verify",
        "-pubin",
        "-inkey",
        "key.pub",
        "-rawin",
        "-in",
        "statement",
        "-sigfile",
        "signature",
    ];
    let (told, _) = texts(&openssl(path, &check).expect("it was here"), 0);
    assert!(told.contains("Signature Verified Successfully"), "{told}");
    // Keys made by Warptape also work with openssl.
    texts(&warptape(path, &["journal", "keygen", "ours"]), 0);
    texts(&openssl(path, &["pkey", "-in", "ours", "-noout", "-text"]).expect("it was here"), 0);
    texts(&openssl(path, &["pkey", "-pubin", "-in", "ours.pub", "-noout"]).expect("it was here"), 0);
    let told = verify(path, &["--public-key", "ours.pub"], 1);
    assert!(told.contains("are not signed with the key "), "{told}");
}

#[test]
fn bad_keys_are_errors_at_the_start() {
    let folder = folder();
    let path = folder.path();
    let refused = |key: &str, said: &str| {
        let environment = [("WARPTAPE__JOURNAL__SIGNING_KEY_FILE", key)];
        let (_, error) = texts(&warptape_with(path, &[&["run"][..], &LOG].concat(), &environment), 2);
        assert!(error.contains("journal.signing_key_file") && error.contains(said), "{said:?}: {error}");
    };
    texts(&warptape(path, &["feed", "synth", "--ticks", "10", "--log", "sqlite:w.db"]), 0);
    refused("none", "cannot be read");
    texts(&warptape(path, &["journal", "keygen", "key"]), 0);
    texts(&Command::new("chmod").args(["644", "key"]).current_dir(path).output().expect("chmod"), 0);
    refused("key", "chmod 600");
    texts(&Command::new("chmod").args(["600", "key.pub"]).current_dir(path).output().expect("chmod"), 0);
    refused("key.pub", "it holds a public key");
    let told =
        warptape_with(path, &[&["run"][..], &LOG].concat(), &[("WARPTAPE__JOURNAL__ANCHOR_FILE", "anchors")]);
    assert!(texts(&told, 2).1.contains("journal.signing_key_file"));
    let told = warptape(path, &[&["replay", "verify", "--from-anchor", "none"][..], &LOG].concat());
    assert!(texts(&told, 2).1.contains("none: cannot be read"));
}
