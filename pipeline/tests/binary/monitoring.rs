//! Alerts and the dashboard over real pipelines with planted faults. `/health` names each fault, its alert fires and no
//! other does, and every query of the dashboard gets an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use warptape_eventlog::{Durability, EventLog, KafkaOptions, NewRecord, SqliteLog};
use warptape_pipeline::endpoint::{METRICS, VERIFIER_METRICS};

use super::broker::Broker;
use super::disk_full::{Disk, IN_NAMESPACE, NO_MOUNT, run_in_namespace};
use super::kafka_market::Market;
use super::processes::{Running, folder, run_until_drained, texts, warptape};
use super::prometheus::{Prometheus, component, deployed, endpoint_of, get};
use super::redis_server::RedisServer;
use super::verifier::Verifier;

/// Longest time from a fault's effect on the metrics to its alert, in seconds. The next constant is the factor for a
/// machine that is busy with other tests.
const FIRES_MAX_S: f64 = 30.0;
const BUSY: f64 = 2.0;
/// Alert that may fire because other tests keep the machine busy, which delays pipelines.
const OF_A_BUSY_MACHINE: &str = "WarptapeSignalsSlow";

/// Configuration without breakers, because on a busy machine a lane may be slower than others by chance.
const CONFIGURATION: &str = "\
engine.devices = [\"cpu:2\"]
stages.bars = [\"1s\", \"tick:20\"]
topics.partitions = 2
breakers.slow_percent = 0
";

/// A pipeline on an embedded log of its own.
struct Pipeline {
    name: &'static str,
    folder: TempDir,
    run: Running,
    endpoint: String,
    /// Feed of an endless market.
    feed: Running,
}

impl Pipeline {
    fn start(name: &'static str, settings: &str, environment: &[(&str, &str)]) -> Pipeline {
        let folder = folder();
        let path = folder.path();
        fs::write(path.join("warptape.toml"), format!("{settings}\n{CONFIGURATION}")).expect("a file");
        let common = ["-c", "warptape.toml", "--log", "sqlite:market.db"];
        let feed =
            ["feed", "synth", "--ticks", "1000000000", "--batch", "16", "--symbols", "30", "--rate", "500"];
        let feed = Running::start(path, &[&feed[..], &common].concat());
        let run = [&["run", "--listen", "127.0.0.1:0"][..], &common].concat();
        let mut run = Running::start_with(path, &run, environment);
        let endpoint = endpoint_of(&mut run);
        Pipeline { name, folder, run, endpoint, feed }
    }

    fn warptape(&self, arguments: &[&str]) {
        let common = ["-c", "warptape.toml", "--log", "sqlite:market.db"];
        texts(&warptape(self.folder.path(), &[arguments, &common].concat()), 0);
    }

    fn log(&self) -> SqliteLog {
        SqliteLog::open_existing(self.folder.path().join("market.db")).expect("the log of the feed")
    }

    fn instance(&self) -> (&str, &str) {
        (self.name, &self.endpoint)
    }
}

/// A fault, with its effect and the alerts that may fire.
struct Fault<'a> {
    instance: &'a str,
    endpoint: &'a str,
    alert: &'a str,
    /// Effect of the fault on the metrics: an expression that has a series from the effect on.
    effect: &'a str,
    component: &'a str,
    /// Text that the component's reason must contain.
    reason: &'a str,
    /// Alerts that may fire in consequence.
    consequences: &'a [&'a str],
}

impl Fault<'_> {
    /// Waits until the component names the fault and the alert fires, and asserts that no other alert has fired. Prints
    /// how long this took, if the time of the fault is known.
    #[track_caller]
    fn check(&self, prometheus: &Prometheus, planted: Option<Instant>) {
        let Fault { instance, alert, .. } = self;
        let since_s = || planted.map(|planted| planted.elapsed().as_secs_f64());
        let effect = self.effect.replace("{}", &format!("{{instance=\"{instance}\"}}"));
        prometheus.run_until(&format!("{} of {instance} names the fault", self.component), || {
            let (state, reason) = component(self.endpoint, self.component)?;
            (state != "ok" && reason.contains(self.reason)).then_some(())
        });
        let named_s = since_s();
        let after_s = prometheus.await_alert(alert, instance, &effect);
        let fired_s = since_s();
        println!("{instance}: {alert} fires {after_s:.1} s after the fault was seen in the metrics");
        if let Some((named_s, fired_s)) = named_s.zip(fired_s) {
            println!(
                "{instance}: the fault is named in /health after {named_s:.1} s, and {alert} was seen to fire after {fired_s:.1} s"
            );
        }
        assert!(after_s <= BUSY * FIRES_MAX_S, "{alert} of {instance} took {after_s} s");
        let allowed = [self.consequences, &[*alert, OF_A_BUSY_MACHINE]].concat();
        expect_none_but(prometheus, instance, &allowed);
    }
}

