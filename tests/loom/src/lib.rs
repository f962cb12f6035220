//! Source files of the workspace, compiled with loom's locks, and models of how threads use them. Loom runs each model
//! in every order of the threads' steps.
#![allow(dead_code, reason = "the files have more than the models use")]

mod sync;

#[path = "../../../pipeline/src/runtime/fence.rs"]
mod fence;
#[path = "../../../eventlog/src/sqlite/wake.rs"]
mod wake;
#[path = "../../../eventlog/src/sqlite/yielding.rs"]
mod yielding;

#[cfg(test)]
mod models {
    mod fence;
    mod wake;
    mod yielding;
}
