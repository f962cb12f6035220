//! The real binary as processes: what it prints, with which exit code, what it leaves in the log, and what it survives.
//!
//! Everything is seen from outside: through arguments, signals, standard output and the log's file.

mod bad_input;
mod command_line;
mod crash;
mod dead_letters;
mod hot;
mod kafka_clients;
mod kafka_group;
mod newcomer;
mod outputs;
mod processes;
mod redis_server;
mod registry;
mod registry_stub;
mod side_by_side;
