//! Configurations, and the settings or mistakes that they lead to.

use std::path::PathBuf;

use warptape_eventlog::Durability;

use super::*;

/// Loads settings from a file's text, environment variables and flags.
fn read(
    toml: &str,
    environment: &[(&str, &str)],
    flags: &[(&'static str, &'static str, &str)],
) -> Result<(Settings, Vec<Effective>), SettingsError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("w.toml");
    std::fs::write(&path, toml).expect("a temporary file");
    load(&Sources {
        preferences: Vec::new(),
        file: Some(path),
        environment: environment.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        flags: flags
            .iter()
            .map(|(giver, key, value)| Assignment { giver, key, value: value.to_string() })
            .collect(),
        cores: 8,
        ..Sources::default()
    })
}

/// Returns the mistakes as `key @ origin: found; allowed`, without the file's folder.
fn mistakes(
    toml: &str,
    environment: &[(&str, &str)],
    flags: &[(&'static str, &'static str, &str)],
) -> Vec<String> {
    match read(toml, environment, flags) {
        Ok(_) => Vec::new(),
        Err(SettingsError::Mistakes(mistakes)) => mistakes
            .into_iter()
            .map(|mistake| {
                let origin = match mistake.origin {
                    Origin::File { path, line } => {
                        format!("{}:{line}", path.file_name().unwrap().to_string_lossy())
                    }
                    other => other.to_string(),
                };
                format!("{} @ {origin}: {}; {}", mistake.key, mistake.found, mistake.allowed)
            })
            .collect(),
        Err(other) => panic!("{other}"),
    }
}

fn origin_of<'a>(effective: &'a [Effective], path: &str) -> &'a Origin {
    &effective.iter().find(|entry| entry.key.path == path).unwrap().origin
}

#[test]
fn nothing_given_is_the_defaults() {
    let (settings, effective) = load(&Sources { cores: 8, ..Sources::default() }).unwrap();
    let LogSettings { url, durability, kept_for, kept_bytes } = settings.log;
    assert_eq!((&*url, durability), ("sqlite:warptape.db", Durability::Process));
    assert_eq!((kept_for.ticks, kept_bytes.ticks), (None, Some(24 << 30)));
    assert_eq!(settings.lanes.specs.len(), 2);
    assert_eq!(settings.scheduler.row_deadline_ns, 5_000_000);
    let risk = warptape_schemas::journal::RiskConfig {
        quantum_ns: 20_000_000,
        policy: "lp-price@1".to_owned(),
        price_interval_ns: 1_000_000_000,
        critical_percent: 25,
        ageing_ns: 1_000_000_000,
        predictor: 1,
        queues: warptape_schemas::journal::QueueConfig {
            delay_interval_ns: 100_000_000,
            ..Default::default()
        },
        steals: true,
        ..Default::default()
    };
    assert_eq!(settings.scheduler.risk, risk);
    assert_eq!(settings.stages.allowed_lateness_ns, 2_000_000_000);
    assert_eq!(settings.stages.future_max_ns, 4 * 86_400_000_000_000);
    assert_eq!(settings.stages.clock_skew_max_ns, 60_000_000_000);
    assert_eq!(settings.stages.indicators, warptape_kernels::IndicatorParams::default());
    assert_eq!(settings.stages.signals, warptape_kernels::SignalParams::default());
    assert_eq!(effective.len(), KEYS.len());
    assert!(effective.iter().all(|entry| entry.origin == Origin::Default));
}

