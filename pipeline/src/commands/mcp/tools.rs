//! The tools: their names, descriptions, schemas and calls.

use std::path::Path;
use std::sync::Arc;

use rmcp::handler::server::common::schema_for_input;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::call::Call;
use super::check::{Mistake, check, check_file_name, check_log};
use super::parameters::{
    Diff, Metrics, Parameters, Report, Shared, Slowest, Tail, Timeline, Topics, Verify, WhatIf, Why, WhyNot,
};

/// A tool.
pub struct Declared {
    /// Its name.
    pub name: &'static str,
    title: &'static str,
    about: &'static str,
    /// Shared parameters that the tool has.
    pub shares: Shares,
    own_schema: fn() -> Result<Arc<JsonObject>, String>,
    call: fn(JsonObject, Shared) -> Result<Call, Mistake>,
}

/// Parameters that a tool shares with others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Shares {
    /// The log, and the form of the answer.
    LogAndForm,
    /// The log alone.
    Log,
    /// The log, and the name of a file with this extension that the tool creates.
    LogAndFile(&'static str),
    /// None: the tool reads the endpoint.
    Nothing,
}

/// Logs, folder and endpoint that the tools may use.
pub struct Access<'a> {
    /// URLs of the logs that may be read, the default one first.
    pub logs: &'a [String],
    /// Folder in which files may be created; `None` if tools only read.
    pub folder: Option<&'a Path>,
    /// True if there is an endpoint to read.
    pub has_endpoint: bool,
}

/// All tools, in the order of their list.
pub static TOOLS: [Declared; 13] = [
    declared::<Report>(
        "report",
        "Facts of the whole run",
        "Start here. Verifies the recorded run against its replay, and explains the slowest signals. \
         `verified.divergence` is null if the run is right; otherwise it names the first difference. \
         `slowest.signals` have the waits that led to each signal, with the lane or step that held it up longest.",
        Shares::Log,
    ),
    declared::<Verify>(
        "verify",
        "Was the run right?",
        "Takes every recorded decision again and compares it with the journal. With `outputs`, it computes every \
         signal again and compares it bit for bit. `divergence` is null if all is identical.",
        Shares::LogAndForm,
    ),
    declared::<Slowest>(
        "slowest",
        "Which signals were late?",
        "Lists the signals that took longest from the publication of their tick to their commit, each with its waits \
         and the main cause.",
        Shares::LogAndForm,
    ),
    declared::<Why>(
        "why",
        "Why did it happen, and when?",
        "Explains a signal, a risk result, a batch or a journal entry: each wait that led to it, the lanes that were \
         possible, the reason for the choice, and what would have changed it. The form `text` says it in words.",
        Shares::LogAndForm,
    ),
    declared::<WhyNot>(
        "why_not",
        "Why did a lane not do more?",
        "Explains the state of a lane at a time: its load, its groups, and why it got no further work.",
        Shares::LogAndForm,
    ),
    declared::<Diff>(
        "diff",
        "How do two runs differ?",
        "Compares two recorded runs: configuration, first different decision, groups on other lanes, and the cost in \
         latency. A is `with` and B is `log`.",
        Shares::LogAndForm,
    ),
    declared::<WhatIf>(
        "what_if",
        "Would another policy or fleet have helped?",
        "Models the recorded run under another policy, configuration or fleet. Differences smaller than the noise \
         floor mean nothing. Without changes it shows the error of the model.",
        Shares::LogAndForm,
    ),
    declared::<Topics>(
        "topics",
        "What does the log have?",
        "Lists the topics of the log with their partitions and offsets, as text.",
        Shares::Log,
    ),
    declared::<Tail>(
        "tail",
        "Records of a topic",
        "Returns the first or the last records of a topic that a read of all its partitions gives, decoded. The order \
         between partitions is not that of time.",
        Shares::Log,
    ),
    declared::<Metrics>(
        "metrics",
        "How does the pipeline fare now?",
        "Reads a page of the running pipeline: rates and latencies, metrics, or health. A status of 503 means bad \
         health.",
        Shares::Nothing,
    ),
    declared::<Report>(
        "write_report",
        "Write the report as a page",
        "Creates NAME.html: one page of the run for people, with rates, latencies, lanes, decisions and the slowest \
         signals. Existing files are never overwritten.",
        Shares::LogAndFile("html"),
    ),
    declared::<Timeline>(
        "write_timeline",
        "Write a timeline for Perfetto",
        "Creates NAME.pftrace: a timeline of lanes, queues, partitions and commits for ui.perfetto.dev. Existing \
         files are never overwritten.",
        Shares::LogAndFile("pftrace"),
    ),
    declared::<WhatIf>(
        "write_model",
        "Write a modelled run as a log",
        "Creates NAME.db: the run that `what_if` models, as a log that `diff` and `why` can read from then on. \
         Existing files are never overwritten.",
        Shares::LogAndFile("db"),
    ),
];

