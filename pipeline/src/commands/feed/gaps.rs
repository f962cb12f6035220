//! Gaps in a feed: `run` rejects the first ticks after a gap as wrong. The feed reports gaps, or follows them with
//! `SetEventTime` records.

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

/// Treatments of gaps.
pub enum FeedGaps {
    /// Ticks without an earlier survey, which are surveyed while they are fed.
    Watched(Box<GapSurvey>),
    /// All remarks are known in advance, and printed at the end.
    Told(Vec<String>),
    /// The gaps are known from a survey.
    Known(Box<KnownGaps>),
}

/// Gaps of surveyed ticks.
pub struct KnownGaps {
    follower: GapFollower,
    /// Number of ticks, by input, that the log already has and the source has yet to pass.
    left: Vec<u64>,
    /// True if gaps are followed, false if they are counted.
    are_followed: bool,
    /// True for each partition without ticks, which accepts any first event time.
    is_empty: Vec<bool>,
    /// Name of the publisher, written to the records that set event time.
    by: String,
    /// Number of gaps met so far.
    met: u64,
}

impl KnownGaps {
    /// Builds the treatment of gaps for these partitions. `before` has the number of ticks of each input that the log
    /// already has.
    pub fn new(follower: GapFollower, are_followed: bool, before: &[u64], by: String) -> KnownGaps {
        KnownGaps { follower, left: before.to_vec(), are_followed, is_empty: Vec::new(), by, met: 0 }
    }

    /// Finds the partitions without ticks.
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

    /// Writes the `SetEventTime` record that a tick needs before it. Returns false if the tick must not be published.
    fn take(&mut self, input: usize, tick: &Tick, publisher: &mut Publisher) -> Result<bool, PublishError> {
        let is_published = self.left[input] == 0;
        self.left[input] = self.left[input].saturating_sub(1);
        let Some(word) = self.follower.next(input, tick, is_published) else { return Ok(is_published) };
        self.met += u64::from(word.is_gap);
        // A partition's first tick may lie far behind earlier feeds, or an earlier feed may have stopped within a gap.
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
    /// Makes the source skip ticks that the log already has, unless the survey needs them.
    pub fn leave(&self, source: &mut Source, before: &[u64]) {
        if let FeedGaps::Known(_) = self {
            return;
        }
        for (input, &ticks) in before.iter().enumerate() {
            source.leave(input, ticks);
        }
    }

    /// Surveys a tick of the source. Returns false if it must not be published.
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

    /// Returns the earliest ticks if they are surveyed while they are fed.
    pub fn earliest(&self) -> Option<&EarliestTicks> {
        match self {
            FeedGaps::Watched(survey) => Some(survey.earliest()),
            FeedGaps::Told(_) | FeedGaps::Known(_) => None,
        }
    }

    /// True if gaps are followed; rows far ahead of the log then do no harm.
    pub fn are_followed(&self) -> bool {
        matches!(self, FeedGaps::Known(known) if known.are_followed)
    }

    /// Returns the remarks to print at the end of the feed.
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
                    "event time was moved across gaps {} times, once per gap and partition",
                    HumanCount(gaps.met)
                )]
            }
            FeedGaps::Known(gaps) => vec![format!(
                "times jump ahead by more than {} within a partition {} times, though not within a file: {}; with --follow-gaps, `run` follows such gaps",
                length_text(ahead_ns_max),
                HumanCount(gaps.met),
                LOSS
            )],
        }
    }
}

const LOSS: &str =
    "`run` rejects the first ticks after such a gap (`stages.future_max_ms`); `dlq replay` sends them again";

/// Returns the remark on a file's gaps that are not followed.
pub fn remark(path: &Path, gap: GapSummary, place: &str, ahead_ns_max: i64) -> String {
    let limit = length_text(ahead_ns_max);
    let GapSummary { count, line, .. } = gap;
    let path = path.display();
    format!("{path}: times jump ahead by more than {limit} {count} times, first in {place} {line}: {LOSS}")
}

/// Surveys a source up to its end, or up to Ctrl-C, which ends the feed too.
///
/// # Errors
/// If the source cannot be read to its end.
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
        // An unreadable source must publish nothing: a second try with another map would publish its ticks again.
        let tick = tick.inspect_err(|_| bar.finish_and_clear())?;
        gaps.add(source.last_place(), &tick.symbol, tick.event_time_ns);
        taken += 1;
        if taken.is_multiple_of(LOOK_TICKS) {
            bar.set_position(source.progress().done);
            bar.set_message(format!("{} ticks checked", HumanCount(taken)));
            if interrupt.is_set() {
                break;
            }
        }
    }
    bar.finish_and_clear();
    Ok(gaps)
}

/// Returns the gaps that were found; an error if they cannot be followed.
pub fn followed(survey: &GapSurvey) -> Result<Gaps, UsageError> {
    let gaps = survey.gaps();
    if gaps.is_cut() {
        let found = "--follow-gaps: the input has more than 65,536 gaps: raise `stages.future_max_ms`, or feed it in parts";
        return Err(UsageError(found.to_owned()));
    }
    Ok(gaps)
}

/// True if a file can be read only once. A missing file is reported where it is opened.
pub fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// Refuses a pipe with an option that needs files that can be read twice.
pub fn refuse_pipe<'a>(option: &str, mut paths: impl Iterator<Item = &'a Path>) -> Result<(), UsageError> {
    match paths.find(|path| is_pipe(path)) {
        Some(pipe) => Err(UsageError(format!(
            "{}: {option} reads the input twice: name a file instead of a pipe",
            pipe.display()
        ))),
        None => Ok(()),
    }
}