#[test]
fn one_mistake_each() {
    let check = |toml: &str, expected: &str| assert_eq!(mistakes(toml, &[], &[]), [expected], "{toml}");
    check(
        "[log]\nurl = \"postgres:x\"",
        "log.url @ w.toml:2: \"postgres:x\"; a string of the form sqlite:PATH or kafka:HOST:PORT[,HOST:PORT…]",
    );
    check(
        "[log]\nurl = 3",
        "log.url @ w.toml:2: 3; a string of the form sqlite:PATH or kafka:HOST:PORT[,HOST:PORT…]",
    );
    check("log.durability = \"none\"", "log.durability @ w.toml:1: \"none\"; \"process\" or \"full\"");
    check("log = 3", "log @ w.toml:1: 3; a table of url, durability");
    check(
        "[log.url]\nx = 1",
        "log.url @ w.toml:2: a table; a string of the form sqlite:PATH or kafka:HOST:PORT[,HOST:PORT…]",
    );
    check("[topics]\n\npartitions = 0", "topics.partitions @ w.toml:3: 0; a whole number from 1 to 1024");
    check("[topics]\npartitions = 4.0", "topics.partitions @ w.toml:2: 4.0; a whole number from 1 to 1024");
    check(
        "[topics]\npartitions = \"4\"",
        "topics.partitions @ w.toml:2: \"4\"; a whole number from 1 to 1024",
    );
    check("[topics]\npartitions = true", "topics.partitions @ w.toml:2: true; a whole number from 1 to 1024");
    check(
        "[topics]\nprefix = \"a/b\"",
        "topics.prefix @ w.toml:2: \"a/b\"; a string of up to 64 characters of A-Z a-z 0-9 . _ -",
    );
    check(
        "[engine]\ndevices = [\"cuda:0\", 7]",
        "engine.devices @ w.toml:2: [\"cuda:0\", 7]; a list of 1 to 64 strings, each `cpu:N` (N lanes on the \
         CPU, 1 to 64), `cuda:N` (a lane on GPU N, from 0), `cuda:N#M` (M lanes on GPU N, 1 to 16) or `auto` \
         (a lane on each GPU; without GPUs, CPU lanes on all cores but one)",
    );
    check(
        "[stages]\nbars = []",
        "stages.bars @ w.toml:2: []; a list of 1 to 16 strings, each an interval (`250ms`, `1s`, `5m`, `1h`), \
         `tick:N` trades or `volume:V`",
    );
    check(
        "[stages.signals]\nrsi_upper = nan",
        "stages.signals.rsi_upper @ w.toml:2: nan; a number from 0 to 100",
    );
    check(
        "[stages.indicators]\nsma = 1",
        "stages.indicators.sma @ w.toml:2: 1; a whole number from 2 to 1024",
    );
}

#[test]
fn whatever_a_value_is_the_key_is_named_or_it_is_taken() {
    let values = [
        "true",
        "1979-05-27",
        "07:32:00",
        "[]",
        "[[1]]",
        "[\"\"]",
        "{}",
        "{ a = 1 }",
        "\"\"",
        "\"x\"",
        "-1",
        "0",
        "1",
        "1e300",
        "nan",
        "-inf",
        "9223372036854775807",
        "-9223372036854775808",
        "\"cpu:99999999999999999999\"",
        "[{}]",
    ];
    for key in KEYS {
        for value in values {
            let from_file = read(&format!("{} = {value}", key.path), &[], &[]);
            let name = format!("{ENVIRONMENT_PREFIX}{}", key.path.to_uppercase().replace('.', "__"));
            let from_environment = load(&Sources {
                environment: vec![(name, value.to_owned())],
                cores: 8,
                ..Sources::default()
            });
            for result in [from_file, from_environment] {
                match result {
                    Ok((_, effective)) => {
                        assert_ne!(origin_of(&effective, key.path), &Origin::Default, "{value}")
                    }
                    Err(SettingsError::Mistakes(mistakes)) => {
                        // A value of the right type may contradict another key of its section.
                        let is_named = |mistake: &Mistake| {
                            mistake.key == key.path
                                || mistake.key.starts_with(key.section())
                                || mistake.allowed.contains(key.name())
                        };
                        assert!(mistakes.iter().all(is_named), "{} = {value}: {mistakes:?}", key.path);
                    }
                    Err(other) => panic!("{} = {value}: {other}", key.path),
                }
            }
        }
    }
    assert_eq!(
        mistakes("engine.node = 1979-05-27", &[], &[]),
        ["engine.node @ w.toml:1: a date; a string of up to 64 characters of A-Z a-z 0-9 . _ -"]
    );
}

