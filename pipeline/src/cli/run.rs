//! Arguments of `run` and `demo`.

use std::path::PathBuf;

use clap::Args;
use warptape_engine::AcceptedLoss;

use super::HotStateArg;
use super::count::parse_count_from_one;

/// Address of a running pipeline's HTTP endpoint.
#[derive(Clone, Debug, Args)]
pub struct ListenArg {
    /// Serve metrics, health and probes over HTTP at this address, such as 127.0.0.1:9464 (sets endpoint.listen)
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<String>,
}

/// Arguments of `warptape run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Reads ticks from the log, writes signals, decisions and snapshots back, until Ctrl-C.
With --until-caught-up the command ends by itself and prints the number of open bars.

Example: warptape run -c warptape.toml --log sqlite:market.db")]
pub struct RunArgs {
    /// Location of hot state
    #[command(flatten)]
    pub hot_state: HotStateArg,
    /// Address of the HTTP endpoint
    #[command(flatten)]
    pub listen: ListenArg,
    /// Show the view of `warptape top` instead of lines, if there is a terminal; q drains and ends
    #[arg(long)]
    pub top: bool,
    /// Continue a log under `stages.*` other than those that processed it so far, as a new segment of the log. All
    /// earlier ticks are read and folded once more
    #[arg(long)]
    pub new_segment: bool,
    /// Go on although unprocessed records are lost, up to these offsets, such as 0:1200,3:77 (PARTITION:OFFSET), or
    /// `removed` for all that the log has removed. The error that asks for the option names the offsets
    #[arg(long, value_name = "OFFSETS", value_parser = parse_accepted_loss)]
    pub accept_loss: Option<AcceptedLoss>,
    /// End once all ticks and risk requests that were in the log at the start are processed. No other process may own
    /// partitions of the log meanwhile
    #[arg(long)]
    pub until_caught_up: bool,
    /// Close the time bars that are open at that point, by a record among the ticks. Such bars are flagged as partial.
    /// Later ticks with times before the ends of these bars are late
    #[arg(long, requires = "until_caught_up")]
    pub close: bool,
}

/// Arguments of `warptape demo`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Ends after --ticks or --seconds, else on Ctrl-C, and prints the `replay verify` command to try next.
With --ticks the demo runs at full speed; without, at 200,000 ticks per second, which takes about 16 MB of disk per second.
Metrics and health are at http://127.0.0.1:9464, or at another port if that one is taken.
The log is a new file in the folder of --data; --log names another file, which must not exist either.

Example: warptape demo --ticks 2000000")]
pub struct DemoArgs {
    /// Stop after this many ticks, such as 2000000 or 2e6
    #[arg(long, value_name = "N", value_parser = parse_count_from_one)]
    pub ticks: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,
    /// Symbols of the synthetic market
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=456_976))]
    pub symbols: u32,
    /// Folder for the log (default: a new folder beside the system's temporary files)
    #[arg(long, value_name = "DIR", conflicts_with = "log")]
    pub data: Option<PathBuf>,
    /// Location of hot state
    #[command(flatten)]
    pub hot_state: HotStateArg,
    /// Address of the HTTP endpoint
    #[command(flatten)]
    pub listen: ListenArg,
    /// Show the view of `warptape top` instead of lines, if there is a terminal; q drains and ends
    #[arg(long)]
    pub top: bool,
}

/// Arguments of `warptape ready`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Asks a running pipeline whether it is ready, and prints its answer. Exit status: 0 ready, 1 not ready. Health checks of containers can use it
without any other program.

Example: warptape ready http://127.0.0.1:9464/readyz")]
pub struct ReadyArgs {
    /// Address to ask (default: /readyz of endpoint.listen, or of 127.0.0.1:9464)
    pub url: Option<String>,
}

/// Parses the records that may be lost: `removed`, or offsets by partition.
fn parse_accepted_loss(text: &str) -> Result<AcceptedLoss, String> {
    if text == "removed" {
        return Ok(AcceptedLoss::Removed);
    }
    let offset = |one: &str| {
        let (partition, offset) = one.split_once(':')?;
        let (partition, offset) = (partition.parse::<u32>().ok()?, offset.parse::<u64>().ok()?);
        Some((i32::try_from(partition).ok()?, i64::try_from(offset).ok()?))
    };
    let offsets = text.split(',').map(|one| {
        offset(one).ok_or_else(|| format!("{one:?} is no PARTITION:OFFSET; give one such as 0:1200, several with commas between them, or `removed` for all"))
    });
    offsets.collect::<Result<_, _>>().map(AcceptedLoss::Before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_given_up_is_said_by_partition() {
        assert_eq!(parse_accepted_loss("removed"), Ok(AcceptedLoss::Removed));
        let offsets = [(0, 1_200), (3, 77)].into_iter().collect();
        assert_eq!(parse_accepted_loss("0:1200,3:77"), Ok(AcceptedLoss::Before(offsets)));
        for wrong in [
            "",
            "all",
            "5",
            "0:",
            ":5",
            "0:-1",
            "-1:5",
            "0:5,",
            "0:5 ,1:2",
            "4294967296:1",
            "0:9223372036854775808",
        ] {
            assert!(
                parse_accepted_loss(wrong).is_err_and(|error| error.contains("PARTITION:OFFSET")),
                "{wrong:?}"
            );
        }
    }
}
