//! Answers of tools: a command's output as structured content or text, or an error with the command's message.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use super::call::{Command, Form};
use super::child::Ended;
use super::page::Contents;

/// Result of a command.
#[derive(Debug, PartialEq)]
pub enum Found {
    /// A JSON object.
    Json(Value),
    /// Text for people.
    Text(String),
}

/// Returns what a command printed, or its error message.
pub fn found(command: &Command, ended: &Ended) -> Result<Found, String> {
    let out = String::from_utf8_lossy(&ended.out);
    let is_answer = match ended.code {
        Some(0) => true,
        Some(1) => command.may_differ && !out.is_empty(),
        _ => false,
    };
    if !is_answer {
        return Err(message(ended));
    }
    match command.form {
        Form::Text => Ok(Found::Text(out.into_owned())),
        Form::Json => serde_json::from_str(&out).map(Found::Json).map_err(not_json),
        Form::Lines(_) => {
            let records = out.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
            let records = records.map_err(not_json)?;
            Ok(Found::Json(json!({ "records": records, "has_more": ended.has_more })))
        }
    }
}

/// Returns the message of a failed command, without the hint at `--help`.
fn message(ended: &Ended) -> String {
    let said = ended.said.trim_end().trim_end_matches("For more information, try '--help'.").trim_end();
    let said = said.strip_prefix("error: ").unwrap_or(said);
    match (said.is_empty(), ended.code) {
        (false, _) => said.to_owned(),
        (true, Some(code)) => format!("the command failed with exit status {code} and without a message"),
        (true, None) => "a signal ended the command; the system may be short of memory".to_owned(),
    }
}

fn not_json(error: serde_json::Error) -> String {
    format!(
        "the command's answer is not JSON ({error}); this executable may have been replaced: start it again"
    )
}

/// Returns the answer to a call that runs one command, with the command's notices.
pub fn of_command(command: &Command, ended: &Ended) -> CallToolResult {
    let found = match found(command, ended) {
        Ok(found) => found,
        Err(message) => return error(message),
    };
    let mut result = match (found, &command.creates) {
        (Found::Json(answer), Some(path)) => {
            CallToolResult::structured(json!({ "path": path, "answer": answer }))
        }
        (Found::Text(text), Some(path)) => {
            CallToolResult::structured(json!({ "path": path, "answer": text }))
        }
        (Found::Json(answer), None) => CallToolResult::structured(answer),
        (Found::Text(text), None) => CallToolResult::success(vec![ContentBlock::text(text)]),
    };
    if !ended.said.trim().is_empty() {
        result.content.push(ContentBlock::text(ended.said.trim_end()));
    }
    result
}

/// Returns the answer to a call that runs several commands.
pub fn of_each(answers: Vec<(&'static str, Result<Found, String>)>) -> CallToolResult {
    let value = |answer| match answer {
        Ok(Found::Json(answer)) => answer,
        Ok(Found::Text(text)) => Value::String(text),
        Err(message) => json!({ "error": message }),
    };
    if answers.iter().all(|(_, answer)| answer.is_err()) {
        let first = answers.into_iter().find_map(|(_, answer)| answer.err());
        return error(first.unwrap_or_default());
    }
    let answers: Map<String, Value> =
        answers.into_iter().map(|(name, answer)| (name.to_owned(), value(answer))).collect();
    CallToolResult::structured(Value::Object(answers))
}

/// Returns the answer to a call for a page.
pub fn of_page(contents: Result<Contents, String>) -> CallToolResult {
    match contents {
        Ok(Contents::Json(page)) => CallToolResult::structured(page),
        Ok(Contents::Text(lines)) => CallToolResult::success(vec![ContentBlock::text(lines)]),
        Err(message) => error(message),
    }
}

/// Returns an error for the assistant to read.
pub fn error(message: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(message.into())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(code: Option<i32>, out: &str, said: &str) -> Ended {
        Ended { out: out.into(), said: said.to_owned(), code, has_more: false }
    }

    #[test]
    fn a_difference_is_an_answer_and_a_failure_is_not() {
        let verify = || Command::in_words(&["replay", "verify"], true);
        let differs = ended(Some(1), "{\"divergence\": 7}\n", "");
        assert_eq!(found(&verify().may_differ(), &differs), Ok(Found::Json(json!({"divergence": 7}))));
        assert!(found(&verify(), &differs).is_err());
        assert!(found(&verify().may_differ(), &ended(Some(1), "", "error: disk")).is_err());
        assert!(found(&verify().may_differ(), &ended(Some(2), "{}", "error: disk")).is_err());
        let broken = found(&verify(), &ended(Some(0), "{", "")).expect_err("it is not JSON");
        assert!(broken.contains("not JSON"), "{broken}");
    }

    #[test]
    fn messages_are_the_commands_own() {
        let said =
            "error: invalid value 'x' for '[N]': give a number\n\nFor more information, try '--help'.\n";
        assert_eq!(message(&ended(Some(2), "", said)), "invalid value 'x' for '[N]': give a number");
        assert!(message(&ended(Some(3), "", "")).contains("exit status 3"));
        assert!(message(&ended(None, "", "\n")).contains("a signal"));
    }

    #[test]
    fn one_failure_leaves_the_other_answer() {
        let good = || Ok(Found::Json(json!({"entries": 1})));
        let both = of_each(vec![("verified", Err("no ticks".to_owned())), ("slowest", good())]);
        let expected = json!({"verified": {"error": "no ticks"}, "slowest": {"entries": 1}});
        assert_eq!((both.structured_content, both.is_error), (Some(expected), Some(false)));
        let neither =
            of_each(vec![("verified", Err("no log".to_owned())), ("slowest", Err("no log".to_owned()))]);
        assert_eq!(neither.is_error, Some(true));
    }
}