#[track_caller]
fn expect_none_but(prometheus: &Prometheus, instance: &str, allowed: &[&str]) {
    let fired = prometheus.fired(instance);
    let others: Vec<_> = fired.iter().filter(|alert| !allowed.contains(&alert.as_str())).collect();
    assert!(others.is_empty(), "{others:?} fired for {instance}; allowed: {allowed:?}");
}

/// Waits until Prometheus has seen a pipeline commit.
#[track_caller]
fn await_commits(prometheus: &Prometheus, instance: &str) {
    let commits = format!(
        "increase(warptape_transactions_total{{instance=\"{instance}\", outcome=\"committed\"}}[20s]) > 0 and on (instance) warptape_ready == 1"
    );
    prometheus.run_until(&format!("{instance} commits"), || (prometheus.count(&commits) > 0).then_some(()));
}

#[test]
#[ignore = "long: see tests/run --all"]
fn each_fault_of_a_pipeline_has_its_alert() {
    let mut redis = RedisServer::start(&[]);
    let hot_state = format!("hot_state.url = \"{}\"", redis.url());
    let well = Pipeline::start("well", "", &[]);
    let mut without_redis = Pipeline::start("without-redis", &hot_state, &[]);
    let poisoned = Pipeline::start("poisoned", "", &[]);
    // The pipeline commits once a minute, so its latency reaches a minute.
    let slow = Pipeline::start("slow", "engine.commit_interval_ms = 60000", &[]);
    let hung = Pipeline::start("hung", "", &[("WARPTAPE_FAILPOINT", "LaneHangs:300")]);
    let all = [&well, &without_redis, &poisoned, &slow, &hung];
    let prometheus = Prometheus::start(&all.map(Pipeline::instance), true);
    for pipeline in [&well, &without_redis, &poisoned] {
        await_commits(&prometheus, pipeline.name);
    }

    redis.kill();
    let without_redis_since = Instant::now();
    let path = poisoned.folder.path().join("market.db");
    let log = SqliteLog::open(path, Durability::Process).expect("the log of the feed");
    let mut producer = log.producer("poison").expect("a producer");
    producer.begin().expect("a transaction");
    for _ in 0..500 {
        let value = b"no tick".to_vec().into();
        let record = NewRecord { topic: "ticks".into(), partition: 1, value, ..NewRecord::default() };
        producer.send(record).expect("a record of the transaction");
    }
    producer.commit().expect("a commit");
    let poisoned_since = Instant::now();

    let fault = |pipeline: &'static str, endpoint| Fault {
        instance: pipeline,
        endpoint,
        alert: "",
        effect: "",
        component: "",
        reason: "",
        consequences: &[],
    };
    let poison = Fault {
        alert: "WarptapeDeadLetterFlood",
        effect: "warptape_dead_letters_total{} > 0",
        component: "dead_letters",
        reason: "dead letters among",
        ..fault("poisoned", &poisoned.endpoint)
    };
    poison.check(&prometheus, Some(poisoned_since));
    let no_redis = Fault {
        alert: "WarptapeHotStateLost",
        effect: "warptape_hot_state_connected{} == 0",
        component: "hot_state",
        reason: "no connection to Redis for",
        ..fault("without-redis", &without_redis.endpoint)
    };
    no_redis.check(&prometheus, Some(without_redis_since));
    let hang = Fault {
        alert: "WarptapeLaneHung",
        effect: "warptape_lane_stalled_seconds{} > 2",
        component: "lanes",
        reason: "has been working on one batch for",
        // Unfinished work of the lane cannot be committed.
        consequences: &["WarptapeLag", "WarptapeLagLarge", "WarptapePartitionPaused"],
        ..fault("hung", &hung.endpoint)
    };
    hang.check(&prometheus, None);
    let lag = Fault {
        alert: "WarptapeLag",
        effect: "warptape_partition_lag_seconds{} > 2",
        component: "lag",
        reason: "records behind; the first has waited for",
        ..fault("slow", &slow.endpoint)
    };
    lag.check(&prometheus, None);

    // The alert of a past fault no longer fires.
    redis.restart();
    without_redis
        .run
        .run_until("Redis is found again", || prometheus.firing("without-redis").is_empty().then_some(()));
    assert_eq!(component(&without_redis.endpoint, "hot_state").expect("an answer").0, "ok");
    // Without a fault, no alert fires.
    expect_none_but(&prometheus, "well", &[OF_A_BUSY_MACHINE]);
    assert_eq!(prometheus.rules().len(), alert_names().len());
}

