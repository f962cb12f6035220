//! A client of a schema registry: a method for each of the five REST requests that Warptape uses.
//!
//! The client uses plain HTTP. The crate `schema_registry_converter` cannot set compatibility, and its blocking API
//! needs reqwest with hyper and a runtime of its own.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

use super::ids::guid_text;
use super::{RegistryError, RegistryProblem};
use crate::http_agent::http_agent;
use crate::settings::{RegistrySettings, Secret};

/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest wait for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Greatest length of an answer, in bytes; far more than any schema has.
const ANSWER_BYTES_MAX: u64 = 4 << 20;
/// Greatest number of characters of an answer that an error repeats.
const ANSWER_SHOWN_MAX: usize = 300;
/// Content type of the REST interface.
const CONTENT_TYPE: &str = "application/vnd.schemaregistry.v1+json";
/// The registry's own error code for an unknown id, beside the HTTP status 404.
const SCHEMA_NOT_FOUND: i64 = 40_403;

/// A client of one registry.
#[derive(Debug)]
pub struct RegistryClient {
    agent: Agent,
    url: String,
    /// Value of the header `Authorization`.
    authorization: Option<Secret>,
}

/// An answer of the registry to a failed request.
#[derive(Deserialize)]
struct Failure {
    error_code: i64,
    message: String,
}

impl RegistryClient {
    /// Creates a client, which sends nothing yet.
    pub fn new(settings: &RegistrySettings) -> Self {
        let authorization = (!settings.username.is_empty()).then(|| {
            let password = settings.password.as_ref().map_or("", Secret::reveal);
            let user = format!("{}:{password}", settings.username);
            Secret::new(format!("Basic {}", STANDARD.encode(user)))
        });
        Self { agent: http_agent(CONNECT_TIMEOUT, ANSWER_TIMEOUT), url: settings.url.clone(), authorization }
    }

    /// Returns the registry's address, for messages.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets the rule by which the registry accepts further versions of a subject.
    pub fn set_compatibility(&self, subject: &str, level: &str) -> Result<(), RegistryError> {
        let path = format!("/config/{}", escaped(subject));
        self.send("PUT", &path, Some(&json!({ "compatibility": level })))?.success().map(drop)
    }

    /// Returns the id of an Avro schema; registers it as a version of the subject if it is not one yet.
    pub fn register(&self, subject: &str, schema: &str) -> Result<u32, RegistryError> {
        #[derive(Deserialize)]
        struct Registered {
            id: u32,
        }
        let path = format!("/subjects/{}/versions", escaped(subject));
        let answer = self.send("POST", &path, Some(&json!({ "schemaType": "AVRO", "schema": schema })))?;
        if answer.status == StatusCode::CONFLICT {
            let found =
                format!("subject {subject} does not accept the schema of Warptape: {}", answer.said());
            return Err(answer.error(RegistryProblem::Incompatible, found));
        }
        answer.parsed::<Registered>().map(|registered| registered.id)
    }

    /// Returns the schema with this id; `None` if the registry has none.
    pub fn schema(&self, id: u32) -> Result<Option<String>, RegistryError> {
        #[derive(Deserialize)]
        struct Found {
            schema: String,
        }
        let answer = self.send("GET", &format!("/schemas/ids/{id}"), None)?;
        if answer.status == StatusCode::NOT_FOUND
            && answer.failure().is_some_and(|failure| failure.error_code == SCHEMA_NOT_FOUND)
        {
            return Ok(None);
        }
        answer.parsed::<Found>().map(|found| Some(found.schema))
    }

    /// Returns the id of the schema with this guid; `None` if the registry has none. If there are several ids, the one
    /// in the default context is returned.
    pub fn id_of_guid(&self, guid: [u8; 16]) -> Result<Option<u32>, RegistryError> {
        #[derive(Deserialize)]
        struct Found {
            context: String,
            id: u32,
        }
        let answer = self.send("GET", &format!("/schemas/guids/{}/ids", guid_text(guid)), None)?;
        if answer.status == StatusCode::NOT_FOUND
            && answer.failure().is_some_and(|failure| failure.error_code == SCHEMA_NOT_FOUND)
        {
            return Ok(None);
        }
        let found: Vec<Found> = answer.parsed()?;
        let default = found.iter().find(|found| found.context == ".");
        Ok(default.or(found.first()).map(|found| found.id))
    }