#[test]
fn unknown_keys_are_refused_with_the_nearest_name() {
    let check = |toml: &str, expected: &str| assert_eq!(mistakes(toml, &[], &[]), [expected], "{toml}");
    check("[log]\nurll = 1", "log.urll @ w.toml:2: an unknown key; log.url (the most similar key)");
    check(
        "[engine]\ncommit_interval = 1",
        "engine.commit_interval @ w.toml:2: an unknown key; engine.commit_interval_ms (the most similar key)",
    );
    check(
        "[stages]\nrsi = 1",
        "stages.rsi @ w.toml:2: an unknown key; stages.indicators.rsi (the most similar key)",
    );
    check("node = \"a\"", "node @ w.toml:1: an unknown key; engine.node (the most similar key)");
    check("\"log.url\" = \"x\"", "\"log.url\" @ w.toml:1: an unknown key; log.url (the most similar key)");
    check(
        "[qqqq]\nzzzz = 1",
        "qqqq.zzzz @ w.toml:2: an unknown key; keys of [log], [log.retention_hours], [log.retention_mib], [topics], [journal], [hot_state], [kafka], \
         [kafka.retention_hours], [schema_registry], [engine], [scheduler], [risk], [breakers], [autoscale], [otlp], [stages], [stages.indicators], \
         [stages.signals], [stages.market], [endpoint]",
    );
    assert_eq!(
        mistakes("", &[("WARPTAPE__LOG__URLL", "x"), ("WARPTAPE_LOG", "debug"), ("HOME", "x")], &[]),
        ["log.urll @ environment WARPTAPE__LOG__URLL: an unknown key; log.url (the most similar key)"]
    );
}