#[test]
#[ignore = "long: see tests/run --all"]
fn a_lost_broker_has_its_alert_and_its_lag_is_not_known() {
    let broker = Broker::start("monitoring");
    let options =
        KafkaOptions { transaction_timeout: Duration::from_secs(2), ..KafkaOptions::new(&broker.direct) };
    let settings =
        "kafka.session_timeout_ms = 30000\nkafka.request_timeout_ms = 60000\nbreakers.slow_percent = 0";
    let market = Market::reached_by("monitoring", options, format!("kafka:{}", broker.address), settings);
    let mut feed = market.start_feed(7);
    let mut run = market.start_run_with(&["--listen", "127.0.0.1:0"], &[]);
    let endpoint = endpoint_of(&mut run);
    let prometheus = Prometheus::start(&[("kafka", &endpoint)], false);
    await_commits(&prometheus, "kafka");
    run.run_until("its lag is known", || {
        (prometheus.count("warptape_partition_lag_seconds") > 0).then_some(())
    });

    broker.pause();
    let fault = Fault {
        instance: "kafka",
        endpoint: &endpoint,
        alert: "WarptapeLogLost",
        effect: "warptape_log_lost_seconds{} > 0",
        component: "log",
        reason: "broker lost ",
        // Nothing can be committed, and the last transaction stays open.
        consequences: &[
            "WarptapeNotReady",
            "WarptapeCommitStuck",
            "WarptapeCommitsFail",
            "WarptapeLag",
            "WarptapePartitionPaused",
        ],
    };
    fault.check(&prometheus, Some(Instant::now()));
    let (state, reason) = component(&endpoint, "lag").expect("an answer");
    assert!(state == "degraded" && reason.contains("has been unknown for"), "{state}: {reason}");
    prometheus.run_until("its lag is not known", || {
        (prometheus.count("warptape_partition_lag_seconds") == 0).then_some(())
    });

    broker.go_on();
    market.run_on(&mut run, &mut feed);
    run.run_until("nothing fires any more", || {
        let firing = prometheus.firing("kafka");
        // Ticks that were read during the broker's outage count in the latencies of the last minute.
        firing.iter().all(|alert| alert == OF_A_BUSY_MACHINE).then_some(())
    });
    assert_eq!(component(&endpoint, "log").expect("an answer").0, "ok");

    // The partitions end with the marker of the feed's last transaction, whose offset the run never commits.
    feed.stop("TERM");
    run.run_until("nothing is behind any more", || {
        let lags = prometheus.query("warptape_partition_lag_records");
        (!lags.is_empty() && lags.iter().all(|(_, records)| *records == 0.0)).then_some(())
    });
}

#[test]
#[ignore = "long: see tests/run --all"]
fn a_full_disk_is_told_before_and_after() {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| value == "1");
    if is_set(NO_MOUNT) {
        return;
    }
    match Disk::mount() {
        Some(disk) => fill(&disk),
        None if is_set(IN_NAMESPACE) => panic!("no disk can be mounted in a namespace either"),
        None => run_in_namespace("a_full_disk_is_told_before_and_after"),
    }
}

