//! Arguments of `control`.

use clap::{Args, Subcommand, ValueEnum};
use warptape_sources::TimeUnit;

/// Arguments of `warptape control`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Each command sends a record to the topic control, waits until the process has answered it, and prints what it did or why not. A
command holds until the process ends; what is to hold longer is configured. A refusal is exit status 1, and so is an answer that does not
come within --timeout-s: the command is refused if it is read later. See docs/control.md.

Example: warptape control drain 1 --log kafka:localhost:9092 --process 2")]
pub struct ControlArgs {
    /// Command for the running processes
    #[command(subcommand)]
    pub command: ControlWord,
    /// Process to command, by its engine.ordinal (default: that of the configuration)
    #[arg(long, global = true, value_name = "N", help_heading = "Who is told")]
    pub process: Option<i32>,
    /// Command all processes of the group that have a journal; each answers for itself
    #[arg(long, global = true, conflicts_with = "process", help_heading = "Who is told")]
    pub all: bool,
    /// Longest wait for answers, in seconds
    #[arg(
        long, global = true, value_name = "S", default_value_t = 30, help_heading = "Who is told",
        value_parser = clap::value_parser!(u64).range(1..=86_400)
    )]
    pub timeout_s: u64,
    /// Format of the answers
    #[arg(short, long, global = true, value_enum, default_value_t = ControlFormat::Table, help_heading = "Who is told")]
    pub output: ControlFormat,
}

/// Commands for running processes.
#[derive(Clone, Debug, Subcommand)]
pub enum ControlWord {
    /// Drain a lane: it gives its groups to other lanes and gets no more work
    #[command(after_help = "Example: warptape control drain 1")]
    Drain {
        /// The lane, by its number as `warptape devices` shows it
        lane: i32,
    },
    /// Use a drained lane again
    #[command(after_help = "Example: warptape control undrain 1")]
    Undrain {
        /// The lane
        lane: i32,
    },
    /// Give a lane another weight; a lane of weight 0 stands by
    #[command(after_help = "Example: warptape control weight 1 3 && warptape control rebalance")]
    Weight {
        /// The lane
        lane: i32,
        /// Its weight, from 0 to 1,000,000
        weight: i32,
    },
    /// Move groups to where they would be placed now
    #[command(after_help = "Example: warptape control rebalance --all")]
    Rebalance,
    /// Give a tenant of risk requests another share of the lanes
    #[command(after_help = "Example: warptape control tenant-weight desk 3 --all")]
    TenantWeight {
        /// The tenant
        tenant: String,
        /// Its weight, from 1 to 1,000
        weight: i32,
    },
    /// Set the event time that a partition's watermark goes on from. This undoes a jump that was wrongly followed, or
    /// follows one that was not
    #[command(after_help = "Example: warptape control watermark 3 --to 2024-08-08T14:30:00Z\n\
        \n\
        A record after the present ticks of the partition says so. All bars that are open close where event\n\
        time moves back. The process that has the partition has to be told; see docs/control.md.")]
    Watermark {
        /// The partition
        partition: i32,
        /// The partition's greatest event time from then on; ticks older by more than the allowed lateness are late
        #[arg(long, value_name = "TIME", value_parser = event_time)]
        to: EventTime,
    },
    /// Hold a lane's breaker open or closed, or let it open and close by itself
    #[command(after_help = "Example: warptape control breaker 1 open")]
    Breaker {
        /// The lane
        lane: i32,
        /// State that the breaker is held in
        to: BreakerWord,
    },
    /// Choose another policy of tasks or of placement
    #[command(
        after_help = "Example: warptape control policy tasks lp-price\n         warptape control policy placement balanced"
    )]
    Policy {
        /// Policy to replace: that of tasks or that of placement
        #[arg(value_parser = ["tasks", "placement"])]
        of: String,
        /// Name of the policy
        name: String,
    },
}

/// An event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventTime(pub i64);

fn event_time(text: &str) -> Result<EventTime, String> {
    TimeUnit::Rfc3339
        .parse_ns(text.as_bytes())
        .map(EventTime)
        .ok_or_else(|| "a time such as 2024-08-08T14:30:00Z is allowed".to_owned())
}

/// State that a breaker is held in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BreakerWord {
    /// The lane gets no work
    Open,
    /// The lane is used, however slow it is or however often it fails
    Close,
    /// The breaker opens and closes by itself
    Auto,
}

/// How answers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ControlFormat {
    /// A line for people
    Table,
    /// One JSON object a line with all fields
    Json,
}
