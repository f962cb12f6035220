//! The endpoint's OpenAPI document: its pages and the command that clients may post.

use serde_json::{Map, Value, json};

use super::pages::{CONTROL, LIVE, OPENAPI, PAGE_ABOUT, Page, ROUTES};

/// Returns the OpenAPI document.
pub(super) fn openapi() -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        let mut responses = json!({"200": answer(route.about, route.media)});
        if matches!(route.page, Page::Metrics(_)) {
            for media in ["application/openmetrics-text", "application/vnd.google.protobuf"] {
                responses["200"]["content"][media] = json!({});
            }
        }
        if !route.of_verifier {
            responses["404"] = told("The process is a verifier.");
        }
        if route.may_be_unavailable {
            responses["503"] = answer("The same page while the state is bad", route.media);
        }
        // Anyone may call a probe.
        let is_probe = matches!(route.page, Page::Live | Page::Ready);
        let security = if is_probe { json!([{}]) } else { json!([{}, {"token": []}]) };
        if !is_probe {
            refusals(&mut responses);
        }
        let get = json!({"summary": route.about, "security": security, "responses": responses});
        paths.insert(route.path.to_owned(), json!({"get": get}));
    }
    let page = json!({
        "summary": PAGE_ABOUT, "security": [{}],
        "responses": {"200": {"description": PAGE_ABOUT, "content": {"text/html": {}, "text/plain": {}}}},
    });
    paths.insert("/".to_owned(), json!({"get": page}));
    for (path, media, parameters, about) in &LIVE {
        let mut responses = json!({"200": answer(about, media)});
        responses["404"] = told("The process is a verifier, or has not read what is asked for.");
        if !parameters.is_empty() {
            responses["400"] = told("A parameter is missing or wrong.");
        }
        if *path != "/live" {
            responses["429"] = told("The answer is not ready: ask again in a second.");
        }
        if *path == "/why.txt" {
            responses["503"] = told("The log cannot be read, or the explanation took too long.");
        }
        refusals(&mut responses);
        let parameters: Vec<Value> = parameters.iter().map(|(name, is_required, about)| {
            json!({"name": name, "in": "query", "required": is_required, "description": about, "schema": {"type": "string"}})
        }).collect();
        let get = json!({"summary": about, "security": [{}, {"token": []}], "parameters": parameters, "responses": responses});
        paths.insert((*path).to_owned(), json!({"get": get}));
    }
    let get = json!({
        "summary": "this document", "security": [{}], "responses": {"200": answer("OpenAPI", "application/json")}
    });
    paths.insert(OPENAPI.to_owned(), json!({"get": get}));
    paths.insert(CONTROL.to_owned(), json!({"post": control()}));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Warptape",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "HTTP endpoint of `warptape run`, and of `warptape replay verify --follow --listen`, which has no /control and no pages of devices and performance.",
        },
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    })
}

/// Adds the answers to clients that lack access.
fn refusals(responses: &mut Value) {
    responses["421"] = told("The Host header is not a name of the endpoint.");
    responses["401"] = told("A token is required (endpoint.token) and was not presented.");
    responses["403"] =
        told("No token is configured (endpoint.token), and the page may not be read without one.");
}

fn answer(about: &str, media: &str) -> Value {
    json!({"description": about, "content": {media: {}}})
}

fn told(why: &str) -> Value {
    answer(why, "text/plain")
}

/// Returns the description of a posted command and its answers.
fn control() -> Value {
    let posted = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["command"],
        "properties": {
            "command": {
                "description": "A command with its fields, as in docs/control.md and schemas/avro/control.avsc.",
                "type": ["object", "string"],
            },
            "by": {"type": "string", "default": "http", "description": "Name of the operator, recorded in the journal."},
            "timeout_s": {
                "type": "integer", "minimum": 1, "maximum": super::control::TIMEOUT_S_MAX, "default": super::control::TIMEOUT_S,
                "description": "Longest wait for the answer, in seconds. The process refuses a command that \
                                it reads later.",
            },
        },
        "examples": [{"command": {"DrainLane": {"lane": 1}}, "by": "NAME", "timeout_s": 10}],
    });
    let error = |why: &str| answer(why, "application/json");
    json!({
        "summary": "send a command to this process; the answer is a ControlResult",
        "security": [{"token": []}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": posted}}},
        "responses": {
            "200": answer("Done.", "application/json"),
            "400": error("The body is not a command."),
            "401": told("The token was not presented, or is wrong."),
            "403": told("No token is configured (endpoint.token), so commands are not accepted."),
            "404": told("The process is a verifier and takes no commands."),
            "408": error("The body of the command did not arrive in time."),
            "409": answer("The process refused the command, with the reason.", "application/json"),
            "413": error("The command is too long."),
            "500": error("The command could not be given."),
            "502": error("The log cannot be written or read."),
            "503": error("Another command is under way."),
            "504": error("No answer within timeout_s. The process refuses the command if it reads it later."),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `WARPTAPE_UPDATE_DOCS=1 cargo test -p warptape-pipeline --lib document_in_docs` rewrites the file.
    #[test]
    fn the_document_in_docs_is_that_of_the_endpoint() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/openapi.json");
        let text = format!("{:#}\n", openapi());
        if std::env::var_os("WARPTAPE_UPDATE_DOCS").is_some() {
            std::fs::write(path, &text).expect("the document");
        }
        let found = std::fs::read_to_string(path).expect("the document");
        assert!(found == text, "run with WARPTAPE_UPDATE_DOCS=1 to write it anew");
    }
}
