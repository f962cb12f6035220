//! Sources of values, in layers: built-in defaults, a command's own defaults, the file, the environment, flags.
//!
//! This module merges the layers and keeps the origin of each value. It must not know which keys exist.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider, Source};
use toml_edit::{ImDocument, Item, TableLike};

use super::lanes::GpuProbe;
use super::mistake::SettingsError;
use crate::bounded_file::{self, SETTINGS_BYTES_MAX};

/// Prefix of variables that are settings: `WARPTAPE__SECTION__KEY`.
pub const ENVIRONMENT_PREFIX: &str = "WARPTAPE__";

/// All sources of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The command's own defaults, which override the built-in ones.
    pub preferences: Vec<Assignment>,
    /// The TOML file; `None` if there is none.
    pub file: Option<PathBuf>,
    /// Environment variables as pairs of name and value. Variables without the prefix are ignored.
    pub environment: Vec<(String, String)>,
    /// Values given by flags.
    pub flags: Vec<Assignment>,
    /// Number of cores of this machine, for `auto` devices.
    pub cores: usize,
    /// Probe for GPUs; `None` for commands that run no lanes, whose settings may name any GPU.
    pub gpus: Option<GpuProbe>,
    /// True if the files of networks in `risk.networks` are read.
    pub reads_networks: bool,
}

