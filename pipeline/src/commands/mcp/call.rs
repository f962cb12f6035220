//! The work of a tool's call: a command with its arguments, or a page of the endpoint.

use std::path::PathBuf;

use super::page::Page;

/// Work of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Call {
    /// Run a command.
    Command(Command),
    /// Run the commands, and answer with an object that has each answer under its name. A command that fails gives its
    /// error there.
    Each(Vec<(&'static str, Command)>),
    /// Get a page of the endpoint.
    Page(Page),
}

/// A command with its arguments, without those that are the same for all calls.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// Name of the command and its flags, each with its value.
    words: Vec<String>,
    /// Values after all flags.
    operands: Vec<String>,
    /// Form of standard output.
    pub form: Form,
    /// True if exit status 1 with an output is an answer: a difference was found.
    pub may_differ: bool,
    /// File that the command creates; `None` if it only reads.
    pub creates: Option<PathBuf>,
}

/// Form of a command's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Json,
    /// One JSON object per line, of which some lines are kept.
    Lines(Keep),
    /// Text for people.
    Text,
}

/// Lines that are kept of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The first ones; the command is ended after them.
    First(usize),
    /// The last ones.
    Last(usize),
}

impl Command {
    /// Creates a command that only reads, and prints in this form.
    pub fn new(words: &[&str], form: Form) -> Self {
        let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        if form != Form::Text {
            words.push("--output=json".to_owned());
        }
        Self { words, operands: Vec::new(), form, may_differ: false, creates: None }
    }

    /// The same, in JSON or in words.
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

    /// Adds a flag with each of the values. They share its word, so none can be taken for a flag.
    pub fn values<T: ToString>(mut self, name: &str, values: impl IntoIterator<Item = T>) -> Self {
        self.words.extend(values.into_iter().map(|value| format!("{name}={}", value.to_string())));
        self
    }

    /// Adds a value that stands alone.
    pub fn operand(mut self, value: impl ToString) -> Self {
        self.operands.push(value.to_string());
        self
    }

    /// Takes exit status 1 with an output for an answer.
    pub fn may_differ(mut self) -> Self {
        self.may_differ = true;
        self
    }

    /// Has the command create a file, if there is one to create.
    pub fn creates(self, file: Option<PathBuf>) -> Self {
        let command = self.values("--to", file.iter().map(|file| file.display()));
        Self { creates: file, ..command }
    }

    /// Returns all words. Values that stand alone follow `--`, so none can be taken for a flag.
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
