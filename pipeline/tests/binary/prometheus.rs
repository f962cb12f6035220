//! A real Prometheus with the project's rules that scrapes the pipelines of a test: queries, and times of alerts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::processes::{DEADLINE, Running, folder};

/// Text before the endpoint's address on a pipeline's standard error.
const SAYS: &str = "metrics and health: ";
/// Wait of a test between two checks of values that change once a second.
const LOOK: Duration = Duration::from_millis(200);
/// Greatest number of ports to try, because another process may take a free port a moment later.
const PORTS_MAX: usize = 10;
/// Time over which past alerts are searched, in seconds; it exceeds the duration of any test.
const HISTORY_S: f64 = 1_200.0;

/// Returns a file of the project's `deploy` folder.
pub fn deployed(path: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Waits until the endpoint of a pipeline listens, and returns its URL.
#[track_caller]
pub fn endpoint_of(run: &mut Running) -> String {
    run.await_saying(SAYS);
    let said = run.said();
    let url = said.lines().find_map(|line| line.strip_prefix(SAYS)).expect("it was just there");
    url.to_owned()
}

/// Returns the status and the text of a page; `None` without an answer.
pub fn get(url: &str, query: &[(&str, &str)]) -> Option<(u16, String)> {
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(DEADLINE))
        .http_status_as_error(false)
        .build()
        .new_agent();
    let mut answer = agent.get(url).query_pairs(query.iter().copied()).call().ok()?;
    Some((answer.status().as_u16(), answer.body_mut().read_to_string().ok()?))
}

/// Returns the state of a component and its reason, from `/health`.
pub fn component(endpoint: &str, name: &str) -> Option<(String, String)> {
    let (_, text) = get(&format!("{endpoint}/health"), &[])?;
    let health: Value = serde_json::from_str(&text).expect("JSON");
    let components = health["components"].as_array().expect("components");
    let found = components.iter().find(|component| component["name"] == name)?;
    let text = |key: &str| found[key].as_str().expect("a text").to_owned();
    Some((text("state"), text("reason")))
}

/// A series: its labels and its value.
pub type Series = (BTreeMap<String, String>, f64);

/// A server that scrapes and evaluates once a second; it is killed when dropped.
pub struct Prometheus {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts a server that scrapes instances, given by name and URL of their endpoints. `reads_native` enables native
    /// histograms.
    pub fn start(instances: &[(&str, &str)], reads_native: bool) -> Prometheus {
        for _ in 0..PORTS_MAX {
            let folder = folder();
            configure(folder.path(), instances);
            let port = free_port();
            let mut command = Command::new("prometheus");
            command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn"]);
            command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
            if reads_native {
                command.arg("--enable-feature=native-histograms");
            }
            let log = fs::File::create(folder.path().join("log")).expect("a file");
            let child = command
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(log)
                .spawn()
                .expect("prometheus starts: tests/run --all installs it (tests/packages.sh; Debian: apt-get install prometheus)");
            let url = format!("http://127.0.0.1:{port}");
            let mut server = Prometheus { child, url, _folder: folder };
            if server.answers() {
                return server;
            }
        }
        panic!("prometheus ended by itself on {PORTS_MAX} ports");
    }

    /// Waits until the server is ready; false if it ended.
    fn answers(&mut self) -> bool {
        let started = Instant::now();
        let ready = format!("{}/-/ready", self.url);
        while get(&ready, &[]).is_none_or(|(status, _)| status != 200) {
            if self.child.try_wait().expect("a child can be waited for").is_some() {
                return false;
            }
            assert!(started.elapsed() < DEADLINE, "prometheus does not get ready");
            std::thread::park_timeout(LOOK);
        }
        true
    }

    /// Returns the data of an API answer.
    #[track_caller]
    fn ask(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let url = format!("{}/api/v1/{path}", self.url);
        let (_, text) = get(&url, query).expect("prometheus answers");
        let mut answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{query:?}: {text}"));
        assert_eq!(answer["status"], "success", "{query:?}: {text}");
        answer["data"].take()
    }

    /// Returns the current number of series of an expression, including native histograms.
    #[track_caller]
    pub fn count(&self, expression: &str) -> usize {
        self.ask("query", &[("query", expression)])["result"].as_array().expect("a vector").len()
    }

    /// Returns the current values of an expression.
    #[track_caller]
    pub fn query(&self, expression: &str) -> Vec<Series> {
        let data = self.ask("query", &[("query", expression)]);
        let series = data["result"].as_array().expect("a vector").iter();
        series.map(|series| (labels(series), number(&series["value"][1]))).collect()
    }

    /// Returns the value of an expression with a single series; `None` without a series.
    #[track_caller]
    pub fn number(&self, expression: &str) -> Option<f64> {
        let found = self.query(expression);
        assert!(found.len() <= 1, "{expression}: {found:?}");
        found.first().map(|(_, value)| *value)
    }

