//! Every schema that Warptape has published, by fingerprint. Records of all versions stay readable.
//!
//! The current version of each record is in `avro/NAME.avsc`, generated from the record's type. To change one, copy the
//! file to `avro/old/NAME_VERSION.avsc`, list it in [`OLD`], change the type and raise the version. Tests then write
//! the file and report the new fingerprint. Only fields with defaults may be added, before a hash or checksum at the
//! record's end. Golden bytes of every version are in `golden/`. If records without the change must keep their bytes,
//! list the old version in [`STILL_WRITTEN`].

use crate::error::DecodeError;

/// One version of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownSchema {
    /// Name of the record without its namespace, which is `warptape`.
    pub name: &'static str,
    /// Name of the record's files.
    pub file: &'static str,
    /// Version, from 1.
    pub version: u32,
    /// CRC-64-AVRO fingerprint of its parsing canonical form.
    pub fingerprint: u64,
    /// The schema with its documentation.
    pub text: &'static str,
}

impl KnownSchema {
    /// Returns the error for a record of this schema with an unknown fingerprint.
    pub fn unknown(&self, fingerprint: u64) -> DecodeError {
        DecodeError::UnknownVersion { record: self.name, fingerprint, known: self.version }
    }
}

macro_rules! known {
    ($(#[$doc:meta])* $constant:ident, $name:literal, $file:literal, $version:literal, $fingerprint:literal) => {
        $(#[$doc])*
        pub const $constant: KnownSchema = KnownSchema {
            name: $name,
            file: $file,
            version: $version,
            fingerprint: $fingerprint,
            text: include_str!(concat!("../avro/", $file, ".avsc")),
        };
    };
}

known!(
    /// One trade or quote.
    TICK, "Tick", "tick", 1, 0x017e_0ff4_e4c5_050a
);
known!(
    /// Many ticks by columns.
    TICK_BATCH, "TickBatch", "tick_batch", 1, 0xd290_faeb_bbba_27d2
);
known!(
    /// Many ticks by columns, with scales of their own.
    SCALED_TICK_BATCH, "ScaledTickBatch", "scaled_tick_batch", 1, 0xb616_25e8_ec5a_8b12
);
known!(
    /// Many ticks by columns of a fixed width.
    PACKED_TICK_BATCH, "PackedTickBatch", "packed_tick_batch", 1, 0xc52d_b174_46c5_0371
);
known!(
    /// A bar or an alert of a symbol.
    SIGNAL, "Signal", "signal", 5, 0x2275_5e34_f129_eb43
);
known!(
    /// One step of the scheduler.
    JOURNAL_ENTRY, "JournalEntry", "journal_entry", 12, 0x533d_e25e_f2fd_d3b3
);
known!(
    /// Stage state at an offset.
    SNAPSHOT, "Snapshot", "snapshot", 1, 0x4675_df9d_c370_a708
);
known!(
    /// A tick that arrived too late.
    LATE_TICK, "LateTick", "late_tick", 2, 0x5c5b_9f24_44cc_70e4
);
known!(
    /// A record that could not be processed.
    DEAD_LETTER, "DeadLetter", "dead_letter", 3, 0xc8bd_88c3_81c9_307c
);
known!(
    /// An event in the life of a process.
    LIFECYCLE, "Lifecycle", "lifecycle", 2, 0x5246_5095_d07d_8e3a
);

known!(
    /// A question about risk.
    RISK_REQUEST, "RiskRequest", "risk_request", 5, 0x921f_1cec_d913_8acb
);
known!(
    /// The answer to a question about risk.
    RISK_RESULT, "RiskResult", "risk_result", 4, 0x2f5e_f9fd_e16b_1a5b
);
known!(
    /// The progress of a source of ticks.
    FEED, "Feed", "feed", 1, 0xe945_081e_aff3_b448
);

known!(
    /// An operator's command.
    CONTROL, "Control", "control", 2, 0x9826_d19a_202f_7c18
);
known!(
    /// The answer to an operator's command.
    CONTROL_RESULT, "ControlResult", "control_result", 1, 0x388a_313a_09b3_cf29
);
known!(
    /// An event time that an operator, a process or a feed sets among the ticks.
    SET_EVENT_TIME, "SetEventTime", "set_event_time", 2, 0x1158_63e2_9e39_f917
);

/// Version 11 of journal entries, with hashes as hex digits.
pub const JOURNAL_ENTRY_11: KnownSchema = KnownSchema {
    name: "JournalEntry",
    file: "journal_entry",
    version: 11,
    fingerprint: 0x0232_4f82_9c33_3d6e,
    text: include_str!("../avro/old/journal_entry_11.avsc"),
};

/// Version 1 of lifecycle records, which knew no removed records.
pub const LIFECYCLE_1: KnownSchema = KnownSchema {
    name: "Lifecycle",
    file: "lifecycle",
    version: 1,
    fingerprint: 0x3d07_b689_929f_5ab5,
    text: include_str!("../avro/old/lifecycle_1.avsc"),
};

/// Version 1 of signals, still written for alerts of built-in indicators.
pub const SIGNAL_1: KnownSchema = KnownSchema {
    name: "Signal",
    file: "signal",
    version: 1,
    fingerprint: 0x2123_3437_33bc_4371,
    text: include_str!("../avro/old/signal_1.avsc"),
};
/// Version 4 of signals, still written for bars.
pub const SIGNAL_4: KnownSchema = KnownSchema {
    name: "Signal",
    file: "signal",
    version: 4,
    fingerprint: 0xef45_6b0a_cbc5_29ac,
    text: include_str!("../avro/old/signal_4.avsc"),
};

/// Version 1 of late ticks, still written for ticks whose numbers fit 64 bits in 1e-9.
pub const LATE_TICK_1: KnownSchema = KnownSchema {
    name: "LateTick",
    file: "late_tick",
    version: 1,
    fingerprint: 0xcb1d_27a8_de32_83fa,
    text: include_str!("../avro/old/late_tick_1.avsc"),
};

/// Version 1 of set event times, still written for records that neither cut bars nor move only forward.
pub const SET_EVENT_TIME_1: KnownSchema = KnownSchema {
    name: "SetEventTime",
    file: "set_event_time",
    version: 1,
    fingerprint: 0x8a0c_fc43_2a3b_e661,
    text: include_str!("../avro/old/set_event_time_1.avsc"),
};

/// Version 2 of dead letters, still written for single whole records.
pub const DEAD_LETTER_2: KnownSchema = KnownSchema {
    name: "DeadLetter",
    file: "dead_letter",
    version: 2,
    fingerprint: 0x8510_0246_48e9_90ac,
    text: include_str!("../avro/old/dead_letter_2.avsc"),
};

/// Version 3 of risk requests, still written for kinds older than digital options.
pub const RISK_REQUEST_3: KnownSchema = KnownSchema {
    name: "RiskRequest",
    file: "risk_request",
    version: 3,
    fingerprint: 0xd068_c7e3_779f_fab1,
    text: include_str!("../avro/old/risk_request_3.avsc"),
};

/// Version 4 of risk requests, still written for digital options.
pub const RISK_REQUEST_4: KnownSchema = KnownSchema {
    name: "RiskRequest",
    file: "risk_request",
    version: 4,
    fingerprint: 0xce32_04b8_c7a2_d618,
    text: include_str!("../avro/old/risk_request_4.avsc"),
};

/// The current version of every record.
pub const CURRENT: [KnownSchema; 16] = [
    TICK,
    TICK_BATCH,
    SCALED_TICK_BATCH,
    PACKED_TICK_BATCH,
    SIGNAL,
    JOURNAL_ENTRY,
    SNAPSHOT,
    LATE_TICK,
    DEAD_LETTER,
    LIFECYCLE,
    RISK_REQUEST,
    RISK_RESULT,
    FEED,
    CONTROL,
    CONTROL_RESULT,
    SET_EVENT_TIME,
];

/// All earlier versions. A version that is no longer written is listed only here.
pub const OLD: [KnownSchema; 9] = [
    SIGNAL_1,
    SIGNAL_4,
    LATE_TICK_1,
    SET_EVENT_TIME_1,
    DEAD_LETTER_2,
    RISK_REQUEST_3,
    RISK_REQUEST_4,
    JOURNAL_ENTRY_11,
    LIFECYCLE_1,
];

/// Earlier versions that are still written for records without newer fields. Newer fields have `#[wire(since = N)]`,
/// and the encoder chooses the version.
const STILL_WRITTEN: [KnownSchema; 7] =
    [SIGNAL_1, SIGNAL_4, LATE_TICK_1, SET_EVENT_TIME_1, DEAD_LETTER_2, RISK_REQUEST_3, RISK_REQUEST_4];

/// Returns the written versions of a record, the current one last.
pub fn written(current: KnownSchema) -> impl Iterator<Item = KnownSchema> {
    STILL_WRITTEN.into_iter().filter(move |schema| schema.name == current.name).chain([current])
}

/// Returns all versions of all records.
pub fn all() -> impl Iterator<Item = KnownSchema> {
    CURRENT.into_iter().chain(OLD)
}

/// Returns the version with this fingerprint; `None` if there is none.
pub fn by_fingerprint(fingerprint: u64) -> Option<KnownSchema> {
    CURRENT.iter().chain(&OLD).find(|schema| schema.fingerprint == fingerprint).copied()
}