fn fill(disk: &Disk) {
    /// Space left on the disk: less than a tenth of it, but enough for the ticks until the disk is full.
    const SCARCE_KIB: usize = 5 * 1024;
    const FULL_KIB: usize = 0;
    let folder = folder();
    let folder = folder.path();
    // Each tick closes a bar, so the run writes much.
    fs::write(folder.join("w.toml"), CONFIGURATION.replace("tick:20", "tick:1")).expect("a file");
    let path = disk.path().join("w.db");
    let url = format!("sqlite:{}", path.display());
    // Ticks that are in the log are not fed again, so the second feed continues where the first ended.
    let feed = |ticks: &str| {
        let market = ["feed", "synth", "--symbols", "30", "--ticks", ticks, "--batch", "16"];
        texts(&warptape(folder, &[&market[..], &["-c", "w.toml", "--log", &url]].concat()), 0);
    };
    feed("5000");
    let mut run = Running::start(folder, &["run", "-c", "w.toml", "--listen", "127.0.0.1:0", "--log", &url]);
    let endpoint = endpoint_of(&mut run);
    let prometheus = Prometheus::start(&[("disk", &endpoint)], true);
    let log = SqliteLog::open_existing(&path).expect("the log of the feed");
    run_until_drained(&mut run, &log, "warptape");
    run.run_until("it is scraped", || (prometheus.count("warptape_log_disk_free_bytes") == 1).then_some(()));
    assert_eq!(component(&endpoint, "log").expect("an answer").0, "ok");

    disk.fill(SCARCE_KIB);
    let fault = Fault {
        instance: "disk",
        endpoint: &endpoint,
        alert: "WarptapeDiskNearlyFull",
        effect: "warptape_log_disk_free_bytes{} < 0.1 * warptape_log_disk_size_bytes{}",
        component: "log",
        reason: "the disk of the log has ",
        consequences: &[],
    };
    fault.check(&prometheus, Some(Instant::now()));

    // The run must meet the full disk, not the feed, so it is stopped while the feed runs.
    run.signal("STOP");
    feed("10000");
    disk.fill(FULL_KIB);
    let full = Instant::now();
    run.signal("CONT");
    let (status, _, error) = run.finish();
    assert_eq!(status.code(), Some(1), "{error}");
    assert!(error.contains("the disk is full"), "{error}");
    let after_s = prometheus.await_alert("WarptapeDown", "disk", "up{instance=\"disk\"} == 0");
    println!(
        "disk: WarptapeDown fires {:.1} s after the disk was full, and {after_s:.1} s after the first scrape without an answer",
        full.elapsed().as_secs_f64()
    );
    assert!(after_s <= BUSY * FIRES_MAX_S, "it took {after_s} s");
    expect_none_but(&prometheus, "disk", &["WarptapeDown", "WarptapeDiskNearlyFull", OF_A_BUSY_MACHINE]);
}

/// A panel of the dashboard, and one of its queries.
struct Query {
    panel: String,
    expression: String,
}

fn dashboard() -> Value {
    serde_json::from_str(&deployed("grafana/dashboards/warptape.json")).expect("JSON")
}

/// Returns all queries of the dashboard, for all instances and the last five minutes.
fn queries() -> Vec<Query> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut row = "";
    let mut queries = Vec::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        if panel["type"] == "row" {
            row = title;
            continue;
        }
        for target in panel["targets"].as_array().expect("targets") {
            let expression = target["expr"].as_str().expect("an expression");
            let expression = expression.replace("$instance", ".*").replace("$__rate_interval", "5m");
            assert!(!expression.contains('$'), "a variable that this test does not know: {expression}");
            queries.push(Query { panel: format!("{row} / {title}"), expression });
        }
    }
    queries
}

/// Setting with a shadow policy, so that the dashboard has figures of one.
const SHADOW: &str = "risk.shadow = [\"earliest-deadline\"]";

/// Panels that are empty without a GPU, on the embedded log, or while a verifier finds no difference.
const EMPTY: [&str; 3] = ["GPUs / ", "Kafka / ", "Verifier / Difference at sequence"];

