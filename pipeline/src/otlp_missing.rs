//! Stands for the export to OpenTelemetry in a build without it.

use std::sync::Arc;

use crate::runtime::Progress;
use crate::settings::Settings;
use crate::traces::TraceSender;
use crate::usage_error::UsageError;

/// The export of a running process, of which a build without the feature `otlp` has none.
pub enum Otlp {}

impl Otlp {
    /// Refuses settings that ask for an export.
    pub fn start(settings: &Settings, _: &Arc<Progress>) -> anyhow::Result<Option<Self>> {
        if settings.otlp.endpoint.is_empty() {
            return Ok(None);
        }
        Err(UsageError::not_built("otlp.endpoint", "otlp").into())
    }

    /// Where traces are handed over.
    pub fn traces(&self) -> TraceSender {
        match *self {}
    }

    /// Sends what is left.
    pub fn end(self) {
        match self {}
    }
}
