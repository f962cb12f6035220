//! Pages of a running pipeline's endpoint.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::Agent;

use super::child::ANSWER_BYTES_MAX;
use crate::http_agent::http_agent;
use crate::settings::Secret;

/// Longest wait for a page.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Request for a page.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// The page.
    pub name: PageName,
    /// Text that the names of the wanted metrics contain; `None` for all metrics.
    pub containing: Option<String>,
}

/// Pages that can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum PageName {
    /// Rates and latencies of the pipeline
    #[default]
    PerformanceMetrics,
    /// All metrics, as Prometheus reads them
    Metrics,
    /// State of each component, with the reason
    Health,
    /// State of each GPU
    GpuHealth,
    /// Memory of each GPU
    GpuMemory,
}

/// Contents of a page.
#[derive(Debug, PartialEq)]
pub enum Contents {
    /// Status and body of a page in JSON.
    Json(Value),
    /// Lines of metrics.
    Text(String),
}

/// Endpoint of a running pipeline.
#[derive(Clone)]
pub struct Endpoint {
    url: String,
    token: Option<String>,
    agent: Agent,
}

impl Endpoint {
    /// Creates the client of an endpoint from its URL without a path, and its token, if it has one.
    pub fn new(url: &str, token: Option<&Secret>) -> Self {
        let token = token.map(|token| token.reveal().to_owned());
        Self { url: url.to_owned(), token, agent: http_agent(ANSWER_MAX, ANSWER_MAX) }
    }

    /// Gets a page. The error names the remedy.
    pub fn get(&self, page: &Page) -> Result<Contents, String> {
        let path = match page.name {
            PageName::PerformanceMetrics => "performance-metrics",
            PageName::Metrics => "metrics",
            PageName::Health => "health",
            PageName::GpuHealth => "gpu-health",
            PageName::GpuMemory => "gpu-memory",
        };
        let url = format!("{}/{path}", self.url);
        let mut request = self.agent.get(&url);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let answer = request.call();
        let mut answer = answer
            .map_err(|error| format!("{url} does not answer: {error}; check that the pipeline runs"))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX as u64).read_to_string();
        let body = body.map_err(|error| format!("{url}: the answer cannot be read: {error}"))?;
        contents(page, status, &body).ok_or_else(|| format!("{url} answered with status {status}: {body}"))
    }
}

/// Returns the requested contents; `None` if the answer is not the page.
fn contents(page: &Page, status: u16, body: &str) -> Option<Contents> {
    if page.name == PageName::Metrics {
        let containing = page.containing.as_deref().unwrap_or_default();
        return (status == 200).then(|| Contents::Text(lines_of(body, containing)));
    }
    // An endpoint in bad health answers with 503 and the page.
    let body: Value = serde_json::from_str(body).ok().filter(|_| [200, 503].contains(&status))?;
    Some(Contents::Json(json!({ "status": status, "body": body })))
}

/// Returns the lines of the metrics whose names contain a text, with their types and help.
fn lines_of(metrics: &str, containing: &str) -> String {
    let name = |line: &str| {
        let line = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
        line.split([' ', '{']).next().unwrap_or_default().to_owned()
    };
    let wanted = metrics.lines().filter(|line| name(line).contains(containing));
    wanted.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_chosen_by_name() {
        let text =
            "# HELP a_total Ticks b.\n# TYPE a_total counter\na_total{lane=\"b\"} 1\nb_total 2\n# EOF\n";
        let page = |containing: Option<&str>| Page {
            name: PageName::Metrics,
            containing: containing.map(str::to_owned),
        };
        assert_eq!(contents(&page(None), 200, text), Some(Contents::Text(text.to_owned())));
        assert_eq!(contents(&page(Some("b_")), 200, text), Some(Contents::Text("b_total 2\n".to_owned())));
        let a = contents(&page(Some("a_t")), 200, text);
        assert!(matches!(a, Some(Contents::Text(lines)) if lines.lines().count() == 3));
        assert_eq!(contents(&page(None), 401, "no token"), None);
    }

    #[test]
    fn bad_health_is_an_answer() {
        let page = Page { name: PageName::Health, containing: None };
        let expected = json!({"status": 503, "body": {"state": "bad"}});
        assert_eq!(contents(&page, 503, r#"{"state": "bad"}"#), Some(Contents::Json(expected)));
        assert_eq!(contents(&page, 503, "a proxy's page"), None);
        assert_eq!(contents(&page, 404, "{}"), None);
    }
}
