//! All keys, section by section. Each key is declared once, with its default, its limits, its comment and its field.

mod autoscale;
mod endpoint;
mod engine;
mod kafka;
mod log;
mod otlp;
mod stages;

use std::time::Duration;

use warptape_kernels::SignalParams;
use warptape_schemas::journal::{BreakerConfig, SchedulerConfig};
use warptape_stages::{MarketConfig, StageConfig};

pub use autoscale::AutoscaleSettings;
pub use endpoint::{EndpointSettings, Unguarded};
pub use engine::{EngineSettings, RiskSettings};
pub use kafka::{GroupProtocol, KafkaSettings, RegistrySettings};
pub use log::{HotStateSettings, JournalSettings, KeptBytes, KeptFor, LogSettings, TopicSettings};
pub use otlp::OtlpSettings;

use super::declaration::{FromKeys, Section};
use super::keys::Key;
use crate::runtime::Retention;

/// Sections in the order of the example file.
pub const SECTIONS: &[Section] = &[
    LogSettings::SECTION,
    KeptFor::SECTION,
    KeptBytes::SECTION,
    TopicSettings::SECTION,
    JournalSettings::SECTION,
    HotStateSettings::SECTION,
    KafkaSettings::SECTION,
    Retention::SECTION,
    RegistrySettings::SECTION,
    EngineSettings::SECTION,
    SchedulerConfig::SECTION,
    RiskSettings::SECTION,
    BreakerConfig::SECTION,
    AutoscaleSettings::SECTION,
    OtlpSettings::SECTION,
    StageConfig::SECTION,
    stages::INDICATORS,
    SignalParams::SECTION,
    MarketConfig::SECTION,
    EndpointSettings::SECTION,
];

/// All keys, in the order of [`SECTIONS`].
pub const KEYS: &[Key] = &{
    let mut keys = [SECTIONS[0].keys[0]; number_of_keys()];
    let (mut section, mut position) = (0, 0);
    while section < SECTIONS.len() {
        let mut of_section = 0;
        while of_section < SECTIONS[section].keys.len() {
            keys[position] = SECTIONS[section].keys[of_section];
            (of_section, position) = (of_section + 1, position + 1);
        }
        section += 1;
    }
    keys
};

const fn number_of_keys() -> usize {
    let (mut section, mut keys) = (0, 0);
    while section < SECTIONS.len() {
        keys += SECTIONS[section].keys.len();
        section += 1;
    }
    keys
}

fn milliseconds(number: i64) -> Duration {
    Duration::from_millis(number as u64)
}
