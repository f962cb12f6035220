//! A small replacement for a schema registry. It keeps schemas and subjects, answers Warptape's requests as Confluent's
//! documentation specifies, and records every request that deviates from the documentation.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

const CONTENT_TYPE: &str = "application/vnd.schemaregistry.v1+json";
const LEVELS: [&str; 7] =
    ["BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE", "NONE"];
/// First id. It is far from usual offsets, so that ids and offsets are not confused.
const FIRST_ID: u32 = 70_000;

/// Contents of the registry, and its requests so far.
#[derive(Default)]
pub struct State {
    /// Texts of schemas; the id of a schema is its index plus [`FIRST_ID`].
    schemas: Vec<String>,
    /// Ids of the schemas of each subject.
    pub subjects: BTreeMap<String, Vec<u32>>,
    /// Compatibility level of each subject.
    pub levels: BTreeMap<String, String>,
    /// Requests in order, such as `GET /schemas/ids/1`.
    pub requests: Vec<String>,
    /// Requests that deviate from the documentation.
    pub mistakes: Vec<String>,
    /// Required value of the header `Authorization`; `None` if it is not required.
    authorization: Option<String>,
    /// True to answer every request with the error that the service is unavailable.
    pub is_away: bool,
    /// True to give every schema the id of the first one.
    pub has_one_id: bool,
    /// Ids that are answered with another status and text, like the answer of a proxy.
    pub broken: BTreeMap<u32, (u16, &'static str)>,
    /// Ids by guid; a guid is the same in every context.
    pub guids: BTreeMap<String, u32>,
}

/// Returns the configuration of a TLS server on `localhost`, and the certificate to trust, in PEM.
pub fn tls_server() -> (Arc<ServerConfig>, String) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .expect("the key is the certificate's");
    (Arc::new(config), certified.cert.pem())
}

/// A running registry; its thread ends together with the test process.
pub struct RegistryStub {
    state: Arc<Mutex<State>>,
    url: String,
}

impl RegistryStub {
    /// Starts a registry that requires this `Authorization` header; `None`: no header.
    pub fn start(authorization: Option<&str>) -> RegistryStub {
        Self::listen(authorization, None)
    }

    /// Starts a registry that only accepts TLS. Also returns the certificate to trust, in PEM.
    pub fn start_tls() -> (RegistryStub, String) {
        let (config, certificate) = tls_server();
        (Self::listen(None, Some(config)), certificate)
    }

    fn listen(authorization: Option<&str>, tls: Option<Arc<ServerConfig>>) -> RegistryStub {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let url = match tls {
            None => format!("http://127.0.0.1:{port}"),
            Some(_) => format!("https://localhost:{port}"),
        };
        let authorization = authorization.map(str::to_owned);
        let state = Arc::new(Mutex::new(State { authorization, ..State::default() }));
        let shared = state.clone();
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let (state, tls) = (shared.clone(), tls.clone());
                // The client may close the connection at any time.
                std::thread::spawn(move || match tls {
                    None => drop(serve(connection, &state)),
                    Some(tls) => {
                        let session = ServerConnection::new(tls).expect("a configuration that was built");
                        drop(serve(StreamOwned::new(session, connection), &state));
                    }
                });
            }
        });
        RegistryStub { state, url }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no handler panics")
    }

    /// Asserts that every request followed the documentation.
    #[track_caller]
    pub fn assert_documented(&self) {
        let state = self.state();
        assert!(state.mistakes.is_empty() && !state.requests.is_empty(), "{:?}", state.mistakes);
    }
}

impl State {
    /// Returns the id of a schema, which is added if it is new.
    pub fn add(&mut self, schema: &str) -> u32 {
        let index = self.schemas.iter().position(|known| known == schema).unwrap_or_else(|| {
            self.schemas.push(schema.to_owned());
            self.schemas.len() - 1
        });
        FIRST_ID + index as u32
    }

    /// Returns the schema with an id; `None` if there is none.
    pub fn schema(&self, id: u32) -> Option<&str> {
        self.schemas.get(id.checked_sub(FIRST_ID)? as usize).map(String::as_str)
    }

    /// Returns the status and the text of an answer.
    fn response(&mut self, request: &Request) -> (u16, String) {
        let (status, body) = self.answer(request);
        let id = request.path.strip_prefix("/schemas/ids/").and_then(|id| id.parse().ok());
        match id.and_then(|id: u32| self.broken.get(&id)).filter(|_| !self.is_away) {
            Some((status, text)) => (*status, (*text).to_owned()),
            None => (status, body.to_string()),
        }
    }

