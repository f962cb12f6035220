//! Mistakes in the combination of several keys. The crates that depend on a relation check it and name their fields;
//! this module maps the fields to keys.

use warptape_cuda::Inventory;
use warptape_scheduler::{GROUPS_TOTAL_MAX, autoscale::check_autoscale, check_config};

use super::declaration::Values;
use super::lanes;
use super::mistake::Mistake;
use super::parts::Settings;
use super::sections::KEYS;
use super::show::Effective;
use super::syntax::LANES_MAX;
use super::value::Setting;

const LATENESS_BY_VENUE: &str = "stages.lateness_by_venue";

/// A mistake in the combination of several keys.
pub(super) struct Relation {
    pub(super) mistake: Mistake,
    /// The other key; `None` if the mistake concerns one key only.
    against: Option<&'static str>,
}

impl Relation {
    /// True if the relation includes the key.
    pub(super) fn involves(&self, path: &str) -> bool {
        self.mistake.key == path || self.against == Some(path)
    }
}

/// Returns the mistakes in combinations of keys. The crates that depend on a relation check it.
pub(super) fn relations(
    settings: &Settings,
    effective: &[Effective],
    inventory: Option<&Inventory>,
) -> Vec<Relation> {
    let mut mistakes = Vec::new();
    let devices = &settings.engine.devices;
    if let Some(allowed) = inventory.and_then(|found| lanes::absent(devices, found)) {
        mistakes.push(relation(effective, "engine.devices", None, &allowed));
    }
    let lanes = settings.lanes.specs.len();
    // Without knowing the GPUs, the number of lanes of `auto` is unknown.
    let counted = inventory.is_some() || !devices.iter().any(|device| device == "auto");
    if counted && lanes > LANES_MAX {
        mistakes.push(relation(
            effective,
            "engine.devices",
            None,
            &format!("at most {LANES_MAX} lanes; these are {lanes}"),
        ));
    }
    let registry = &settings.registry;
    if registry.is_used() && registry.username.is_empty() && registry.password.is_some() {
        mistakes.push(relation(
            effective,
            "schema_registry.username",
            Some("schema_registry.password"),
            "a user name, because a password is given",
        ));
    }
    let endpoint = &settings.endpoint;
    if endpoint.tls_certificate.as_os_str().is_empty() != endpoint.tls_key.as_os_str().is_empty() {
        mistakes.push(relation(
            effective,
            "endpoint.tls_key",
            Some("endpoint.tls_certificate"),
            "both a private key and its certificate, or neither",
        ));
    }
    let journal = &settings.journal;
    let anchored = !journal.anchor_file.as_os_str().is_empty() || !journal.anchor_log.is_empty();
    if anchored && journal.signing_key_file.as_os_str().is_empty() {
        let other = if journal.anchor_log.is_empty() { "journal.anchor_file" } else { "journal.anchor_log" };
        mistakes.push(relation(
            effective,
            "journal.signing_key_file",
            Some(other),
            "a private key, because heads of the journal are kept in a second place",
        ));
    }
    if !journal.anchor_log.is_empty() && journal.anchor_log == settings.log.url {
        mistakes.push(relation(
            effective,
            "journal.anchor_log",
            Some("log.url"),
            "a log other than log.url, which shows if entries of log.url are lost",
        ));
    }
    let venues = settings.stages.lateness_by_venue_ns.len();
    if let Setting::List(given) = Values(effective).get(LATENESS_BY_VENUE)
        && given.len() > venues
    {
        mistakes.push(relation(effective, LATENESS_BY_VENUE, None, "each venue only once"));
    }
    let groups = i64::from(settings.topics.partitions) * i64::from(settings.stages.groups_per_partition);
    if groups > GROUPS_TOTAL_MAX {
        let allowed = format!(
            "a value whose product with topics.partitions is at most {GROUPS_TOTAL_MAX}; it is {groups}"
        );
        mistakes.push(relation(
            effective,
            "stages.groups_per_partition",
            Some("topics.partitions"),
            &allowed,
        ));
    }
    let of_autoscale = settings.autoscale.iter().flat_map(check_autoscale);
    for mistake in check_config(&settings.scheduler).into_iter().chain(of_autoscale) {
        mistakes.push(relation_of_fields(
            effective,
            "scheduler",
            &mistake.field,
            mistake.against,
            &mistake.allowed,
        ));
    }
    for mistake in settings.stages.check_names().into_iter().chain(settings.stages.check()) {
        mistakes.push(relation_of_fields(
            effective,
            "stages",
            &mistake.field,
            mistake.against,
            &mistake.allowed,
        ));
    }
    mistakes
}

/// Returns the relation of a section's field to another field beside it, if there is one.
fn relation_of_fields(
    effective: &[Effective],
    section: &str,
    field: &str,
    against: Option<&str>,
    allowed: &str,
) -> Relation {
    // A mistake may be within an item of a list, such as `risk.tenant_weights[3].weight`, or of a table: `formulas[wide]`.
    let (field, item) = field.split_once('[').unwrap_or((field, ""));
    let item = item.split(']').next().unwrap_or(item);
    let (outer, field) = field.rsplit_once('.').unwrap_or(("", field));
    let key_of = |field: &str| {
        let is_section = |path: &str| match path.strip_prefix(section) {
            Some(within) => within.trim_start_matches('.') == outer,
            // The scheduler's struct contains the struct of risk tasks, whose keys have their own section.
            None => path == outer,
        };
        KEYS.iter().find(|key| key.field == field && is_section(key.section())).map(|key| key.path)
    };
    let path = key_of(field).unwrap_or_else(|| unreachable!("{section} {outer} {field} has no key"));
    let mut relation = relation(effective, path, against.and_then(key_of), allowed);
    if let Setting::Table(names) = Values(effective).get(path)
        && let Some(entry) = names.get(item)
    {
        relation.mistake.key = format!("{path}.{item}");
        relation.mistake.origin = entry.origin.clone();
        relation.mistake.found = toml_edit::Value::from(entry.text.reveal()).to_string();
        relation.mistake.allowed = format!("an expression; {allowed}");
    }
    relation
}

/// Returns the relation between a key and another one, if there is one.
pub(super) fn relation(
    effective: &[Effective],
    path: &str,
    against: Option<&'static str>,
    allowed: &str,
) -> Relation {
    let entry = effective.iter().find(|entry| entry.key.path == path);
    let entry = entry.unwrap_or_else(|| unreachable!("{path} is not in the table of keys"));
    let mistake = Mistake {
        key: path.to_owned(),
        origin: entry.origin.clone(),
        found: entry.value.to_toml(),
        allowed: allowed.to_owned(),
    };
    Relation { mistake, against }
}
