//! Configuration: read once at the start into [`Settings`]. Each part of the pipeline gets its own part of them.
//!
//! ```text
//!   built-in defaults < a command's preferences < TOML file < WARPTAPE__SECTION__KEY < flags     (sources)
//!        tree of values with origins  --table of keys (sections)-->  checked values (value)  -->  Settings (parts)
//! ```
//!
//! All mistakes are reported together. This module reads the configuration file, and the files of secrets and networks.
//! The caller passes in arguments, environment, the number of cores and the probe for GPUs.

mod declaration;
mod json_schema;
mod keys;
mod lanes;
mod mistake;
mod networks;
mod parts;
mod relations;
mod secret;
mod sections;
mod show;
mod sources;
mod syntax;
mod table;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use warptape_cuda::Inventory;
use warptape_kernels::Isa;

pub use json_schema::json_schema;
pub use keys::{Key, ValueKind};
pub use lanes::GpuProbe;
pub use mistake::{Mistake, SettingsError};
pub use parts::{LaneSettings, Settings, TaskPolicySettings};
pub use secret::{Secret, exposed_password};
pub use sections::{
    AutoscaleSettings, EndpointSettings, EngineSettings, GroupProtocol, HotStateSettings, JournalSettings,
    KEYS, KafkaSettings, LogSettings, OtlpSettings, RegistrySettings, RiskSettings, TopicSettings, Unguarded,
};
pub use show::{Effective, effective_toml, example_toml};
pub use sources::{Assignment, ENVIRONMENT_PREFIX, Origin, Sources};
pub use syntax::{LANES_MAX, gpu_of_lane, is_log_url, log_url};
pub use table::{Entry, EntryText};
pub use value::Setting;

use declaration::{FromKeys as _, Values};
use relations::Relation;
use sources::{Layers, Leaf};

/// Loads the settings, and every value with its origin, in the order of [`KEYS`].
pub fn load(sources: &Sources) -> Result<(Settings, Vec<Effective>), SettingsError> {
    let layers = Layers::read(sources)?;
    let mut mistakes = Vec::new();
    let mut given: BTreeMap<&str, Vec<Leaf>> = BTreeMap::new();
    for leaf in layers.leaves() {
        match known_key(&leaf) {
            Ok(Some(key)) => given.entry(key.path).or_default().push(leaf),
            Ok(None) => {}
            Err(mistake) => mistakes.push(mistake),
        }
    }
    let mut refused = Vec::new();
    let mut effective = Vec::with_capacity(KEYS.len());
    for key in KEYS {
        let before = mistakes.len();
        let leaves = given.remove(key.path).unwrap_or_default();
        let entry = effective_of(key, leaves, &mut mistakes);
        if mistakes.len() > before {
            refused.push(key.path);
        }
        effective.push(entry);
    }
    let values = Values(&effective);
    let inventory = lanes::inventory_for(&EngineSettings::read(&values).devices, sources.gpus.as_ref());
    let mut settings = parts::build(&values, sources.cores, inventory.as_ref());
    let unread = match sources.reads_networks {
        true => networks::take_up(&mut settings, &effective, inventory.is_some()),
        false => {
            networks::leave(&mut settings);
            Vec::new()
        }
    };
    // A relation is not checked if one of its keys has its default only because its value was refused.
    let relations = relations::relations(&settings, &effective, inventory.as_ref()).into_iter().chain(unread);
    let stands = |relation: &Relation| !refused.iter().any(|path| relation.involves(path));
    mistakes.extend(relations.filter(stands).map(|relation| relation.mistake));
    if !mistakes.is_empty() {
        return Err(SettingsError::Mistakes(mistakes));
    }
    if let (Some(inventory), Some(probe)) = (&inventory, &sources.gpus) {
        lanes::weigh(&mut settings.lanes.specs, inventory, probe);
    }
    let gpus = inventory.as_ref().map_or(&[][..], Inventory::usable);
    lanes::describe(&mut settings.lanes.specs, gpus, Isa::detect());
    Ok((settings, effective))
}

