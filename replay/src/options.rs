//! Options of a verification.

use std::sync::Arc;

use warptape_engine::Topics;
use warptape_schemas::SchemaSource;
use warptape_stages::Isa;

use crate::anchor::{Anchored, PublicKey};

/// Options of a verification.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Topic of the journal.
    pub journal: String,
    /// The other topics of the log.
    pub sources: OutputOptions,
    /// True to compare outputs as well.
    pub outputs: bool,
    /// Topic of the lifecycle records of processes, which are compared if there are anchors.
    pub lifecycle: String,
    /// Keys, one of which must have signed each journal; without keys, signatures are not checked.
    pub public_keys: Vec<PublicKey>,
    /// Anchors that were stored elsewhere.
    pub anchored: Option<Anchored>,
}

impl VerifyOptions {
    /// Returns options for the journal and the outputs of a group in the pipeline's topics, with the best instruction
    /// set of this processor. Outputs are not compared, and ticks use no schema registry.
    pub fn new(topics: &Topics, group: &str) -> Self {
        let sources = OutputOptions {
            ticks: topics.ticks.clone(),
            signals: topics.signals.clone(),
            late: topics.late.clone(),
            dead_letter: topics.dead_letter.clone(),
            snapshots: topics.snapshots.clone(),
            risk_requests: topics.risk_requests.clone(),
            risk_results: topics.risk_results.clone(),
            control: topics.control.clone(),
            control_results: topics.control_results.clone(),
            group: group.to_owned(),
            schemas: None,
            isa: Isa::detect(),
        };
        Self {
            journal: topics.journal.clone(),
            sources,
            outputs: false,
            lifecycle: topics.lifecycle.clone(),
            public_keys: Vec::new(),
            anchored: None,
        }
    }

    /// Returns all topics that are read.
    pub(crate) fn topics(&self) -> Vec<&str> {
        [&[self.journal.as_str()][..], &self.sources.topics()].concat()
    }
}

/// Topics of ticks and outputs, and the group that wrote the outputs.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// Topic of ticks.
    pub ticks: String,
    /// Topic of signals.
    pub signals: String,
    /// Topic of late ticks.
    pub late: String,
    /// Topic of dead letters.
    pub dead_letter: String,
    /// Topic of snapshots. Snapshots are compared; if the first ticks were removed, the comparison of outputs starts
    /// from one. The topic may be missing.
    pub snapshots: String,
    /// Topic of risk requests. If this topic and that of results are both missing, there were no requests.
    pub risk_requests: String,
    /// Topic of risk results.
    pub risk_results: String,
    /// Topic of operators' commands. This topic and that of answers may be missing.
    pub control: String,
    /// Topic of answers to operators' commands.
    pub control_results: String,
    /// Consumer group of the run. Outputs exist up to its committed offsets.
    pub group: String,
    /// Schemas of ticks in a schema registry's frame; `None` if there is no registry.
    pub schemas: Option<Arc<dyn SchemaSource>>,
    /// Instruction set of the stages; the results do not depend on it.
    pub isa: Isa,
}

impl OutputOptions {
    /// Returns all topics of ticks and outputs.
    pub(crate) fn topics(&self) -> [&str; 9] {
        [
            &self.ticks,
            &self.signals,
            &self.late,
            &self.dead_letter,
            &self.snapshots,
            &self.risk_requests,
            &self.risk_results,
            &self.control,
            &self.control_results,
        ]
        .map(String::as_str)
    }
}
