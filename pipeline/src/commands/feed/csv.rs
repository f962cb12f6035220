//! CSV files: a survey reads them once before they are fed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::gaps::{FeedGaps, followed, is_pipe, look_at, refuse_pipe, remark};
use super::log_times::{LogTimes, limits_of};
use super::scales::scales_in_log;
use super::{DUMP, SORTED};
use crate::cli::{CsvArgs, Interrupt};
use crate::clock::wall_clock_ns;
use crate::feed_ledger::FeedInput;
use crate::usage_error::UsageError;
use warptape_eventlog::EventLog;
use warptape_sources::csv::{
    BadLines, CsvConfig, CsvMapping, CsvSource, FeedOrder, FileOrder, length_text, unpacked_name,
};
use warptape_sources::{EarliestTicks, GapSurvey, Gaps, Source, SourceError};
use warptape_stages::StageConfig;

/// Files with the results of their survey.
pub struct CsvFeed {
    paths: Vec<PathBuf>,
    config: CsvConfig,
    /// Order of the rows of each file; empty if a file cannot be read twice.
    orders: Vec<FileOrder>,
    /// The files, already opened if one of them is a pipe; `None` otherwise.
    opened: Option<CsvSource>,
    /// True if gaps are followed.
    follow_gaps: bool,
    /// Gaps of the files; `None` if a file cannot be read twice.
    gaps: Option<Gaps>,
    /// Earliest ticks of the files; empty if a file cannot be read twice.
    earliest: EarliestTicks,
    /// Symbols whose prices have more than nine decimals, or are too large for nine.
    scaled: BTreeSet<String>,
}

impl CsvFeed {
    /// Reads all files once, unless one is a pipe. Refuses files with ticks that `run` would not take.
    pub fn look_at(args: &CsvArgs, stages: &StageConfig, interrupt: &Interrupt) -> anyhow::Result<CsvFeed> {
        let mapping = |map: &String| anyhow::Ok(map.parse::<CsvMapping>()?.rounded(args.round));
        let config = CsvConfig {
            venue: args.venue.clone(),
            mappings: args.map.iter().map(mapping).collect::<Result<_, _>>()?,
            bad_lines: if args.skip_bad { BadLines::Aside { folder: None } } else { BadLines::Stop },
            round: args.round,
            now_ns: Some(wall_clock_ns()),
            limits: limits_of(stages),
            order: match (args.sort, args.keep_order) {
                (true, _) => FeedOrder::Sorted,
                (false, true) => FeedOrder::Kept,
                (false, false) => FeedOrder::Checked,
            },
        };
        let mut feed = CsvFeed {
            paths: args.files.clone(),
            config,
            orders: Vec::new(),
            opened: None,
            follow_gaps: args.gaps.follow_gaps,
            gaps: None,
            earliest: EarliestTicks::default(),
            scaled: BTreeSet::new(),
        };
        if feed.paths.iter().any(|path| is_pipe(path)) {
            for (option, is_given) in [("--sort", args.sort), ("--follow-gaps", feed.follow_gaps)] {
                if is_given {
                    refuse_pipe(option, feed.paths.iter().map(PathBuf::as_path))?;
                }
            }
            feed.opened = Some(CsvSource::open(&feed.paths, &feed.config)?);
            return Ok(feed);
        }
        feed.survey(&BTreeMap::new(), interrupt)?;
        Ok(feed)
    }

    /// Reads the files in file order. Reads them again in the order of times if that differs and they may have gaps.
    fn survey(&mut self, scales: &BTreeMap<String, u8>, interrupt: &Interrupt) -> anyhow::Result<()> {
        let survey = CsvSource::open_to_survey(&self.paths, &self.config)?;
        let (mut gaps, survey) = self.look_for_gaps(survey, scales, interrupt)?;
        self.orders = survey.file_orders()?;
        for remark in survey.remarks() {
            tracing::warn!("{remark}");
        }
        self.scaled = survey.scaled_symbols().clone();
        if self.orders.iter().any(|order| order.is_sorted) && gaps.may_have_gaps() {
            let sorted = CsvSource::open_in_order_to_survey(&self.paths, &self.config, &self.orders)?;
            gaps = self.look_for_gaps(sorted, scales, interrupt)?.0;
        }
        let found = if self.follow_gaps { followed(&gaps)? } else { gaps.gaps() };
        if !self.follow_gaps && self.config.order != FeedOrder::Kept {
            self.refuse_gaps(&found)?;
        }
        self.gaps = Some(found);
        self.earliest = gaps.earliest().clone();
        Ok(())
    }