#[test]
fn relations_between_keys() {
    let found = |toml: &str| {
        mistakes(toml, &[], &[])
            .iter()
            .map(|line| line.split(';').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        found("[scheduler]\nlow_water_rows = 9\nhigh_water_rows = 9"),
        ["scheduler.low_water_rows @ w.toml:2: 9"]
    );
    assert_eq!(
        found("[risk]\ntenant_weights = [\"a=2\", \"a=3\"]"),
        ["risk.tenant_weights @ w.toml:2: [\"a=2\", \"a=3\"]"]
    );
    assert_eq!(
        found("[risk]\nquotas = [\"a parent=b\", \"b\"]"),
        ["risk.quotas @ w.toml:2: [\"a parent=b\", \"b\"]"]
    );
    assert_eq!(found("[risk]\nin_flight_min = 9"), ["risk.in_flight_min @ w.toml:2: 9"]);
    assert_eq!(
        found("[stages.indicators]\nema_fast = 50\nema_slow = 50"),
        ["stages.indicators.ema_fast @ w.toml:2: 50"]
    );
    assert_eq!(found("[stages.signals]\nrsi_lower = 80"), ["stages.signals.rsi_lower @ w.toml:2: 80.0"]);
    assert_eq!(found("[stages]\nbars = [\"1m\", \"60s\"]"), ["stages.bars @ w.toml:2: [\"1m\", \"60s\"]"]);
    assert_eq!(
        found("[engine]\ndevices = [\"cpu:64\", \"cpu:1\"]"),
        ["engine.devices @ w.toml:2: [\"cpu:64\", \"cpu:1\"]"]
    );
    assert_eq!(
        found("[stages]\nlateness_by_venue = [\"A=5s\", \"A=6s\"]"),
        ["stages.lateness_by_venue @ w.toml:2: [\"A=5s\", \"A=6s\"]"]
    );
    for wrong in ["A=5", "=5s", "A:B=5s", "A=2h", "A=tick:5", "A"] {
        let toml = format!("[stages]\nlateness_by_venue = [\"{wrong}\"]");
        assert_eq!(found(&toml), [format!("stages.lateness_by_venue @ w.toml:2: [\"{wrong}\"]")]);
    }
    // A contradiction is reported beside other mistakes, but not if one of its own keys is refused.
    assert_eq!(
        found("[stages.indicators]\nsma = 0\nema_fast = 200"),
        ["stages.indicators.sma @ w.toml:2: 0", "stages.indicators.ema_fast @ w.toml:3: 200"]
    );
    assert_eq!(
        found("[stages.indicators]\nema_slow = 0\nema_fast = 200"),
        ["stages.indicators.ema_slow @ w.toml:2: 0"]
    );
}

#[test]
fn all_mistakes_at_once_each_with_its_origin() {
    let found = mistakes(
        "[log]\ndurability = 1\n[engine]\nnod = \"x\"\n",
        &[("WARPTAPE__TOPICS__PARTITIONS", "many"), ("WARPTAPE__ENGINE__DEVICES", "cpu:2,gpu:0")],
        &[("--log", "log.url", "nowhere")],
    );
    let heads: Vec<_> = found.iter().map(|line| line.split(';').next().unwrap()).collect();
    assert_eq!(
        heads,
        [
            "engine.nod @ w.toml:4: an unknown key",
            "log.url @ flag --log: \"nowhere\"",
            "log.durability @ w.toml:2: 1",
            "topics.partitions @ environment WARPTAPE__TOPICS__PARTITIONS: \"many\"",
            "engine.devices @ environment WARPTAPE__ENGINE__DEVICES: \"cpu:2,gpu:0\"",
        ]
    );
}

#[test]
fn flags_beat_the_environment_which_beats_the_file() {
    let toml = "[log]\nurl = \"sqlite:file.db\"\n[engine]\nnode = \"file\"\ngroup = \"file\"";
    let environment = [("WARPTAPE__LOG__URL", "sqlite:env.db"), ("WARPTAPE__ENGINE__NODE", "7")];
    let (settings, effective) = read(toml, &environment, &[("--log", "log.url", "sqlite:flag.db")]).unwrap();
    assert_eq!(settings.log.url, "sqlite:flag.db");
    assert_eq!(settings.engine.node, "7");
    assert_eq!(settings.engine.group, "file");
    assert_eq!(origin_of(&effective, "log.url"), &Origin::Flag("--log".to_owned()));
    assert_eq!(
        origin_of(&effective, "engine.node"),
        &Origin::Environment("WARPTAPE__ENGINE__NODE".to_owned())
    );
    assert!(matches!(origin_of(&effective, "engine.group"), Origin::File { line: 5, .. }));
    assert_eq!(origin_of(&effective, "engine.devices"), &Origin::Default);
}

#[test]
fn preferences_yield_to_everything_but_defaults() {
    let preference = |key, value: &str| Assignment { giver: "demo", key, value: value.to_owned() };
    let sources = Sources {
        preferences: vec![preference("engine.devices", "cpu:4"), preference("engine.node", "demo")],
        environment: vec![("WARPTAPE__ENGINE__NODE".to_owned(), "mine".to_owned())],
        cores: 8,
        ..Sources::default()
    };
    let (settings, effective) = load(&sources).unwrap();
    assert_eq!(settings.lanes.specs.len(), 4);
    assert_eq!(settings.engine.node, "mine");
    assert_eq!(origin_of(&effective, "engine.devices").to_string(), "default of demo");
}

#[test]
fn environment_values_are_parsed_by_the_type_of_their_key() {
    let value = |name: &str, text: &str, path: &str| {
        let (_, effective) = read("", &[(name, text)], &[]).unwrap();
        effective.into_iter().find(|entry| entry.key.path == path).unwrap().value.to_toml()
    };
    assert_eq!(value("WARPTAPE__ENGINE__DEVICES", "cpu:1, auto", "engine.devices"), "[\"cpu:1\", \"auto\"]");
    assert_eq!(value("WARPTAPE__ENGINE__DEVICES", "[\"cpu:1\"]", "engine.devices"), "[\"cpu:1\"]");
    assert_eq!(value("WARPTAPE__STAGES__SIGNALS__RSI_UPPER", "75", "stages.signals.rsi_upper"), "75.0");
    assert_eq!(
        value("WARPTAPE__SCHEDULER__LANE_CREDIT_ROWS", "1_000_000", "scheduler.lane_credit_rows"),
        "1000000"
    );
    assert_eq!(value("WARPTAPE__TOPICS__PREFIX", "", "topics.prefix"), "\"\"");
}

/// A secret that must not appear anywhere.
const HIDDEN: &str = "hunter2-must-not-be-seen";

#[test]
fn secrets_come_from_the_environment_or_a_file_and_are_shown_nowhere() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("password");
    std::fs::write(&path, format!("{HIDDEN}\n")).expect("a temporary file");
    let path = path.to_str().expect("UTF-8");
    let toml = "[schema_registry]\nurl = \"http://r:1/\"\nusername = \"u\"\n\
                [kafka.properties]\n\"sasl.username\" = \"u\"\nsecurity.protocol = \"SASL_SSL\"\nlinger.ms = 5";
    let by_file = format!("{toml}\nsasl.password_file = {path:?}");
    for (toml, environment) in [
        (toml, [("KAFKA__PROPERTIES__SASL__PASSWORD", HIDDEN), ("SCHEMA_REGISTRY__PASSWORD", HIDDEN)]),
        (toml, [("KAFKA__PROPERTIES__SASL__PASSWORD_FILE", path), ("SCHEMA_REGISTRY__PASSWORD_FILE", path)]),
        (
            &*by_file,
            [("KAFKA__PROPERTIES__SSL__CA__LOCATION", "ca"), ("SCHEMA_REGISTRY__PASSWORD_FILE", path)],
        ),
    ] {
        let environment = environment.map(|(name, value)| (format!("{ENVIRONMENT_PREFIX}{name}"), value));
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (&**name, *value)).collect();
        let (settings, effective) = read(toml, &environment, &[]).unwrap();
        let property = |name: &str| settings.kafka.properties.get(name).map(Secret::reveal);
        assert_eq!(property("sasl.password"), Some(HIDDEN));
        assert_eq!(property("sasl.username"), Some("u"));
        assert_eq!(property("security.protocol"), Some("SASL_SSL"));
        assert_eq!(property("linger.ms"), Some("5"));
        let registry = &settings.registry;
        assert_eq!((&*registry.url, &*registry.username), ("http://r:1", "u"));
        assert_eq!(registry.password.as_ref().map(Secret::reveal), Some(HIDDEN));

        let shown = effective_toml(&effective);
        assert!(shown.contains("# \"sasl.password\" is set, and not shown"), "{shown}");
        assert!(shown.contains("# password is set, and not shown"), "{shown}");
        assert!(shown.contains("\"security.protocol\" = \"SASL_SSL\""), "{shown}");
        for text in [shown, format!("{settings:?}"), format!("{effective:?}")] {
            assert!(!text.contains(HIDDEN), "{text}");
        }
    }
}

