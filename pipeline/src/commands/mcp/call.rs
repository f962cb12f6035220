//! The work of a tool's call: it runs commands with their arguments, or gets a page of the endpoint.

use std::path::PathBuf;

use super::page::Page;

/// The work of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Call {
    /// Run a command.
    Command(Command),
    /// Run the commands, and answer with an object that has each command's answer under its name, or its error if it
    /// fails.
    Each(Vec<(&'static str, Command)>),
    /// Get a page of the endpoint.
    Page(Page),
}

/// A command with its arguments, except for those that all calls have.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// Name of the command and its flags, each with its value.
    words: Vec<String>,
    /// Positional arguments, which follow all flags.
    operands: Vec<String>,
    /// Form of standard output.
    pub form: Form,
    /// True if exit status 1 with an output is a valid answer: the command found a difference.
    pub may_differ: bool,
    /// File that the command creates; `None` if it only reads.
    pub creates: Option<PathBuf>,
}

/// Form of a command's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Json,
    /// One JSON object per line; only some lines are kept.
    Lines(Keep),
    /// Text for people.
    Text,
}

/// Selection of the output lines that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first lines; the command is ended after them.
    First(usize),
    /// The last lines.
    Last(usize),
}

impl Command {
    /// Creates a command that only reads and whose output has this form.
    pub fn new(words: &[&str], form: Form) -> Self {
        let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        if form != Form::Text {
            words.push("--output=json".to_owned());
        }
        Self { words, operands: Vec::new(), form, may_differ: false, creates: None }
    }

    /// Creates a command that only reads, and prints one JSON object or text.
    pub fn in_words(words: &[&str], is_json: bool) -> Self {
        Self::new(words, if is_json { Form::Json } else { Form::Text })
    }

    /// Adds a flag if it is set.
    pub fn flag(mut self, name: &str, is_set: bool) -> Self {
        if is_set {
            self.words.push(name.to_owned());
        }
        self
    }

    /// Adds a flag once for each value, as `NAME=VALUE`, so that no value can be read as a flag.
    pub fn values<T: ToString>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.words.extend(values.into_iter().map(|value| format!("{name}={}", value.to_string())));
        self
    }

    /// Adds a positional argument.
    pub fn operand(mut self, value: impl ToString) -> Self {
        self.operands.push(value.to_string());
        self
    }

    /// Accepts exit status 1 with an output as an answer.
    pub fn may_differ(mut self) -> Self {
        self.may_differ = true;
        self
    }

    /// Makes the command create the file, if one is given.
    pub fn creates(self, file: Option<PathBuf>) -> Self {
        let command = self.values("--to", file.iter().map(|file| file.display()));
        Self { creates: file, ..command }
    }

    /// Returns all words. Positional arguments follow `--`, so that none can be read as a flag.
    pub fn words(&self) -> Vec<String> {
        let mut words = self.words.clone();
        if !self.operands.is_empty() {
            words.push("--".to_owned());
            words.extend(self.operands.iter().cloned());
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_be_flags() {
        let command = Command::in_words(&["replay", "slowest"], true)
            .flag("--outputs", false)
            .values("--since", Some("--to=x"))
            .values("--until", None::<String>)
            .operand("-c");
        assert_eq!(command.words(), ["replay", "slowest", "--output=json", "--since=--to=x", "--", "-c"]);
        let command = Command::new(&["topics"], Form::Text);
        assert_eq!(command.words(), ["topics"]);
    }
}
