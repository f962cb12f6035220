//! Explains a batch in words.

use warptape_replay::chain::{BatchChain, PartFacts, Step};
use warptape_schemas::journal::CommitOutcome;

use super::chain::{cause, milliseconds, push_line, push_paragraph, wait_rows, why_then};
use super::why;
use crate::commands::columns::{numbered, utc};
use crate::commands::fit::{Head, Room, table};

/// Number of symbols shown of a group's rows.
const SYMBOLS_SHOWN: usize = 3;

/// Returns the whole explanation.
pub fn text(chain: &BatchChain, room: Room) -> String {
    let mut text = String::new();
    let batch = &chain.batch;
    push_line(
        &mut text,
        &format!(
            "batch {} of partition {} of the journal: {} of {}, dispatched to lane {} ({}) at {} (entry {})",
            batch.batch,
            chain.journal,
            numbered(batch.rows, "row", "rows"),
            numbered(batch.groups as u64, "group", "groups"),
            batch.lane,
            batch.device,
            utc(batch.at.at_ns),
            batch.at.sequence
        ),
    );
    let end = match batch.completed {
        Some(completed) => format!("it completed at {} (entry {})", utc(completed.at_ns), completed.sequence),
        None => "it did not complete".to_owned(),
    };
    push_line(
        &mut text,
        &format!(
            "{end}; {}; its oldest row took {}",
            batch.predicted_finish_ns.map_or_else(
                || "its end was not predicted, because its lane had not been measured yet".to_owned(),
                |finish_ns| format!("its end was predicted for {}", utc(finish_ns))
            ),
            milliseconds(chain.total_ns)
        ),
    );
    text.push('\n');
    text += &wait_rows(batch.oldest_arrival_ns, &chain.waits, room, |step| match step {
        Step::Queue => {
            let in_flight = numbered(batch.in_flight_batches as u64, "batch", "batches");
            format!("rows gathered; the lane had {in_flight} in flight")
        }
        step => cause(step).to_owned(),
    });
    push_paragraph(&mut text, &why_then(batch));
    if let Some(explanation) = &chain.explanation {
        text += &why::choices(&explanation.choices, room);
        for otherwise in &explanation.otherwise {
            push_line(&mut text, &format!("  {}", why::words(otherwise)));
        }
    }
    text.push('\n');
    text += &parts(&chain.parts, room);
    if let (Some(sequence), Some(sealed_ns)) = (chain.sealed_sequence, chain.sealed_ns) {
        let attempts = chain.attempts.iter().map(|attempt| {
            let outcome = serde_json::json!(attempt.outcome);
            let outcome = outcome.as_str().unwrap_or_default().to_lowercase();
            format!("; {outcome} at {}", utc(attempt.ended_ns))
        });
        let mut attempts: String = attempts.collect();
        if !chain.attempts.iter().any(|attempt| attempt.outcome == CommitOutcome::Committed) {
            attempts += "; committed, at a time that is not in the journal";
        }
        push_paragraph(
            &mut text,
            &format!("sealed first by entry {sequence} at {}{attempts}", utc(sealed_ns)),
        );
    }
    for unknown in &chain.unknown {
        push_paragraph(&mut text, &format!("unknown: {unknown}"));
    }
    text
}

/// Returns the symbols with the most ticks.
fn symbols(part: &PartFacts) -> String {
    let Some(symbols) = &part.symbols else { return "unknown".to_owned() };
    let named = symbols.iter().take(SYMBOLS_SHOWN).map(|one| format!("{} {}", one.symbol, one.rows));
    let more = symbols.len().saturating_sub(SYMBOLS_SHOWN);
    let more = (more > 0).then(|| format!("{more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

fn parts(parts: &[PartFacts], room: Room) -> String {
    let heads = [
        Head::number("partition"),
        Head::number("group"),
        Head::number("epoch"),
        Head::number("rows"),
        Head::fixed("records"),
        Head::fixed("came"),
        Head::text("ticks of symbols", 24),
    ];
    let first = ["partition", "group", "rows", "ticks of symbols", "records"];
    let row = |part: &PartFacts| {
        let records = part.first_offset.zip(part.next_offset);
        let records =
            records.map_or_else(|| "unknown".to_owned(), |(first, next)| format!("{first} to {}", next - 1));
        let came = part.came_ns.map_or_else(|| "unknown".to_owned(), utc);
        let numbers = [i64::from(part.partition), i64::from(part.group), part.epoch, part.rows];
        numbers.iter().map(i64::to_string).chain([records, came, symbols(part)]).collect()
    };
    let rows: Vec<Vec<String>> = parts.iter().map(row).collect();
    table(&heads, &first, &rows, room)
}