    /// Returns the time at which an expression first had a series, according to the server's clock.
    #[track_caller]
    fn first_s(&self, expression: &str) -> Option<f64> {
        let now_s = number(&self.ask("query", &[("query", "time()")])["result"][1]);
        let times = [now_s - HISTORY_S, now_s].map(|time_s| format!("{time_s:.3}"));
        let range = [("query", expression), ("start", &times[0]), ("end", &times[1]), ("step", "0.5")];
        let data = self.ask("query_range", &range);
        let series = data["result"].as_array().expect("a matrix").iter();
        series.filter_map(|series| series["values"][0][0].as_f64()).min_by(f64::total_cmp)
    }

    /// Returns the names of an instance's firing alerts.
    #[track_caller]
    pub fn firing(&self, instance: &str) -> BTreeSet<String> {
        self.alerts(&format!("ALERTS{{alertstate=\"firing\", instance=\"{instance}\"}}"))
    }

    /// Returns the names of an instance's alerts that fire or have fired.
    #[track_caller]
    pub fn fired(&self, instance: &str) -> BTreeSet<String> {
        let ever =
            format!("last_over_time(ALERTS{{alertstate=\"firing\", instance=\"{instance}\"}}[{HISTORY_S}s])");
        self.alerts(&ever)
    }

    #[track_caller]
    fn alerts(&self, expression: &str) -> BTreeSet<String> {
        self.query(expression).into_iter().filter_map(|(mut labels, _)| labels.remove("alertname")).collect()
    }

    /// Waits until an alert of an instance fires. `effect` is the fault's effect on the metrics. Returns the seconds
    /// from its first series to the alert, according to the server's clock.
    #[track_caller]
    pub fn await_alert(&self, alert: &str, instance: &str, effect: &str) -> f64 {
        let fires =
            format!("ALERTS{{alertname=\"{alert}\", alertstate=\"firing\", instance=\"{instance}\"}}");
        self.run_until(&format!("{alert} of {instance} fires"), || {
            self.first_s(&fires).zip(self.first_s(effect)).map(|(fired_s, effect_s)| fired_s - effect_s)
        })
    }

    /// Waits until `reached` returns a value.
    #[track_caller]
    pub fn run_until<T>(&self, what: &str, mut reached: impl FnMut() -> Option<T>) -> T {
        let started = Instant::now();
        loop {
            if let Some(found) = reached() {
                return found;
            }
            if started.elapsed() >= DEADLINE {
                let firing = self.query("ALERTS");
                panic!("{what}: not within {DEADLINE:?}; alerts: {firing:?}");
            }
            std::thread::park_timeout(LOOK);
        }
    }

    /// Asserts that the server has loaded the rules and evaluates each without an error. Returns the alerts by name.
    #[track_caller]
    pub fn rules(&self) -> BTreeMap<String, Value> {
        let groups = self.ask("rules", &[]);
        let groups = groups["groups"].as_array().expect("groups").iter();
        let rules = groups.flat_map(|group| group["rules"].as_array().expect("rules").clone());
        let mut alerts = BTreeMap::new();
        for rule in rules {
            assert_eq!(rule["health"], "ok", "{rule}");
            if rule["type"] == "alerting" {
                alerts.insert(rule["name"].as_str().expect("a name").to_owned(), rule);
            }
        }
        alerts
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn configure(folder: &Path, instances: &[(&str, &str)]) {
    // Only the interval differs from the deployed rules.
    let rules = deployed("prometheus/warptape.rules.yml").replace("interval: 5s", "interval: 1s");
    fs::write(folder.join("warptape.rules.yml"), rules).expect("a file");
    // Verifiers are scraped by a job of their own.
    let (verifiers, pipelines): (Vec<_>, Vec<_>) =
        instances.iter().partition(|(name, _)| name.starts_with("verifier"));
    let job = |name: &str, instances: &[&(&str, &str)]| {
        let targets = instances.iter().map(|(name, url)| {
            let address = url.strip_prefix("http://").expect("an endpoint without TLS");
            format!("      - targets: ['{address}']\n        labels: {{instance: '{name}'}}\n")
        });
        format!("\x20 - job_name: {name}\n\x20   static_configs:\n{}", targets.collect::<String>())
    };
    let jobs: String = [("warptape", &pipelines), ("warptape-verifier", &verifiers)]
        .into_iter()
        .filter(|(_, instances)| !instances.is_empty())
        .map(|(name, instances)| job(name, instances))
        .collect();
    let configuration = format!(
        "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
         rule_files: [warptape.rules.yml]\n\
         scrape_configs:\n{jobs}"
    );
    fs::write(folder.join("prometheus.yml"), configuration).expect("a file");
}

fn labels(series: &Value) -> BTreeMap<String, String> {
    let labels = series["metric"].as_object().expect("labels").iter();
    labels.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect()
}

fn number(value: &Value) -> f64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{value} is no number"))
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound address").port()
}
