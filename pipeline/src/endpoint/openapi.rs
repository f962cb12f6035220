//! The endpoint as an OpenAPI document: its pages, and the command that may be posted.

use serde_json::{Map, Value, json};

use super::pages::{CONTROL, OPENAPI, Page, ROUTES};

/// The OpenAPI document.
pub(super) fn openapi() -> Value {
    let mut paths = Map::new();
    for route in &ROUTES {
        let mut responses = json!({"200": answer(route.about, route.media), "421": told("The host is no name of the endpoint.")});
        if route.may_be_unavailable {
            responses["503"] = answer("The same while it is not so", route.media);
        }
        // Anybody may probe.
        let is_probe = matches!(route.page, Page::Live | Page::Ready);
        let security = if is_probe { json!([{}]) } else { json!([{}, {"token": []}]) };
        if !is_probe {
            responses["401"] = told("A token is set and was not presented.");
            responses["403"] = told("No token is set, and pages are not read without one.");
        }
        let get = json!({"summary": route.about, "security": security, "responses": responses});
        paths.insert(route.path.to_owned(), json!({"get": get}));
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
            "description": "HTTP endpoint of `warptape run`, and of `warptape replay follow` without /control and pages of devices.",
        },
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    })
}

fn answer(about: &str, media: &str) -> Value {
    json!({"description": about, "content": {media: {}}})
}

fn told(why: &str) -> Value {
    answer(why, "text/plain")
}

/// A posted command and its answers.
fn control() -> Value {
    let posted = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["command"],
        "properties": {
            "command": {
                "description": "A command with its fields, as docs/control.md and schemas/avro/control.avsc have them.",
                "type": ["object", "string"],
            },
            "by": {"type": "string", "default": "http", "description": "Name of the operator; the journal has it."},
            "timeout_s": {
                "type": "integer", "minimum": 1, "maximum": super::control::TIMEOUT_S_MAX, "default": super::control::TIMEOUT_S,
                "description": "Seconds until the command is void, and the longest wait for its answer.",
            },
        },
        "examples": [{"command": {"DrainLane": {"lane": 1}}, "by": "NAME", "timeout_s": 10}],
    });
    let error = |why: &str| answer(why, "application/json");
    json!({
        "summary": "a command to this process; its answer is a ControlResult",
        "security": [{"token": []}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": posted}}},
        "responses": {
            "200": answer("Done.", "application/json"),
            "400": error("No command."),
            "401": told("The token was not presented."),
            "403": told("No token is set, so that nobody may give commands."),
            "404": told("The process is a verifier."),
            "408": error("The command did not come in time."),
            "409": answer("Refused, with the reason.", "application/json"),
            "413": error("The command is too long."),
            "502": error("The log cannot be written or read."),
            "503": error("Another command is under way."),
            "504": error("No answer in time; the command is refused if it is read later."),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `WARPTAPE_UPDATE_DOCS=1 cargo test -p warptape-pipeline --lib document_in_docs` writes the file anew.
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