#[test]
fn an_address_with_a_password_comes_from_the_environment_or_a_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("redis");
    std::fs::write(&path, format!("redis://:{HIDDEN}@host:1\n")).expect("a temporary file");
    let path = path.to_str().expect("UTF-8");
    let address = format!("redis://:{HIDDEN}@host:1");
    for (name, value) in [("WARPTAPE__HOT_STATE__URL_FILE", path), ("WARPTAPE__HOT_STATE__URL", &*address)] {
        let (settings, effective) = read("", &[(name, value)], &[]).unwrap();
        let expected = warptape_hot::HotUrl::parse(&address).expect("an address");
        assert_eq!(settings.hot_state.url, expected);
        let shown = effective_toml(&effective);
        assert!(shown.contains("url = \"redis://:***@host:1\"") && !shown.contains(HIDDEN), "{shown}");
    }
    assert_eq!(
        mistakes("hot_state.url_file = \"/dev/null\"", &[], &[]),
        ["hot_state.url @ w.toml:1: the file \"/dev/null\", which is not a file of at most 65536 bytes; \
          the path of a text file that holds the secret"]
    );
}

#[test]
fn secrets_elsewhere_are_refused_and_not_repeated() {
    let found = |toml: &str| {
        let found = mistakes(toml, &[], &[]);
        assert!(!found.is_empty() && !found.concat().contains(HIDDEN), "{found:?}");
        found
    };
    assert_eq!(
        found(&format!("[kafka.properties]\n\"sasl.password\" = \"{HIDDEN}\"")),
        [
            "kafka.properties.sasl.password @ w.toml:2: a secret in a place that others can read; environment variable \
          WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD, or WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD_FILE with the path \
          of a file that holds it"
        ]
    );
    assert_eq!(
        found(&format!("schema_registry.password = \"{HIDDEN}\"")),
        [
            "schema_registry.password @ w.toml:1: a secret in a place that others can read; environment variable \
          WARPTAPE__SCHEMA_REGISTRY__PASSWORD, or WARPTAPE__SCHEMA_REGISTRY__PASSWORD_FILE with the path of a file that \
          holds it"
        ]
    );
    assert_eq!(
        found(&format!("[hot_state]\nurl = \"rediss://:{HIDDEN}@host\"")),
        ["hot_state.url @ w.toml:2: a secret in a place that others can read; environment variable \
          WARPTAPE__HOT_STATE__URL, or WARPTAPE__HOT_STATE__URL_FILE with the path of a file that holds it"]
    );
    found(&format!("[schema_registry]\nurl = \"http://me:{HIDDEN}@host:1\""));
    found(&format!("[kafka.properties]\nsasl.password = [\"{HIDDEN}\"]"));
    found(&format!("[kafka.property]\nsasl.password = \"{HIDDEN}\""));
    // For a line that is not TOML, the message gives the line's number, but not its text.
    let broken =
        read(&format!("[kafka.properties]\nsasl.password = \"{HIDDEN}"), &[], &[]).unwrap_err().to_string();
    assert!(broken.contains("line 2") && !broken.contains(HIDDEN), "{broken}");

    let files = [
        ("/no/such/file", "the file \"/no/such/file\", which cannot be read"),
        ("/", "which is not a file of at most 65536 bytes"),
        ("/dev/null", "which is not a file of at most 65536 bytes"),
    ];
    for (path, part) in files {
        let found = mistakes("", &[("WARPTAPE__SCHEMA_REGISTRY__PASSWORD_FILE", path)], &[]);
        assert!(found.len() == 1 && found[0].contains(part), "{found:?}");
    }
    let without_name = [("WARPTAPE__SCHEMA_REGISTRY__PASSWORD", HIDDEN)];
    assert_eq!(
        mistakes("schema_registry.url = \"http://r\"", &without_name, &[]),
        ["schema_registry.username @ default: \"\"; a user name, because a password is given"]
    );
}