#[test]
#[ignore = "long: see tests/run --all"]
fn every_query_of_the_dashboard_is_answered() {
    let redis = RedisServer::start(&[]);
    // Windows last a second, so that forecasts of the load can be judged during the test.
    let autoscale = "autoscale = { policy = \"predictive\", window_s = 1, start_s = 1 }";
    let settings = format!(
        "hot_state.url = \"{}\"\nrisk.quotas = [\"desk limit=10\"]\n{autoscale}\n{SHADOW}",
        redis.url()
    );
    let pipeline = Pipeline::start("seen", &settings, &[]);
    let common = ["-c", "warptape.toml", "--log", "sqlite:market.db"];
    let verifier = Verifier::start(pipeline.folder.path(), &common);
    let instances = [pipeline.instance(), ("verifier", &verifier.endpoint)];
    let servers = [Prometheus::start(&instances, true), Prometheus::start(&instances, false)];
    // Both servers must have scraped the counter before it rises.
    for server in &servers {
        server
            .run_until("it is scraped", || (server.count("warptape_risk_requests_total") > 0).then_some(()));
    }
    let request = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/risk/price.json");
    pipeline.warptape(&["risk", "price", request.to_str().expect("UTF-8"), "--timeout-s", "120"]);
    let all = queries();
    assert!(all.len() > 80, "{}", all.len());
    for (server, name) in servers.iter().zip(["native", "classic"]) {
        for Query { panel, expression } in &all {
            if EMPTY.iter().any(|begin| panel.starts_with(begin)) {
                // The query must be valid, and must have no result.
                assert_eq!(server.count(expression), 0, "{panel}: {expression}");
            } else {
                server.run_until(&format!("{panel} has series ({name}): {expression}"), || {
                    (server.count(expression) > 0).then_some(())
                });
            }
        }
        expect_none_but(server, "seen", &[OF_A_BUSY_MACHINE]);
    }
    let [native, classic] = &servers;
    let now = |expression: &str| classic.number(expression).expect("a number");
    // The tiles of the top row show the current state.
    let tile = |title: &str| {
        let title = format!(" / {title}");
        &all.iter().find(|query| query.panel == title).expect("a tile").expression
    };
    assert_eq!(now(tile("Ready")), 1.0);
    assert!(now(tile("Ticks/s")) > 0.0 && now(tile("Lag")) < 30.0);

    // Once nothing changes, both servers must have the same histogram: one as a native histogram, the other in classic
    // buckets.
    let log = pipeline.log();
    let Pipeline { feed, mut run, endpoint, folder: _folder, .. } = pipeline;
    feed.stop("TERM");
    run_until_drained(&mut run, &log, "warptape");
    for metric in
        ["warptape_tick_to_signal_seconds", "warptape_read_to_seal_seconds", "warptape_commit_seconds"]
    {
        check_histogram(&mut run, &endpoint, metric, native, classic);
    }
    run.stop("TERM");
}

/// Asserts that quantiles of a native histogram equal those of classic buckets, within the resolution of both.
#[track_caller]
fn check_histogram(
    run: &mut Running,
    endpoint: &str,
    metric: &str,
    native: &Prometheus,
    classic: &Prometheus,
) {
    /// Bound of the first classic bucket, in seconds; each further bound is twice the previous one.
    const FIRST_BOUND_S: f64 = 1e-4;
    /// Greatest ratio between the bounds of a bucket of a native histogram.
    const WIDTH: f64 = 1.1;
    let count = run.run_until(&format!("both servers have all of {metric}"), || {
        let (_, page) = get(&format!("{endpoint}/metrics"), &[]).expect("an answer");
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{metric}_count ")));
        let count: Option<f64> = line.expect("a count").parse().ok();
        let of_native = native.number(&format!("histogram_count({metric})"));
        let of_classic = classic.number(&format!("{metric}_count"));
        (of_native == count && of_classic == count).then_some(count).flatten().filter(|count| *count > 10.0)
    });
    assert_eq!(native.count(&format!("{metric}_bucket")), 0, "Prometheus 2 keeps one kind of buckets");
    for quantile in [0.1, 0.5, 0.9, 0.99] {
        let of = |server: &Prometheus, series: &str| {
            server.number(&format!("histogram_quantile({quantile}, {series})")).expect("a quantile")
        };
        let (fine, coarse) = (of(native, metric), of(classic, &format!("{metric}_bucket")));
        let mut upper = FIRST_BOUND_S;
        while upper < coarse {
            upper *= 2.0;
        }
        // The first bucket begins at 0.
        let lower = if upper == FIRST_BOUND_S { 0.0 } else { upper / 2.0 };
        println!(
            "{metric}: {quantile} of {count}: native {fine:.6} s, classic {coarse:.6} s in {lower:.6}..{upper:.6} s"
        );
        assert!(
            (lower / WIDTH..=upper * WIDTH).contains(&fine),
            "{metric} {quantile}: {fine} of {lower}..{upper}"
        );
    }
}

/// Returns the names of the alerts in the rules file.
fn alert_names() -> BTreeSet<String> {
    let rules = deployed("prometheus/warptape.rules.yml");
    let names = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "));
    names.map(str::to_owned).collect()
}