/// Returns the value of a key, made from the leaves that set it; its default if there are none, or they are refused.
fn effective_of(key: &'static Key, mut leaves: Vec<Leaf>, mistakes: &mut Vec<Mistake>) -> Effective {
    // If several layers set a key, the last layer is its origin.
    leaves.sort_by_key(|leaf| leaf.origin.layer());
    let default = || Effective { key, value: Setting::default_of(&key.kind), origin: Origin::Default };
    let Some(last) = leaves.last() else { return default() };
    let origin = last.origin.clone();
    let value = match &key.kind {
        ValueKind::Table { .. } => Some(Setting::Table(table::read(key, &leaves, mistakes))),
        ValueKind::Secret => match secret::read(key.path, last) {
            Ok(secret) => Some(Setting::Secret(Some(secret))),
            Err(mistake) => {
                mistakes.push(mistake);
                None
            }
        },
        kind @ ValueKind::Address { .. } if secret::names_file(last) => match secret::read(key.path, last) {
            Ok(address) => {
                let value = Setting::Text(address.reveal().to_owned());
                let allowed = value.is_allowed(kind);
                if !allowed {
                    mistakes.push(not_allowed(key, last));
                }
                allowed.then_some(value)
            }
            Err(mistake) => {
                mistakes.push(mistake);
                None
            }
        },
        ValueKind::Address { .. } if secret::is_misplaced(last) => {
            mistakes.push(secret::misplaced(key.path, last));
            None
        }
        kind => {
            let value = Setting::parse(kind, &last.value, origin.is_text());
            if value.is_none() {
                mistakes.push(not_allowed(key, last));
            }
            value
        }
    };
    value.map_or_else(default, |value| Effective { key, value, origin })
}

/// Returns the key that a leaf sets; `None` if the leaf is an empty section.
fn known_key(leaf: &Leaf) -> Result<Option<&'static Key>, Mistake> {
    if let Some(key) = keys::find(&leaf.path) {
        return Ok(Some(key));
    }
    let is_table = leaf.value.as_dict().is_some();
    if keys::is_section(&leaf.path) {
        if is_table {
            return Ok(None);
        }
        return Err(Mistake {
            key: leaf.path.clone(),
            origin: leaf.origin.clone(),
            found: value::shown(&leaf.value),
            allowed: format!("a table of {}", names_of(&leaf.path).join(", ")),
        });
    }
    Err(unknown(leaf))
}

fn not_allowed(key: &'static Key, leaf: &Leaf) -> Mistake {
    Mistake {
        key: key.path.to_owned(),
        found: value::shown(&leaf.value),
        origin: leaf.origin.clone(),
        allowed: key.kind.allowed(),
    }
}

/// Key of the table with which the TOML reader represents a date.
const DATE: &str = "$__toml_private_datetime";

/// Similarity from which a name counts as a misspelling of another; 1 means equal.
const SIMILARITY_MIN: f64 = 0.75;

fn unknown(leaf: &Leaf) -> Mistake {
    // A value inside a key that is not a table is a mistake of that key.
    if let Some(key) = KEYS.iter().find(|key| leaf.path.starts_with(&format!("{}.", key.path))) {
        return Mistake {
            key: key.path.to_owned(),
            origin: leaf.origin.clone(),
            found: if leaf.path.ends_with(DATE) { "a date".to_owned() } else { "a table".to_owned() },
            allowed: key.kind.allowed(),
        };
    }
    let mut nearest: Option<(f64, &str)> = None;
    for key in KEYS {
        // The same name in another section is the best suggestion.
        let is_misplaced = leaf.path.rsplit('.').next() == Some(key.name());
        let similarity = if is_misplaced { 1.0 } else { strsim::jaro_winkler(&leaf.path, key.path) };
        if similarity >= SIMILARITY_MIN && nearest.is_none_or(|(best, _)| similarity > best) {
            nearest = Some((similarity, key.path));
        }
    }
    let allowed = match nearest {
        Some((_, path)) => format!("{path} (the most similar key)"),
        None => {
            let sections: Vec<_> =
                sections::SECTIONS.iter().map(|section| format!("[{}]", section.path)).collect();
            format!("keys of {}", sections.join(", "))
        }
    };
    Mistake {
        key: leaf.path.clone(),
        origin: leaf.origin.clone(),
        found: "an unknown key".to_owned(),
        allowed,
    }
}

fn names_of(section: &str) -> Vec<&'static str> {
    KEYS.iter().filter(|key| key.section() == section).map(Key::name).collect()
}