    fn answer(&mut self, request: &Request) -> (u16, Value) {
        let Request { method, path, .. } = request;
        self.requests.push(format!("{method} {path}"));
        if self.is_away {
            return (503, json!({"error_code": 50_300, "message": "away for a test"}));
        }
        if self.authorization.is_some() && request.header("authorization") != self.authorization.as_deref() {
            return (401, json!({"error_code": 401, "message": "Unauthorized"}));
        }
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (method.as_str(), parts.as_slice()) {
            ("GET", ["config"]) => (200, json!({"compatibilityLevel": "BACKWARD"})),
            ("PUT", ["config", subject]) => self.configure(subject, request),
            ("POST", ["subjects", subject, "versions"]) => self.register(subject, request),
            ("GET", ["schemas", "guids", guid, "ids"]) => {
                self.check(request.body.is_empty(), "a GET has no body", request);
                let ids = self.guids.get(*guid).map(|id| json!({"context": ".", "id": id}));
                (200, ids.into_iter().collect())
            }
            ("GET", ["schemas", "ids", id]) => {
                self.check(request.body.is_empty(), "a GET has no body", request);
                match id.parse().ok().and_then(|id| self.schema(id)) {
                    Some(schema) => (200, json!({"schema": schema})),
                    None => (404, json!({"error_code": 40_403, "message": format!("Schema {id} not found")})),
                }
            }
            _ => {
                self.check(false, "no such request is documented", request);
                (404, json!({"error_code": 404, "message": "HTTP 404 Not Found"}))
            }
        }
    }

    fn configure(&mut self, subject: &str, request: &Request) -> (u16, Value) {
        let body = self.body(request, &["compatibility"]);
        let Some(level) = body["compatibility"].as_str().filter(|level| LEVELS.contains(level)) else {
            return (422, json!({"error_code": 42_203, "message": "Invalid compatibility level"}));
        };
        self.levels.insert(subject.to_owned(), level.to_owned());
        (200, body.clone())
    }

    /// Registers a schema. Compatibility is checked only by name: records with different names are incompatible.
    fn register(&mut self, subject: &str, request: &Request) -> (u16, Value) {
        let body = self.body(request, &["schema", "schemaType"]);
        let name = |text: &str| Some(serde_json::from_str::<Value>(text).ok()?["name"].clone());
        let Some(schema) = body["schema"].as_str().filter(|text| name(text).is_some()) else {
            return (422, json!({"error_code": 42_201, "message": "Invalid schema"}));
        };
        let others = self.subjects.get(subject).cloned().unwrap_or_default();
        if !self.has_one_id && others.iter().any(|&id| self.schema(id).and_then(name) != name(schema)) {
            return (
                409,
                json!({"error_code": 409, "message": "NAME_MISMATCH: Schema being registered is incompatible"}),
            );
        }
        let id = if self.has_one_id { FIRST_ID } else { self.add(schema) };
        if self.has_one_id {
            self.add(schema);
        }
        let versions = self.subjects.entry(subject.to_owned()).or_default();
        if !versions.contains(&id) {
            versions.push(id);
        }
        (200, json!({"id": id}))
    }

    /// Parses the body of a request, which may have only these members.
    fn body(&mut self, request: &Request, members: &[&str]) -> Value {
        self.check(
            request.header("content-type") == Some(CONTENT_TYPE),
            "the content type is another",
            request,
        );
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let known = body.as_object().is_some_and(|object| object.keys().all(|key| members.contains(&&**key)));
        self.check(known, "the body has other members", request);
        body
    }

    fn check(&mut self, right: bool, rule: &str, request: &Request) {
        if !right {
            self.mistakes.push(format!("{rule}: {request:?}"));
        }
    }
}

#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    /// Headers, with names in lower case.
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Reads a request; `None` if the client has closed the connection.
    fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Request>> {
        let mut line = || -> std::io::Result<String> {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            Ok(line.trim_end().to_owned())
        };
        let first = line()?;
        let mut words = first.split(' ').map(str::to_owned);
        let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
        let mut headers = Vec::new();
        loop {
            let header = line()?;
            let Some((name, value)) = header.split_once(':') else { break };
            headers.push((name.to_lowercase(), value.trim().to_owned()));
        }
        let mut request = Request { method, path, headers, body: Vec::new() };
        let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        request.body.resize(length, 0);
        reader.read_exact(&mut request.body)?;
        Ok(Some(request))
    }
}

fn serve(connection: impl Read + Write, state: &Mutex<State>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    while let Some(request) = Request::read(&mut reader)? {
        let (status, body) = state.lock().expect("no handler panics").response(&request);
        let connection = reader.get_mut();
        write!(
            connection,
            "HTTP/1.1 {status} Status\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        connection.flush()?;
    }
    Ok(())
}