#[test]
fn each_alert_has_a_test_and_a_section_that_says_what_to_do() {
    let rules = deployed("prometheus/warptape.rules.yml");
    let tests = deployed("prometheus/warptape.rules.test.yml");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/alerts.md");
    let page = fs::read_to_string(path).expect("docs/alerts.md is there");
    let mut sections: BTreeMap<&str, &str> = BTreeMap::new();
    for section in page.split("\n### ").skip(1) {
        let (name, text) = section.split_once('\n').expect("a text below the heading");
        assert!(sections.insert(name, text).is_none(), "{name} has two sections");
    }
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    let names = alert_names();
    assert_eq!(sections.keys().copied().collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    assert!(alerts.len() == names.len() && names.len() > 20, "{names:?}");
    for alert in alerts {
        let (name, rule) = alert.split_once('\n').expect("a rule below the name");
        let value = |key: &str| {
            let found = rule.split_once(&format!("{key}: ")).unwrap_or_else(|| panic!("{name} has no {key}"));
            found.1.lines().next().unwrap_or_default()
        };
        let severity = value("severity").trim_end_matches('}');
        assert!(["page", "ticket"].contains(&severity), "{name}: {severity}");
        // A rule about absent series cannot name an instance.
        assert!(
            rule.contains("absent(") || value("summary").contains("{{ $labels.instance }}"),
            "{name} does not say of which instance it is"
        );
        let runbook = value("runbook_url");
        let section = sections[name];
        assert!(section.contains(&format!("**{severity}**")), "docs/alerts.md: {name} is a {severity}");
        assert!(
            runbook == format!("docs/alerts.md#{}", name.to_lowercase())
                || runbook.starts_with("docs/operations.md#")
                    && section.contains(runbook.trim_start_matches("docs/")),
            "docs/alerts.md: {name} leads to {runbook}"
        );
        assert!(
            tests.contains(&format!("alertname=\"{name}\", severity=\"{severity}\"")),
            "no test fires {name} as a {severity}"
        );
    }
}

/// Rules are tested at the shipped intervals, because the time until an alert depends on them.
#[test]
fn intervals_are_those_that_rules_are_tested_at() {
    let all = |text: &str, key: &str, expected: &str| {
        let found: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix(key)).collect();
        assert!(!found.is_empty() && found.iter().all(|value| *value == expected), "{key} {found:?}");
    };
    let configuration = deployed("prometheus/prometheus.yml");
    all(&configuration, "scrape_interval: ", "5s");
    all(&configuration, "evaluation_interval: ", "5s");
    // There is only one group, so a recorded series is ready for the next rule at the same time.
    let rules = deployed("prometheus/warptape.rules.yml");
    assert_eq!(rules.matches("  - name: ").count(), 1);
    all(&rules, "interval: ", "5s");
    all(&deployed("prometheus/warptape.rules.test.yml"), "evaluation_interval: ", "5s");
    all(&deployed("prometheus/warptape.rules.test.yml"), "interval: ", "5s");
    let values = deployed("helm/warptape/values.yaml");
    let (_, monitor) = values.split_once("serviceMonitor:").expect("the chart has a ServiceMonitor");
    assert!(monitor.contains("  interval: 5s\n"), "{monitor}");
}

#[test]
fn rules_and_dashboard_ask_for_metrics_that_there_are() {
    let metrics = METRICS.iter().chain(VERIFIER_METRICS);
    let known: BTreeSet<String> = metrics.map(|metric| metric.full_name()).collect();
    let is_known = |name: &str| {
        let of_histogram = ["_bucket", "_count", "_sum"].iter().find_map(|suffix| name.strip_suffix(suffix));
        known.contains(name) || of_histogram.is_some_and(|name| known.contains(name))
    };
    let asked = |text: &str| -> BTreeSet<String> {
        let words =
            text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != ':');
        // Names of recording rules have a colon.
        let names = words.filter(|word| word.starts_with("warptape_") && !word.contains(':'));
        names.map(str::to_owned).collect()
    };
    let rules = asked(&deployed("prometheus/warptape.rules.yml"));
    let shown = asked(&queries().into_iter().map(|query| query.expression + "\n").collect::<String>());
    let unknown: Vec<_> = rules.union(&shown).filter(|name| !is_known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    // The dashboard must show all metrics.
    let is_shown = |name: &&String| shown.contains(*name) || shown.contains(&format!("{name}_bucket"));
    let hidden: Vec<_> = known.iter().filter(|name| !is_shown(name)).collect();
    let left_out = ["warptape_read_records_total"];
    assert_eq!(hidden, left_out, "metrics that no panel shows");
}
