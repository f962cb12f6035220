//! Tests of the scheduler from outside: text cases, a simulation against a model engine, quality of placement, and
//! inputs that no shell would send.

mod autoscale;
mod balance;
mod breaker;
mod cases;
mod checkpoint;
mod control;
mod draws;
mod drifting;
mod explain;
mod fairness;
mod garbage;
mod learned;
mod model;
mod placement;
mod planted;
mod room;
mod routing;
mod script;
mod shadow;
mod simulation;
mod starvation;
mod tasks;
mod waves;