#[test]
fn properties_of_librdkafka_are_passed_on_but_warptapes_own() {
    let value = |toml: &str, environment: &[(&str, &str)], name: &str| {
        let (settings, _) = read(toml, environment, &[]).unwrap();
        settings.kafka.properties.get(name).map(|value| value.reveal().to_owned())
    };
    let quoted =
        "[kafka.properties]\n\"ssl.ca.location\" = \"file\"\n\"enable.ssl.certificate.verification\" = false";
    assert_eq!(value(quoted, &[], "enable.ssl.certificate.verification").as_deref(), Some("false"));
    assert_eq!(value(quoted, &[], "ssl.ca.location").as_deref(), Some("file"));
    // The environment overrides the file, however the file spells the name.
    let environment = [("WARPTAPE__KAFKA__PROPERTIES__SSL__CA__LOCATION", "environment")];
    assert_eq!(value(quoted, &environment, "ssl.ca.location").as_deref(), Some("environment"));

    let found = |toml: &str| mistakes(toml, &[], &[]);
    let allowed = "a table of librdkafka properties by name, except those that Warptape sets itself";
    assert_eq!(
        found("[kafka.properties]\ntransactional.id = \"x\""),
        [format!("kafka.properties.transactional.id @ w.toml:2: a name that is not allowed; {allowed}")]
    );
    assert_eq!(found("kafka.properties = 3"), [format!("kafka.properties @ w.toml:1: 3; {allowed}")]);
}

#[test]
fn a_whole_number_will_do_for_a_number() {
    let (settings, _) = read("[stages.signals]\nzscore_threshold = 4", &[], &[]).unwrap();
    assert_eq!(settings.stages.signals.zscore_threshold, 4.0);
}

