//! The real binary as processes: what it prints, with which exit code, what it leaves in the log, and what it survives.
//!
//! Everything is seen from outside: through arguments, signals, standard output and the log's file.

mod anchors;
mod asking;
mod autoscale;
mod bad_input;
#[path = "../../../eventlog/tests/log/broker.rs"]
#[expect(dead_code, reason = "the tests of the log use more of it")]
mod broker;
mod campaign;
mod chain;
mod command_line;
mod control;
mod crash;
mod csv_feeds;
mod damaged_copy;
mod dead_letters;
mod debugger;
mod diffs;
mod disk_full;
mod endpoint;
mod evictions;
mod exports;
mod feeds;
mod history;
mod holes;
mod hot;
mod hot_results;
mod incidents;
mod kafka_bombs;
mod kafka_clients;
mod kafka_clocks;
mod kafka_crash;
mod kafka_faults;
mod kafka_group;
mod kafka_market;
mod kafka_poison;
mod learned;
mod log_files;
mod logs;
mod machine_clock;
mod monitoring;
mod neighbours;
mod newcomer;
mod otlp;
mod outputs;
mod partitioners;
mod processes;
mod prometheus;
mod proxy;
mod readable;
mod redis_server;
mod registry;
mod registry_stub;
mod removed_ticks;
mod repeated_feeds;
mod reports;
mod risk;
mod rows;
mod segments;
mod side_by_side;
mod strangers;
mod timeline;
mod verified_twice;
mod verifier;
mod what_if;
