//! Why nothing can be said about what would have been.

use warptape_replay::ReplayError;

/// Why a recorded run cannot be modelled, or not so.
#[derive(Debug, thiserror::Error)]
pub enum WhatIfError {
    /// The log or its journal cannot be used.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// There is no such policy.
    #[error(
        "--policy {policy:?} is not known; of tasks there are: {tasks}, and dqn:FILE; of placement: {placement}"
    )]
    UnknownPolicy {
        /// What was asked for.
        policy: String,
        /// Policies of tasks, separated by commas.
        tasks: String,
        /// Policies of placement, likewise.
        placement: String,
    },
    /// No network, or several, have such a hash.
    #[error(
        "{policy:?} names no network of the recorded run, which has: {there}; give a network's file, as --policy dqn:FILE"
    )]
    UnknownNetwork {
        /// The policy that names it.
        policy: String,
        /// Policies of the recorded networks, separated by commas.
        there: String,
    },
    /// A network is for another number of lanes.
    #[error(
        "the network {hash} is for {wanted} lanes, and there are {lanes}; give one for {lanes}, or of the architecture `improved`, which is for any \
         number"
    )]
    NetworkLanes {
        /// Its hash.
        hash: String,
        /// The lanes that it is for.
        wanted: usize,
        /// The lanes that there are.
        lanes: usize,
    },
    /// There is no such field.
    #[error("--set {key}: the scheduler's configuration has no such field in this journal; it has: {known}")]
    UnknownKey {
        /// What was asked for.
        key: String,
        /// Fields that there are, separated by commas.
        known: String,
    },
    /// The field cannot have the value.
    #[error("--set {key}={value}: {mistake}")]
    BadValue {
        /// The field.
        key: String,
        /// The value.
        value: String,
        /// What is allowed.
        mistake: String,
    },
    /// The fields contradict each other, or leave their ranges.
    #[error("the scheduler takes no such configuration; correct: {mistakes}")]
    BadConfig {
        /// What is wrong.
        mistakes: String,
    },
    /// There is no such lane.
    #[error("{flag} {lane}: there is no such lane; there are: {there}")]
    UnknownLane {
        /// The flag that names it.
        flag: &'static str,
        /// The lane as it was named.
        lane: String,
        /// Lanes by number and device, separated by commas.
        there: String,
    },
    /// Nothing is known of a device's speed.
    #[error("--devices {device}: {mistake}; the journal has lanes on: {there}")]
    UnknownDevice {
        /// The device.
        device: String,
        /// What is wrong.
        mistake: String,
        /// Devices that the journal knows, separated by commas.
        there: String,
    },
    /// The time is not one of the window.
    #[error(
        "--lose {lane}@…: the time lies {after_s:.3} s after the recorded window begins, which lasts {window_s:.3} s; name a time within it, or as \
         +SECONDS after its beginning"
    )]
    TimeOutside {
        /// The lane.
        lane: String,
        /// The time after the beginning of the window, in seconds.
        after_s: f64,
        /// Length of the window, in seconds.
        window_s: f64,
    },
    /// No rows and no tasks came.
    #[error(
        "{what} has no arrivals of rows and no risk tasks, so that there is nothing to decide otherwise; choose an earlier --since or a later --until"
    )]
    NothingArrived {
        /// The journal, or its window.
        what: String,
    },
    /// There is more than is kept in memory.
    #[error("the window has more than {inputs_max} inputs; choose a shorter one with --since and --until")]
    TooMuch {
        /// How many are allowed.
        inputs_max: usize,
    },
    /// Nothing was measured that a lane's speed could be fitted from.
    #[error(
        "no batch of a lane of class {class:?} and no slice of it came back within the window, so that nothing is known of how long they take; choose a longer window"
    )]
    NothingMeasured {
        /// The class.
        class: String,
    },
    /// The scheduler refused an input.
    #[error(
        "the scheduler refused the input {input} of the model at {at_ns} ns: {error}; verify the log with `warptape replay verify`, and report this if it is sound"
    )]
    Refused {
        /// The input's name.
        input: &'static str,
        /// Its time.
        at_ns: i64,
        /// Why.
        error: String,
    },
}