/// A value given as text by a flag or a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the flag or command that gives the value: `--log`, `demo`.
    pub giver: &'static str,
    /// Dotted path of the key.
    pub key: &'static str,
    /// The value; items of a list are separated by commas.
    pub value: String,
}

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    Default,
    /// The command's own default.
    Preference(String),
    /// A line of the file.
    File {
        /// The file.
        path: PathBuf,
        /// The line of the key, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => write!(f, "default"),
            Origin::Preference(command) => write!(f, "default of {command}"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

impl Origin {
    /// Returns the rank of the layer. Higher ranks override lower ones.
    pub fn layer(&self) -> usize {
        match self {
            Origin::Default => 0,
            Origin::Preference(_) => 1,
            Origin::File { .. } => 2,
            Origin::Environment(_) => 3,
            Origin::Flag(_) => 4,
        }
    }

    /// Returns true if values of this origin are text that must still be parsed into numbers and lists.
    pub fn is_text(&self) -> bool {
        !matches!(self, Origin::File { .. })
    }
}

/// The merged layers: a tree of values whose tags name their origins.
pub struct Layers {
    figment: Figment,
    values: Dict,
    file_lines: BTreeMap<String, usize>,
}

/// One leaf of the merged tree.
pub struct Leaf {
    /// Dotted path; parts that contain a dot are quoted.
    pub path: String,
    /// The value. An empty [`Value::Dict`] is a section without keys.
    pub value: Value,
    /// Origin of the value.
    pub origin: Origin,
}

impl Layers {
    /// Reads the file and merges everything.
    pub fn read(sources: &Sources) -> Result<Layers, SettingsError> {
        let mut figment = Figment::new();
        for assignment in &sources.preferences {
            figment =
                figment.merge(Layer::text(PREFERENCE, assignment.giver, assignment.key, &assignment.value));
        }
        let mut file_lines = BTreeMap::new();
        if let Some(path) = &sources.file {
            let text = bounded_file::read_text(path, SETTINGS_BYTES_MAX)
                .map_err(|cause| SettingsError::Unreadable { path: path.clone(), cause })?;
            file_lines = lines_of_keys(path, &text)?;
            let values = Toml::from_str::<Dict>(&text)
                .map_err(|error| syntax_error(path, &text, error.span(), error.message()))?;
            figment = figment.merge(Layer { metadata: Metadata::from(FILE, path.as_path()), values });
        }
        let mut variables: Vec<_> = sources.environment.iter().collect();
        variables.sort();
        for (name, value) in variables {
            if let Some(key) = name.strip_prefix(ENVIRONMENT_PREFIX) {
                let path = key.to_lowercase().replace("__", ".");
                figment = figment.merge(Layer::text(ENVIRONMENT, name, &path, value));
            }
        }
        for assignment in &sources.flags {
            figment = figment.merge(Layer::text(FLAG, assignment.giver, assignment.key, &assignment.value));
        }
        // All layers are trees of parsed values here, so merging them cannot fail.
        let mut profiles = figment.data().expect("layers hold parsed values");
        let values = profiles.remove(&Profile::Default).unwrap_or_default();
        Ok(Layers { figment, values, file_lines })
    }

    /// Returns all leaves, by path.
    pub fn leaves(&self) -> Vec<Leaf> {
        let mut leaves = Vec::new();
        self.collect("", &self.values, &mut leaves);
        leaves
    }

    fn collect(&self, prefix: &str, values: &Dict, leaves: &mut Vec<Leaf>) {
        for (name, value) in values {
            let path = joined(prefix, name);
            match value {
                Value::Dict(_, inner) if !inner.is_empty() => self.collect(&path, inner, leaves),
                _ => {
                    let origin = self.origin(&path, value);
                    leaves.push(Leaf { path, value: value.clone(), origin });
                }
            }
        }
    }

    fn origin(&self, path: &str, value: &Value) -> Origin {
        let Some(metadata) = self.figment.get_metadata(value.tag()) else { return Origin::Default };
        match (&*metadata.name, &metadata.source) {
            (PREFERENCE, Some(Source::Custom(command))) => Origin::Preference(command.clone()),
            (ENVIRONMENT, Some(Source::Custom(name))) => Origin::Environment(name.clone()),
            (FLAG, Some(Source::Custom(name))) => Origin::Flag(name.clone()),
            (_, Some(Source::File(file))) => {
                Origin::File { path: file.clone(), line: self.file_lines.get(path).copied().unwrap_or(1) }
            }
            (name, source) => unreachable!("no layer is called {name} with source {source:?}"),
        }
    }
}

const PREFERENCE: &str = "preference";
const FILE: &str = "file";
const ENVIRONMENT: &str = "environment";
const FLAG: &str = "flag";

struct Layer {
    metadata: Metadata,
    values: Dict,
}

impl Layer {
    /// Returns a layer with one value under a dotted path.
    fn text(layer: &'static str, giver: &str, path: &str, value: &str) -> Layer {
        let mut names = path.rsplit('.');
        let last = names.next().unwrap_or_default();
        let mut values = Dict::from([(last.to_owned(), Value::from(value))]);
        for name in names {
            values = Dict::from([(name.to_owned(), Value::from(values))]);
        }
        Layer { metadata: Metadata::from(layer, Source::Custom(giver.to_owned())), values }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        self.metadata.clone()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}

fn joined(prefix: &str, name: &str) -> String {
    let name = if name.contains('.') || name.is_empty() { format!("\"{name}\"") } else { name.to_owned() };
    if prefix.is_empty() { name } else { format!("{prefix}.{name}") }
}

/// Returns the error without the line's text, which may contain a secret in the wrong place.
fn syntax_error(path: &Path, text: &str, span: Option<Range<usize>>, found: &str) -> SettingsError {
    let before = &text[..span.map_or(0, |span| span.start)];
    let line = 1 + before.matches('\n').count();
    let column = 1 + before.rsplit('\n').next().map_or(0, |start| start.chars().count());
    let found = format!("line {line}, column {column}: {}", found.trim_end());
    SettingsError::Syntax { path: path.to_owned(), found }
}

/// Returns the line of every key of the file, from 1.
fn lines_of_keys(path: &Path, text: &str) -> Result<BTreeMap<String, usize>, SettingsError> {
    let document =
        ImDocument::parse(text).map_err(|error| syntax_error(path, text, error.span(), error.message()))?;
    let mut lines = BTreeMap::new();
    collect_lines("", document.as_table(), text, &mut lines);
    Ok(lines)
}

fn collect_lines(prefix: &str, table: &dyn TableLike, text: &str, lines: &mut BTreeMap<String, usize>) {
    for (name, item) in table.iter() {
        let path = joined(prefix, name);
        let span = table.get_key_value(name).and_then(|(key, _)| key.span()).or_else(|| item.span());
        if let Some(span) = span {
            let line = 1 + text[..span.start].matches('\n').count();
            lines.insert(path.clone(), line);
        }
        if let Some(inner) = Item::as_table_like(item) {
            collect_lines(&path, inner, text, lines);
        }
    }
}
