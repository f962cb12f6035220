//! Replaces the export to OpenTelemetry in a build without it.

use std::sync::Arc;

use crate::runtime::Progress;
use crate::settings::Settings;
use crate::traces::TraceSender;
use crate::usage_error::UsageError;

/// The export of a running process. A build without the feature `otlp` never creates one.
pub enum Otlp {}

impl Otlp {
    /// Refuses settings that request an export.
    pub fn start(settings: &Settings, _: &Arc<Progress>) -> anyhow::Result<Option<Self>> {
        if settings.otlp.endpoint.is_empty() {
            return Ok(None);
        }
        Err(UsageError::not_built("otlp.endpoint", "otlp").into())
    }

    /// Returns a sender for traces.
    pub fn traces(&self) -> TraceSender {
        match *self {}
    }

    /// Sends the remaining data.
    pub fn end(self) {
        match self {}
    }
}
