//! Replaces the export to OpenTelemetry in a build without it.

use std::sync::Arc;

use crate::runtime::Progress;
use crate::settings::Settings;
use crate::traces::TraceSender;
use crate::usage_error::UsageError;

/// The export of a running process; there is never one in a build without the feature `otlp`.
pub enum Otlp {}

impl Otlp {
    /// Refuses settings that ask for an export.
    pub fn start(settings: &Settings, _: &Arc<Progress>) -> anyhow::Result<Option<Self>> {
        if settings.otlp.endpoint.is_empty() {
            return Ok(None);
        }
        Err(UsageError::not_built("otlp.endpoint", "otlp").into())
    }

    /// Returns the way to hand over traces.
    pub fn traces(&self) -> TraceSender {
        match *self {}
    }

    /// Sends the remaining data.
    pub fn end(self) {
        match self {}
    }
}