#[test]
fn empty_sections_are_fine() {
    read("[log]\n[stages]\n[stages.signals]\n", &[], &[]).unwrap();
}

#[test]
fn shown_values_read_back_as_the_same_settings() {
    let toml = "[log]\nurl = 'sqlite:a \"quoted\" \\ path.db'\n[engine]\ndevices = [\"cpu:3\"]\n\
                [stages]\nbars = [\"tick:7\", \"volume:0.5\"]\n[stages.signals]\nrsi_upper = 1e1\nrsi_lower = 0.5";
    let (settings, effective) = read(toml, &[("WARPTAPE__ENGINE__NODE", "n")], &[]).unwrap();
    let shown = effective_toml(&effective);
    let (again, _) = read(&shown, &[], &[]).unwrap();
    assert_eq!(again, settings, "{shown}");
    assert!(shown.contains("# environment WARPTAPE__ENGINE__NODE"), "{shown}");
    assert!(shown.contains("w.toml:4"), "{shown}");
}

#[test]
fn a_broken_file_is_named_with_line_and_column() {
    let error = read("[log]\nurl = \n", &[], &[]).unwrap_err().to_string();
    assert!(error.contains("w.toml is not valid TOML") && error.contains("line 2"), "{error}");
    let duplicate =
        read("[log]\nurl = \"sqlite:a\"\nurl = \"sqlite:b\"\n", &[], &[]).unwrap_err().to_string();
    assert!(duplicate.contains("line 3") && duplicate.contains("url"), "{duplicate}");
}

#[test]
fn a_missing_file_is_named() {
    let sources = Sources { file: Some(PathBuf::from("no/such.toml")), ..Sources::default() };
    let error = load(&sources).unwrap_err().to_string();
    assert!(error.contains("no/such.toml") && error.contains("-c"), "{error}");
}

/// `WARPTAPE_UPDATE_EXAMPLE=1 cargo test -p warptape-pipeline example_file` rewrites the file.
#[test]
fn the_example_file_is_the_table_of_keys() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../warptape.example.toml");
    if std::env::var_os("WARPTAPE_UPDATE_EXAMPLE").is_some() {
        std::fs::write(&path, example_toml()).expect("the example file can be written");
    }
    let text = std::fs::read_to_string(&path).expect("the example file");
    assert_eq!(text, example_toml(), "run with WARPTAPE_UPDATE_EXAMPLE=1 to write it anew");
    let (settings, _) = read(&text, &[], &[]).unwrap();
    let (defaults, _) = load(&Sources { cores: 8, ..Sources::default() }).unwrap();
    assert_eq!(settings, defaults);
}

#[test]
fn a_password_among_the_arguments_is_warned_of() {
    let said =
        |giver, key, value: &str| exposed_password(&Assignment { giver, key, value: value.to_owned() });
    let hot = said("--hot-state", "hot_state.url", "redis://user:secret@cache").expect("it has a password");
    assert_eq!(
        hot,
        "--hot-state contains a password, which all users of this machine can see in the list of processes: \
         use environment variable WARPTAPE__HOT_STATE__URL, or WARPTAPE__HOT_STATE__URL_FILE with the path \
         of a file that holds it"
    );
    for exposed in ["kafka:user:secret@broker:9092", "kafka://user:secret@broker:9092"] {
        let log = said("--log", "log.url", exposed).expect("it has a password");
        assert!(
            log.contains("WARPTAPE__KAFKA__PROPERTIES__SASL__PASSWORD_FILE") && !log.contains("secret"),
            "{log}"
        );
    }
    let refused = mistakes("log.url = \"kafka:user:secret@broker:9092\"", &[], &[]);
    assert!(refused[0].contains("kafka:user:***@broker:9092"), "{refused:?}");
    assert!(!refused.concat().contains("secret"), "{refused:?}");
    for sound in ["kafka:a:9092,b:9092", "sqlite:a:b@c.db"] {
        assert_eq!(said("--log", "log.url", sound), None);
    }
    for sound in ["memory", "redis://cache", "redis://user@cache:6379"] {
        assert_eq!(said("--hot-state", "hot_state.url", sound), None);
    }
}
