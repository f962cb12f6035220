//! The configuration as TOML text: `config show` and the example file, both generated from the table of keys.

use std::fmt::Write as _;

use super::keys::{Key, ValueKind};
use super::secret;
use super::sections::SECTIONS;
use super::sources::Origin;
use super::table::EntryText;
use super::value::Setting;

/// The effective value of one key.
#[derive(Clone, Debug)]
pub struct Effective {
    /// The key.
    pub key: &'static Key,
    /// Value of the key.
    pub value: Setting,
    /// Origin of the value.
    pub origin: Origin,
}

/// Returns all effective values as TOML, each with its origin as a comment.
pub fn effective_toml(effective: &[Effective]) -> String {
    let mut text = String::new();
    for section in SECTIONS {
        let gap = if text.is_empty() { "" } else { "\n" };
        writeln!(text, "{gap}[{}]", section.path).expect("a string takes any text");
        let entries = || effective.iter().filter(|entry| entry.key.section() == section.path);
        push_lines(&mut text, entries().filter_map(line_of));
        for entry in entries() {
            if let Setting::Table(names) = &entry.value {
                writeln!(text, "\n[{}]", entry.key.path).expect("a string takes any text");
                push_lines(
                    &mut text,
                    names.iter().map(|(name, entry)| (named(name, &entry.text), &entry.origin)),
                );
            }
        }
    }
    text
}

fn line_of(entry: &Effective) -> Option<(String, &Origin)> {
    let name = entry.key.name();
    let line = match &entry.value {
        Setting::Table(_) => return None,
        Setting::Secret(None) => format!("# {name} is not set"),
        Setting::Secret(Some(_)) => format!("# {name} is set, and not shown"),
        value => format!("{name} = {}", value.to_toml()),
    };
    Some((line, &entry.origin))
}

fn named(name: &str, text: &EntryText) -> String {
    match text {
        EntryText::Plain(text) => format!("\"{name}\" = {}", toml_edit::Value::from(text)),
        EntryText::Secret(_) => format!("# \"{name}\" is set, and not shown"),
    }
}

/// Appends lines with their origins, which are aligned in one column.
fn push_lines<'a>(text: &mut String, lines: impl Iterator<Item = (String, &'a Origin)>) {
    let lines: Vec<_> = lines.collect();
    let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
    for (line, origin) in lines {
        writeln!(text, "{line:width$}  # {}", one_line(&origin.to_string()))
            .expect("a string takes any text");
    }
}

/// Returns the example file: all keys with their defaults, their descriptions and the allowed values.
pub fn example_toml() -> String {
    let mut text = String::from(
        "# Warptape's configuration: all keys with their defaults.\n\
         #\n\
         # A file overrides these defaults, an environment variable overrides the file (WARPTAPE__ENGINE__NODE\n\
         # sets engine.node; items of a list are separated by commas), and a flag overrides both.\n\
         # `warptape config show -c FILE` prints the effective values and their origins.\n",
    );
    for section in SECTIONS {
        writeln!(text, "\n# {}\n[{}]", section.about, section.path).expect("a string takes any text");
        for key in section.keys {
            for line in wrapped(key.about) {
                writeln!(text, "# {line}").expect("a string takes any text");
            }
            let allowed = match &key.kind {
                ValueKind::Secret => format!("Not in this file: {}.", secret::ways_of(key.path)),
                kind => format!("Allowed: {}.", kind.allowed()),
            };
            for line in wrapped(&allowed) {
                writeln!(text, "# {line}").expect("a string takes any text");
            }
            let default = match &key.kind {
                ValueKind::Secret => continue,
                ValueKind::Table { .. } => {
                    // A table that is given here could not be given again as a section.
                    writeln!(text, "# [{}]", key.path).expect("a string takes any text");
                    continue;
                }
                kind => Setting::default_of(kind).to_toml(),
            };
            writeln!(text, "{} = {default}", key.name()).expect("a string takes any text");
        }
    }
    text
}

/// Replaces control characters with `?`: after a line break in a file's name, the rest of the comment would be read as
/// TOML.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

/// Longest line of a comment in the example file, in characters.
const COMMENT_WIDTH: usize = 100;

fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COMMENT_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
