//! Explains the answer to a risk request in words.

use warptape_replay::chain::{Clock, RequestChain, Step};

use super::chain::{cause, milliseconds, name, part_of, push_line, push_paragraph, wait_rows};
use super::why;
use crate::commands::columns::{numbered, utc};

/// Returns the whole chain as text.
pub fn text(chain: &RequestChain) -> String {
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
                Some(Clock::Publisher) => " by the publisher's clock; all other times are of the process's",
                Some(Clock::Log) => {
                    " by the log's clock, which gives this topic's records their times; all other times are of the process's"
                }
                Some(Clock::Process) => "",
                None => " by a clock that the log does not name; all other times are of the process's",
            }
        ),
    );
    let end = if chain.is_to_commit { "the commit" } else { "the seal, behind which no time is known" };
    let begin = if chain.from_ns == chain.request.created_ns { "there" } else { "when the process had it" };
    let main = chain.waits.iter().max_by_key(|wait| wait.ns);
    let main = main.map_or_else(String::new, |main| {
        format!("; {}, {}, {}", part_of(main.ns, chain.total_ns), milliseconds(main.ns), cause(main.step))
    });
    push_line(&mut text, &format!("{} from {begin} to {end}{main}", milliseconds(chain.total_ns)));
    text.push('\n');
    text += &wait_rows(chain.from_ns, &chain.waits, |step| sentence(chain, step));
    if let Some(explanation) = &chain.explanation {
        push_paragraph(&mut text, "why its first slice was next on its lane:");
        text += &why::choices(&explanation.choices);
        for otherwise in &explanation.otherwise {
            push_line(&mut text, &format!("  {}", why::words(otherwise)));
        }
    }
    for unknown in &chain.unknown {
        push_paragraph(&mut text, &format!("not known: {unknown}"));
    }
    text
}

fn sentence(chain: &RequestChain, step: Step) -> String {
    let task = chain.task.as_ref();
    match (step, task) {
        (Step::Process, _) => format!("process {:?} had not begun", chain.process.node),
        (Step::Read, _) => "the engine had it".to_owned(),
        (Step::Preparation, Some(task)) => {
            format!(
                "its market was taken and its units made: task {} (entry {})",
                task.task, task.arrived.sequence
            )
        }
        (Step::TaskQueue, Some(task)) => {
            let entry = task.first_slice.map_or_else(String::new, |at| format!(" (entry {})", at.sequence));
            format!("other work was before it on the lanes{entry}")
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
            format!("the next commit was not due; entry {} sealed it", chain.transaction.sealed_sequence)
        }
        _ => format!("{}: {}", name(step), cause(step)),
    }
}
