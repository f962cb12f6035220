//! Errors of what-if.

use warptape_replay::ReplayError;

/// Reasons why a recorded run cannot be modelled, or not with these changes.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// The log or its journal cannot be read.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// No policy has this name.
    #[error(
        "--policy {policy:?} is unknown; policies of tasks: {tasks}, and dqn:FILE; of placement: {placement}"
    )]
    UnknownPolicy {
        /// The name given.
        policy: String,
        /// Policies of tasks, separated by commas.
        tasks: String,
        /// Policies of placement, separated by commas.
        placement: String,
    },
    /// No network, or more than one, has this hash.
    #[error(
        "{policy:?} names no network of the recorded run, which has: {there}; give a network's file, as --policy dqn:FILE"
    )]
    UnknownNetwork {
        /// The policy that contains the hash.
        policy: String,
        /// Policies of the recorded networks, separated by commas.
        there: String,
    },
    /// A network is made for another number of lanes.
    #[error(
        "the network {hash} is for {wanted} lanes, but there are {lanes}; give one for {lanes}, or one of \
         architecture `improved` for any number"
    )]
    NetworkLanes {
        /// The network's hash.
        hash: String,
        /// Number of lanes for which the network is made.
        wanted: usize,
        /// Number of lanes of the run.
        lanes: usize,
    },
    /// No field has this name.
    #[error("--set {key}: the scheduler's configuration has no such field in this journal; it has: {known}")]
    UnknownKey {
        /// The given name.
        key: String,
        /// All fields, separated by commas.
        known: String,
    },
    /// The value is not allowed for the field.
    #[error("--set {key}={value}: {mistake}")]
    BadValue {
        /// The field.
        key: String,
        /// The value.
        value: String,
        /// The allowed values.
        mistake: String,
    },
    /// The fields contradict each other, or are out of range.
    #[error("the scheduler rejects this configuration, because of these mistakes: {mistakes}")]
    BadConfig {
        /// The faults, separated by semicolons.
        mistakes: String,
    },
    /// No lane has this name.
    #[error("{flag} {lane}: there is no such lane; the lanes are: {there}")]
    UnknownLane {
        /// The flag that contains the name.
        flag: &'static str,
        /// The lane as the user named it.
        lane: String,
        /// Lanes by number and device, separated by commas.
        there: String,
    },
    /// The device is wrong, or its speed is unknown.
    #[error("--devices {device}: {mistake}; the journal has lanes on: {there}")]
    UnknownDevice {
        /// The device.
        device: String,
        /// The fault.
        mistake: String,
        /// Devices of the journal, separated by commas.
        there: String,
    },
    /// The time lies outside the window.
    #[error(
        "--lose {lane}@…: the time is {after_s:.3} s after the beginning of the recorded window, which lasts \
         {window_s:.3} s. Give a time within the window, or +SECONDS after its beginning"
    )]
    TimeOutside {
        /// The lane.
        lane: String,
        /// The time after the beginning of the window, in seconds.
        after_s: f64,
        /// Length of the window, in seconds.
        window_s: f64,
    },
    /// No rows and no tasks arrived.
    #[error(
        "{what} has no arrivals of rows and no risk tasks, so changes have no effect; choose an earlier --since or a later --until"
    )]
    NothingArrived {
        /// The journal, or its window.
        what: String,
    },
    /// The window has more inputs than memory can hold.
    #[error("the window has more than {inputs_max} inputs; choose a shorter one with --since and --until")]
    TooMuch {
        /// The greatest number allowed.
        inputs_max: usize,
    },
    /// The recording has no measurement from which a lane's speed can be fitted.
    #[error(
        "no batch and no slice of the lane class {class:?} completed within the window, so its service times are unknown; choose a longer window"
    )]
    NothingMeasured {
        /// The class.
        class: String,
    },
    /// The scheduler refused an input.
    #[error(
        "the scheduler refused the input {input} of the model at {at_ns} ns: {error}; run `warptape replay \
         verify`, and report a bug if it finds no difference"
    )]
    Refused {
        /// The input's name.
        input: &'static str,
        /// Its time, in nanoseconds since the epoch.
        at_ns: i64,
        /// The scheduler's error.
        error: String,
    },
}
