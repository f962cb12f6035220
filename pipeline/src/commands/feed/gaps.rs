//! Gaps in what is fed, behind which `run` takes the first ticks for wrong: told of, or followed by words among the ticks.

use std::path::Path;

use indicatif::{HumanCount, ProgressBar};

use super::{LOOK_TICKS, progress_bar};
use crate::cli::Interrupt;
use crate::feed_ledger::FeedInput;
use crate::publisher::{PublishError, Publisher};
use crate::usage_error::UsageError;
use warptape_eventlog::{EventLog, LogError, TopicPartition};
use warptape_schemas::SetEventTime;
use warptape_schemas::tick::Tick;
use warptape_sources::csv::length_text;
use warptape_sources::{EarliestTicks, GapFollower, GapSummary, GapSurvey, Gaps, Source, SourceError};

/// The ways of a feed with gaps.
pub enum FeedGaps {
    /// Nobody has looked at the ticks before: they are looked at when they are fed.
    Watched(Box<GapSurvey>),
    /// All is told already, or is to be told at the end.
    Told(Vec<String>),
    /// They are known.
    Known(Box<KnownGaps>),
}

/// Gaps of ticks that were looked at.
pub struct KnownGaps {
    follower: GapFollower,
    /// Ticks of each input that are in the log and are still to come.
    left: Vec<u64>,
    /// True if they are followed, false if they are counted.
    are_followed: bool,
    /// Partitions without ticks: any time is followed there.
    is_empty: Vec<bool>,
    /// The name in words about event time: that of the publisher.
    by: String,
    /// Gaps before ticks of a partition.
    met: u64,
}

impl KnownGaps {
    /// Gaps of ticks that go to these partitions, of which so many of each input are in the log.
    pub fn new(follower: GapFollower, are_followed: bool, before: &[u64], by: String) -> KnownGaps {
        KnownGaps { follower, left: before.to_vec(), are_followed, is_empty: Vec::new(), by, met: 0 }
    }

    /// Finds out which partitions have no ticks.
    pub fn find_empty(
        mut self,
        log: &dyn EventLog,
        ticks: &str,
        partitions: i32,
    ) -> Result<KnownGaps, LogError> {
        let is_empty = |partition| {
            let place = TopicPartition { topic: ticks.to_owned(), partition };
            Ok(log.written_end(&place)? == 0)
        };
        self.is_empty = (0..partitions).map(is_empty).collect::<Result<_, LogError>>()?;
        Ok(self)
    }

    /// Writes the word that goes before a tick. False if the tick is not to be published.
    fn take(&mut self, input: usize, tick: &Tick, publisher: &mut Publisher) -> Result<bool, PublishError> {
        let is_published = self.left[input] == 0;
        self.left[input] = self.left[input].saturating_sub(1);
        let Some(word) = self.follower.next(input, tick, is_published) else { return Ok(is_published) };
        self.met += u64::from(word.is_gap);
        // A partition's first tick may lie far behind what was fed before, or a feed before was broken off within a gap.
        if self.are_followed && (word.is_gap || !self.is_empty[word.partition as usize]) {
            let event_time_max_ns = word.event_time_ns;
            let id = format!("{}-{}-{event_time_max_ns}", self.by, word.partition);
            let set = SetEventTime {
                id,
                by: self.by.clone(),
                event_time_max_ns,
                cuts_bars: false,
                only_forward: true,
            };
            publisher.say_event_time(word.partition, &set)?;
        }
        Ok(is_published)
    }
}

impl FeedGaps {
    /// Has the source leave out what is in the log, unless it is to be looked at.
    pub fn leave(&self, source: &mut Source, before: &[u64]) {
        if let FeedGaps::Known(_) = self {
            return;
        }
        for (input, &ticks) in before.iter().enumerate() {
            source.leave(input, ticks);
        }
    }

    /// Looks at a tick of the source. False if it is not to be published.
    pub fn take(
        &mut self,
        source: &Source,
        tick: &Tick,
        publisher: &mut Publisher,
    ) -> Result<bool, PublishError> {
        match self {
            FeedGaps::Watched(survey) => {
                survey.add(source.last_place(), &tick.symbol, tick.event_time_ns);
                Ok(true)
            }
            FeedGaps::Told(_) => Ok(true),
            FeedGaps::Known(gaps) => gaps.take(source.last_input(), tick, publisher),
        }
    }

