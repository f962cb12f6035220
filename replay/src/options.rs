//! What to verify.

use std::sync::Arc;

use warptape_engine::Topics;
use warptape_schemas::SchemaSource;
use warptape_stages::Isa;

use crate::anchor::{Anchored, PublicKey};

/// What to verify.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// Topic of the journal.
    pub journal: String,
    /// Where the rest of the log is.
    pub sources: OutputOptions,
    /// Compare outputs as well.
    pub outputs: bool,
    /// Topic in which processes tell what happens to them, compared where there are anchors.
    pub lifecycle: String,
    /// One of these keys has to have signed each journal; without keys, signatures are not looked at.
    pub public_keys: Vec<PublicKey>,
    /// Anchors that were kept elsewhere.
    pub anchored: Option<Anchored>,
}

impl VerifyOptions {
    /// The journal and the outputs of a group in the pipeline's topics, by the best instruction set of this processor; outputs are not
    /// compared, and ticks name no schemas of a registry.
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

    /// Every topic that is looked at.
    pub(crate) fn topics(&self) -> Vec<&str> {
        [&[self.journal.as_str()][..], &self.sources.topics()].concat()
    }
}

/// Where ticks and outputs are, and who made them.
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
    /// Topic of snapshots, which are compared, and from which outputs are where the first ticks were removed. It may be missing.
    pub snapshots: String,
    /// Topic of risk requests. It and that of their results may both be missing: then there were none.
    pub risk_requests: String,
    /// Topic of their results.
    pub risk_results: String,
    /// Topic of operators' commands. It and that of the answers may be missing.
    pub control: String,
    /// Topic of the answers.
    pub control_results: String,
    /// Consumer group of the run: outputs exist up to its committed offsets.
    pub group: String,
    /// Writer schemas of ticks in a schema registry's frame.
    pub schemas: Option<Arc<dyn SchemaSource>>,
    /// Instruction set of the stages; the results are the same for all.
    pub isa: Isa,
}

impl OutputOptions {
    /// Every topic of ticks and outputs.
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