    fn look_for_gaps(
        &self,
        survey: CsvSource,
        scales: &BTreeMap<String, u8>,
        interrupt: &Interrupt,
    ) -> Result<(GapSurvey, CsvSource), SourceError> {
        let mut survey = Source::Csv(Box::new(survey));
        scales.iter().for_each(|(symbol, scale)| survey.know_scale(symbol, *scale));
        let gaps = look_at(&mut survey, self.config.limits.ahead_ns_max, self.paths.len(), interrupt)?;
        let Source::Csv(survey) = survey else { unreachable!("it was made two lines above") };
        Ok((gaps, *survey))
    }

    /// Refuses gaps unless an option says how to treat them.
    fn refuse_gaps(&self, gaps: &Gaps) -> Result<(), SourceError> {
        for (file, path) in self.paths.iter().enumerate() {
            let Some(gap) = gaps.of_input(file) else { continue };
            let others = match gap.count - 1 {
                0 => String::new(),
                others => format!(" (and {others} more times after that)"),
            };
            return Err(SourceError::Gap {
                path: path.clone(),
                line: gap.line,
                found: format!("times jump ahead by {}{others}", length_text(gap.length_ns)),
                limit: length_text(self.config.limits.ahead_ns_max),
            });
        }
        Ok(())
    }

    /// Refuses rows far from the log's event time, unless the rows are fed in file order.
    pub fn refuse_far(&self, log: &LogTimes, inputs: &[FeedInput], before: &[u64]) -> Result<(), UsageError> {
        if self.config.order == FeedOrder::Kept {
            return Ok(());
        }
        let far = log.far(&self.earliest, before);
        match far.iter().find(|far| far.is_refused(self.follow_gaps)) {
            Some(far) => Err(UsageError(far.refused(inputs))),
            None => Ok(()),
        }
    }

    /// Returns the earliest ticks; `None` if a file is a pipe.
    pub fn earliest(&self) -> Option<EarliestTicks> {
        self.opened.is_none().then(|| self.earliest.clone())
    }

    /// Returns the treatment of gaps. `known` builds it from the gaps of surveyed files that are sorted or follow gaps.
    pub fn gaps(
        &self,
        watched: impl FnOnce() -> FeedGaps,
        known: impl FnOnce(Gaps, bool) -> anyhow::Result<FeedGaps>,
    ) -> anyhow::Result<FeedGaps> {
        let Some(gaps) = &self.gaps else { return Ok(watched()) };
        if self.follow_gaps || self.config.order != FeedOrder::Kept {
            return known(gaps.clone(), self.follow_gaps);
        }
        let limit_ns = self.config.limits.ahead_ns_max;
        let of_file =
            |(file, path): (usize, &PathBuf)| Some(remark(path, gaps.of_input(file)?, "line", limit_ns));
        Ok(FeedGaps::Told(self.paths.iter().enumerate().filter_map(of_file).collect()))
    }

    /// Returns the ledger's keys of the files.
    pub fn inputs(&self) -> Vec<FeedInput> {
        self.paths.iter().enumerate().map(|(file, path)| self.input(file, path)).collect()
    }

    fn input(&self, file: usize, path: &Path) -> FeedInput {
        let venue = self.config.venue.as_deref().unwrap_or_default();
        let in_order_of_rows = match self.config.mapping(file) {
            Some(mapping) => format!("csv venue={venue} mapping={}", mapping.canonical()),
            // A dump's name states the kind of its ticks.
            None => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let round = self.config.round.map_or_else(String::new, |round| format!(" round={round}"));
                format!("csv venue={venue}{DUMP}{}{round}", unpacked_name(&name))
            }
        };
        let sorted = format!("{in_order_of_rows}{SORTED}");
        let is_sorted = self.orders.get(file).is_some_and(|order| order.is_sorted);
        let (source, other) = if is_sorted { (sorted, in_order_of_rows) } else { (in_order_of_rows, sorted) };
        FeedInput { source, path: Some(path.to_owned()), is_sorted, other_order: Some(other) }
    }

    /// Returns the log's scales of the symbols whose prices need another scale than nine decimals.
    pub fn scales_in_log(
        &self,
        log: &dyn EventLog,
        ticks: &str,
        partitions: i32,
        interrupt: &Interrupt,
    ) -> anyhow::Result<BTreeMap<String, u8>> {
        Ok(scales_in_log(log, ticks, partitions, &self.scaled, interrupt)?)
    }

    /// Surveys the files again if the log has scales for some symbols, because prices must fit those scales.
    pub fn know_scales(
        &mut self,
        scales: &BTreeMap<String, u8>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        if scales.is_empty() || self.opened.is_some() { Ok(()) } else { self.survey(scales, interrupt) }
    }

    /// Opens the files for the feed.
    pub fn open(self) -> anyhow::Result<CsvSource> {
        match self.opened {
            Some(opened) => Ok(opened),
            None => Ok(CsvSource::open_in_order(&self.paths, &self.config, &self.orders)?),
        }
    }
}