    /// True if a schema registry answers at the address.
    pub fn answers(&self) -> bool {
        let answer = self.send("GET", "/config", None);
        answer.is_ok_and(|answer| answer.parsed::<serde_json::Map<String, Value>>().is_ok())
    }

    /// Returns the error for an id under which the registry does not return the registered schema.
    pub fn not_kept(&self, subject: &str, id: u32, has_another: bool) -> RegistryError {
        let what = if has_another { "another schema" } else { "no schema" };
        let found = format!(
            "the schema of subject {subject} was registered as id {id}, but the registry holds {what} under \
             that id: records written with it could not be read"
        );
        RegistryError { url: self.url.clone(), problem: RegistryProblem::Unexpected, found }
    }

    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<HttpAnswer<'_>, RegistryError> {
        let url = format!("{}{path}", self.url);
        let sent = match (method, body) {
            ("GET", _) => self.authorized(self.agent.get(&url)).call(),
            ("PUT", Some(body)) => send_body(self.authorized(self.agent.put(&url)), body),
            (_, Some(body)) => send_body(self.authorized(self.agent.post(&url)), body),
            (method, None) => unreachable!("{method} has a body"),
        };
        let unreachable = |error: ureq::Error| RegistryError {
            url: self.url.clone(),
            problem: RegistryProblem::Unreachable,
            found: format!("the schema registry does not answer ({error})"),
        };
        let mut response: Response<Body> = sent.map_err(unreachable)?;
        let text = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        let answer = HttpAnswer {
            url: &self.url,
            request: format!("{method} {path}"),
            status: response.status(),
            text: text.map_err(unreachable)?,
        };
        let problem = match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => RegistryProblem::Refused,
            StatusCode::TOO_MANY_REQUESTS => RegistryProblem::Unreachable,
            status if status.is_server_error() => RegistryProblem::Unreachable,
            _ => return Ok(answer),
        };
        Err(answer.error(problem, answer.described()))
    }

    fn authorized<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        let request = request.header("Accept", CONTENT_TYPE);
        match &self.authorization {
            Some(authorization) => request.header("Authorization", authorization.reveal()),
            None => request,
        }
    }
}

fn send_body(
    request: ureq::RequestBuilder<ureq::typestate::WithBody>,
    body: &Value,
) -> Result<Response<Body>, ureq::Error> {
    request.content_type(CONTENT_TYPE).send(body.to_string())
}

/// An answer that was read completely.
struct HttpAnswer<'a> {
    url: &'a str,
    request: String,
    status: StatusCode,
    text: String,
}

impl HttpAnswer<'_> {
    fn success(self) -> Result<Self, RegistryError> {
        if self.status.is_success() { Ok(self) } else { Err(self.unexpected()) }
    }

    fn parsed<T: for<'de> Deserialize<'de>>(self) -> Result<T, RegistryError> {
        let answer = self.success()?;
        serde_json::from_str(&answer.text).map_err(|_| answer.unexpected())
    }

    fn failure(&self) -> Option<Failure> {
        serde_json::from_str(&self.text).ok()
    }

    /// Returns the registry's error message; the answer's text if there is none.
    fn said(&self) -> String {
        self.failure().map_or_else(|| shortened(&self.text), |failure| shortened(&failure.message))
    }

    fn described(&self) -> String {
        format!("{} got an answer with status {}: {}", self.request, self.status.as_u16(), self.said())
    }

    fn unexpected(&self) -> RegistryError {
        self.error(RegistryProblem::Unexpected, self.described())
    }

    fn error(&self, problem: RegistryProblem, found: String) -> RegistryError {
        RegistryError { url: self.url.to_owned(), problem, found }
    }
}

/// Cuts a text to one line of limited length.
fn shortened(text: &str) -> String {
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match line.char_indices().nth(ANSWER_SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns a subject as part of a path. Names of topics and records consist of letters, digits, `.`, `_` and `-`, which
/// need no escape.
fn escaped(subject: &str) -> &str {
    debug_assert!(
        subject.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')),
        "{subject}"
    );
    subject
}
