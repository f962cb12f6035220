//! Describes the differences between a log's stage configuration so far and another one.

use warptape_replay::{StageConfigChange, stage_config_changes};
use warptape_stages::StageConfig;

/// Field with the lateness of each venue.
const BY_VENUE: &str = "lateness_by_venue_ns";

/// Returns the settings that differ between an old configuration, given as JSON, and a new one.
pub(super) fn changes(before: &str, config: &StageConfig) -> String {
    let after = config.to_json();
    let changes = stage_config_changes(before, &after);
    let (of_venues, others): (Vec<_>, Vec<_>) =
        changes.iter().partition(|change| change.field.starts_with(BY_VENUE));
    let of_venues = (!of_venues.is_empty()).then(|| {
        let [before, after] = [before, &after].map(by_venue);
        format!("stages.lateness_by_venue: {before} to {after} (ms)")
    });
    others.into_iter().map(setting).chain(of_venues).collect::<Vec<_>>().join(", ")
}

/// Reports that partitions begin a new segment.
pub(super) fn new_segment(before: &str, config: &StageConfig, partitions: usize, records: i64) {
    tracing::warn!(
        changes = changes(before, config),
        partitions,
        records,
        "a new segment begins: all earlier records are folded again"
    );
}

/// Describes a change of the configuration in terms of the settings, whose times are in milliseconds.
fn setting(change: &StageConfigChange) -> String {
    let StageConfigChange { field, before, after } = change;
    // `nothing` marks a setting that did not exist.
    let milliseconds = |text: &str| match text.parse::<i64>() {
        Ok(time_ns) => (time_ns / 1_000_000).to_string(),
        Err(_) => text.to_owned(),
    };
    if field == "rules" {
        return format!("version of the rules of bars, indicators and alerts: {before} to {after}");
    }
    match field.strip_suffix("_ns") {
        Some(field) => format!("stages.{field}_ms: {} to {}", milliseconds(before), milliseconds(after)),
        None => format!("stages.{field}: {before} to {after}"),
    }
}

/// Returns the venues of a configuration with their lateness in milliseconds.
fn by_venue(config: &str) -> String {
    let venues = StageConfig::from_json(config).map(|config| config.lateness_by_venue_ns).unwrap_or_default();
    let one = |(venue, lateness_ns): (&String, &i64)| format!("{venue}={}", lateness_ns / 1_000_000);
    match &*venues.iter().map(one).collect::<Vec<_>>().join(" ") {
        "" => "nothing".to_owned(),
        venues => venues.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Sources, load};

    #[test]
    fn lateness_by_venue_is_told_as_its_setting() {
        let stages = load(&Sources::default()).expect("the defaults are good").0.stages;
        let told = |lateness: &[(&str, i64)], before: &[(&str, i64)]| {
            let of = |venues: &[(&str, i64)]| StageConfig {
                lateness_by_venue_ns: venues.iter().map(|&(venue, ns)| (venue.to_owned(), ns)).collect(),
                ..stages.clone()
            };
            changes(&of(before).to_json(), &of(lateness))
        };
        const S: i64 = 1_000_000_000;
        assert_eq!(
            told(&[("A", 5 * S), ("B", S)], &[]),
            "stages.lateness_by_venue: nothing to A=5000 B=1000 (ms)"
        );
        assert_eq!(told(&[("A", 6 * S)], &[("A", 5 * S)]), "stages.lateness_by_venue: A=5000 to A=6000 (ms)");
    }
}
