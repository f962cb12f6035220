//! Explains the answer to a risk request in words.

use warptape_replay::chain::{Clock, RequestChain, Step};

use super::chain::{cause, milliseconds, name, part_of, push_line, push_paragraph, wait_rows};
use super::why;
use crate::commands::columns::{numbered, utc};
use crate::commands::fit::Room;

/// Returns the whole chain as text.
pub fn text(chain: &RequestChain, room: Room) -> String {
    let mut text = String::new();
    let class = serde_json::json!(chain.request.class);
    push_line(
        &mut text,
        &format!(
            "answer to the {} request {:?} of {:?}: offset {} of partition {}",
            class.as_str().unwrap_or_default().to_lowercase(),
            chain.request.request_id,
            chain.request.tenant,
            chain.result_offset,
            chain.result_partition
        ),
    );
    push_line(
        &mut text,
        &format!(
            "request at offset {} of partition {}, published at {}{}",
            chain.request.offset,
            chain.request.partition,
            utc(chain.request.created_ns),
            match chain.request.created_clock {
                Some(Clock::Publisher) =>
                    " by the publisher's clock; all other times are by the clock of \
                                           the process",
                Some(Clock::Log) => {
                    " by the log's clock, which stamps the records of this topic; all other times are by the clock of the process"
                }
                Some(Clock::Process) => "",
                None => " by an unknown clock; all other times are by the clock of the process",
            }
        ),
    );
    let end = if chain.is_to_commit { "the commit" } else { "the seal (later times are unknown)" };
    let begin =
        if chain.from_ns == chain.request.created_ns { "there" } else { "its arrival at the process" };
    let main = chain.waits.iter().max_by_key(|wait| wait.ns);
    let main = main.map_or_else(String::new, |main| {
        format!("; {}, {}, {}", part_of(main.ns, chain.total_ns), milliseconds(main.ns), cause(main.step))
    });
    push_line(&mut text, &format!("{} from {begin} to {end}{main}", milliseconds(chain.total_ns)));
    text.push('\n');
    text += &wait_rows(chain.from_ns, &chain.waits, room, |step| sentence(chain, step));
    if let Some(explanation) = &chain.explanation {
        push_paragraph(&mut text, "why its first slice was the next one on its lane:");
        text += &why::choices(&explanation.choices, room);
        for otherwise in &explanation.otherwise {
            push_line(&mut text, &format!("  {}", why::words(otherwise)));
        }
    }
    for unknown in &chain.unknown {
        push_paragraph(&mut text, &format!("unknown: {unknown}"));
    }
    text
}

fn sentence(chain: &RequestChain, step: Step) -> String {
    let task = chain.task.as_ref();
    match (step, task) {
        (Step::Process, _) => format!("process {:?} had not started", chain.process.node),
        (Step::Read, _) => "the engine got the request".to_owned(),
        (Step::Preparation, Some(task)) => {
            format!(
                "its market snapshot was taken and its units were prepared: task {} (entry {})",
                task.task, task.arrived.sequence
            )
        }
        (Step::TaskQueue, Some(task)) => {
            let entry = task.first_slice.map_or_else(String::new, |at| format!(" (entry {})", at.sequence));
            format!("the lanes had other work first{entry}")
        }
        (Step::Slices, Some(task)) => format!(
            "{} in {} and {}; lanes ({}) worked for {}",
            numbered(task.units, "unit", "units"),
            numbered(task.slices, "slice", "slices"),
            numbered(task.rounds, "round", "rounds"),
            task.devices.join(", "),
            milliseconds(task.compute_ns)
        ),
        (Step::CommitInterval, _) => {
            format!(
                "the next commit was not due; entry {} sealed the result",
                chain.transaction.sealed_sequence
            )
        }
        _ => format!("{}: {}", name(step), cause(step)),
    }
}