const fn declared<P: Parameters>(
    name: &'static str,
    title: &'static str,
    about: &'static str,
    shares: Shares,
) -> Declared {
    Declared { name, title, about, shares, own_schema: schema_for_input::<P>, call: call::<P> }
}

fn call<P: Parameters>(arguments: JsonObject, shared: Shared) -> Result<Call, Mistake> {
    let parameters: P = serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        match path.as_str() {
            "." => Mistake(error.inner().to_string()),
            _ => Mistake(format!("{path}: {}", error.inner())),
        }
    })?;
    parameters.call(shared)
}

impl Declared {
    /// True if the tool can be called.
    pub fn is_offered(&self, access: &Access<'_>) -> bool {
        match self.shares {
            Shares::LogAndFile(_) => access.folder.is_some(),
            Shares::Nothing => access.has_endpoint,
            Shares::Log | Shares::LogAndForm => true,
        }
    }

    /// True if the tool creates a file.
    fn writes(&self) -> bool {
        matches!(self.shares, Shares::LogAndFile(_))
    }

    /// Describes the tool to clients.
    pub fn described(&self, logs: &[String]) -> Tool {
        let annotations = ToolAnnotations::with_title(self.title)
            .read_only(!self.writes())
            .destructive(false)
            .idempotent(!self.writes())
            .open_world(false);
        Tool::new(self.name, self.about, Arc::new(self.schema(logs)))
            .with_title(self.title)
            .with_annotations(annotations)
    }

    /// Returns the schema of all parameters.
    fn schema(&self, logs: &[String]) -> JsonObject {
        let own = (self.own_schema)().expect("parameters are structs, whose schemas are objects");
        let mut schema = (*own).clone();
        let mut properties = match schema.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => JsonObject::new(),
        };
        for property in properties.values_mut() {
            if let Some(Value::String(description)) = property.get_mut("description") {
                *description = description.replace('\n', " ");
            }
        }
        if let Some(with) = properties.get_mut("with").and_then(Value::as_object_mut) {
            with.insert("enum".to_owned(), json!(logs));
        }
        if self.shares != Shares::Nothing {
            let log =
                json!({ "type": "string", "enum": logs, "default": logs.first(), "description": "The log" });
            properties.insert("log".to_owned(), log);
        }
        match self.shares {
            Shares::LogAndForm => {
                let forms = json!(["json", "text"]);
                let about = "Form of the answer: json has all facts, text is short and in words";
                let form =
                    json!({ "type": "string", "enum": forms, "default": "json", "description": about });
                properties.insert("form".to_owned(), form);
            }
            Shares::LogAndFile(extension) => {
                let about = format!("Name of the file to create, without .{extension}");
                properties.insert("name".to_owned(), json!({ "type": "string", "description": about }));
                let required = schema.entry("required").or_insert_with(|| json!([]));
                if let Some(required) = required.as_array_mut() {
                    required.push("name".into());
                }
            }
            Shares::Log | Shares::Nothing => {}
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
        schema.insert("additionalProperties".to_owned(), false.into());
        schema
    }

    /// Returns the log that a call uses, and the call's work.
    pub fn call(&self, mut arguments: JsonObject, access: &Access<'_>) -> Result<(String, Call), Mistake> {
        check(&arguments, &self.schema(access.logs))?;
        let log = match taken(&mut arguments, "log")? {
            Some(log) => log,
            None => access.logs.first().cloned().unwrap_or_default(),
        };
        check_log("log", &log, access.logs)?;
        let is_json = match taken(&mut arguments, "form")?.as_deref() {
            None | Some("json") => true,
            Some("text") => false,
            Some(other) => return Err(Mistake(format!("form: {other:?} is no form; give json or text"))),
        };
        let creates = match self.shares {
            Shares::LogAndFile(extension) => {
                let name = taken(&mut arguments, "name")?;
                let name =
                    name.ok_or_else(|| Mistake("name: give the name of the file to create".to_owned()))?;
                check_file_name(&name)?;
                access.folder.map(|folder| folder.join(format!("{name}.{extension}")))
            }
            _ => None,
        };
        let shared = Shared { log: log.clone(), logs: access.logs.to_vec(), is_json, creates };
        Ok((log, (self.call)(arguments, shared)?))
    }
}

/// Removes a shared parameter from the arguments and returns it.
fn taken(arguments: &mut JsonObject, name: &str) -> Result<Option<String>, Mistake> {
    match arguments.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(Mistake(format!("{name}: {other} is no text; give one in quotes"))),
    }
}