    /// The earliest ticks, if they are looked at when they are fed.
    pub fn earliest(&self) -> Option<&EarliestTicks> {
        match self {
            FeedGaps::Watched(survey) => Some(survey.earliest()),
            FeedGaps::Told(_) | FeedGaps::Known(_) => None,
        }
    }

    /// True if rows that are far ahead of the log are none for `run`.
    pub fn are_followed(&self) -> bool {
        matches!(self, FeedGaps::Known(known) if known.are_followed)
    }

    /// Remarks for the end of the feed.
    pub fn remarks(&self, inputs: &[FeedInput], source: &Source, ahead_ns_max: i64) -> Vec<String> {
        match self {
            FeedGaps::Watched(survey) => {
                let gaps = survey.gaps();
                let place = source.place_word();
                let of_input = |(number, input): (usize, &FeedInput)| {
                    let (path, gap) = (input.path.as_ref()?, gaps.of_input(number)?);
                    Some(remark(path, gap, place, ahead_ns_max))
                };
                inputs.iter().enumerate().filter_map(of_input).collect()
            }
            FeedGaps::Told(remarks) => remarks.clone(),
            FeedGaps::Known(gaps) if gaps.met == 0 => Vec::new(),
            FeedGaps::Known(gaps) if gaps.are_followed => {
                vec![format!(
                    "event time was set to go on behind gaps: {} times, once a gap and partition",
                    HumanCount(gaps.met)
                )]
            }
            FeedGaps::Known(gaps) => vec![format!(
                "time goes on more than {} later {} times within a partition, though not in the files: {}; --follow-gaps has `run` follow",
                length_text(ahead_ns_max),
                HumanCount(gaps.met),
                LOSS
            )],
        }
    }
}

const LOSS: &str = "`run` takes the first ticks behind such a gap for wrong (`stages.future_max_ms`), and `dlq replay` sends them again";

/// The remark about gaps of a file that are not followed.
pub fn remark(path: &Path, gap: GapSummary, place: &str, ahead_ns_max: i64) -> String {
    let limit = length_text(ahead_ns_max);
    let GapSummary { count, line, .. } = gap;
    let path = path.display();
    format!("{path}: time goes on more than {limit} later {count} times, first in {place} {line}: {LOSS}")
}

/// Reads what is to be looked at up to its end or Ctrl-C, which ends the feed as well.
///
/// # Errors
/// If it cannot be read to its end.
pub fn look_at(
    source: &mut Source,
    ahead_ns_max: i64,
    inputs: usize,
    interrupt: &Interrupt,
) -> Result<GapSurvey, SourceError> {
    let bar: ProgressBar = progress_bar(source);
    let mut gaps = GapSurvey::new(ahead_ns_max, inputs);
    let mut taken = 0_u64;
    while let Some(tick) = source.next() {
        // Nothing is published of what cannot be read to its end: another map would publish it again.
        let tick = tick.inspect_err(|_| bar.finish_and_clear())?;
        gaps.add(source.last_place(), &tick.symbol, tick.event_time_ns);
        taken += 1;
        if taken.is_multiple_of(LOOK_TICKS) {
            bar.set_position(source.progress().done);
            bar.set_message(format!("{} ticks looked at", HumanCount(taken)));
            if interrupt.is_set() {
                break;
            }
        }
    }
    bar.finish_and_clear();
    Ok(gaps)
}

/// The gaps that were found, if they can be followed.
pub fn followed(survey: &GapSurvey) -> Result<Gaps, UsageError> {
    let gaps = survey.gaps();
    if gaps.is_cut() {
        let found =
            "--follow-gaps: there are more than 65,536 gaps: raise `stages.future_max_ms`, or feed parts";
        return Err(UsageError(found.to_owned()));
    }
    Ok(gaps)
}

/// True if a file gives its bytes once. One that is not there is told of where it is opened.
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Refuses a pipe where an option needs files that can be read twice.
pub fn refuse_pipe<'a>(option: &str, mut paths: impl Iterator<Item = &'a Path>) -> Result<(), UsageError> {
    match paths.find(|path| is_pipe(path)) {
        Some(pipe) => {
            Err(UsageError(format!("{}: {option} reads a file twice: name no pipe", pipe.display())))
        }
        None => Ok(()),
    }
}
