//! CSV files, which are looked at before they are fed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use indicatif::{HumanCount, ProgressBar};

use super::scales::scales_in_log;
use super::{DUMP, LOOK_TICKS, SORTED, canonical, progress_bar};
use crate::cli::{CsvArgs, Interrupt, UsageError};
use crate::clock::wall_clock_ns;
use crate::feed_ledger::FeedInput;
use warptape_eventlog::EventLog;
use warptape_sources::Source;
use warptape_sources::csv::{BadLines, CsvConfig, CsvMapping, CsvSource, FeedOrder, FileOrder, OrderLimits};
use warptape_stages::StageConfig;

/// Files, and what is known of them.
pub struct CsvFeed {
    paths: Vec<PathBuf>,
    config: CsvConfig,
    /// How the rows of each file are given; empty where a file cannot be read twice.
    orders: Vec<FileOrder>,
    /// The files, opened at once where one of them is a pipe.
    opened: Option<CsvSource>,
    /// Symbols whose prices have more than nine decimals, or are too large for nine.
    scaled: BTreeSet<String>,
}

impl CsvFeed {
    /// Reads all files once, unless one is a pipe, and refuses those whose ticks `run` would not take.
    pub fn look_at(args: &CsvArgs, stages: &StageConfig, interrupt: &Interrupt) -> anyhow::Result<CsvFeed> {
        let mapping = |map: &String| anyhow::Ok(map.parse::<CsvMapping>()?.rounded(args.round));
        let config = CsvConfig {
            venue: args.venue.clone(),
            mappings: args.map.iter().map(mapping).collect::<Result<_, _>>()?,
            bad_lines: if args.skip_bad { BadLines::Aside { folder: None } } else { BadLines::Stop },
            round: args.round,
            now_ns: Some(wall_clock_ns()),
            limits: OrderLimits {
                lateness_ns: stages.allowed_lateness_ns,
                lateness_by_venue_ns: stages.lateness_by_venue_ns.clone(),
                ahead_ns_max: stages.future_max_ns,
            },
            order: match (args.sort, args.keep_order) {
                (true, _) => FeedOrder::Sorted,
                (false, true) => FeedOrder::Kept,
                (false, false) => FeedOrder::Checked,
            },
        };
        let paths = args.files.clone();
        let mut feed = CsvFeed { paths, config, orders: Vec::new(), opened: None, scaled: BTreeSet::new() };
        if let Some(pipe) = feed.paths.iter().find(|path| is_pipe(path)) {
            if feed.config.order == FeedOrder::Sorted {
                let found = format!("{}: --sort reads a file twice: name no pipe", pipe.display());
                return Err(UsageError(found).into());
            }
            feed.opened = Some(CsvSource::open(&feed.paths, &feed.config)?);
            return Ok(feed);
        }
        let survey = CsvSource::open_to_survey(&feed.paths, &feed.config)?;
        feed.survey(Source::Csv(survey), interrupt)?;
        Ok(feed)
    }

    /// Reads what is to be looked at up to its end, a bad line or Ctrl-C: the feed comes to the same end, and tells of it.
    fn survey(&mut self, mut survey: Source, interrupt: &Interrupt) -> anyhow::Result<()> {
        let bar: ProgressBar = progress_bar(&survey);
        let mut taken = 0_u64;
        while let Some(Ok(_)) = survey.next() {
            taken += 1;
            if taken.is_multiple_of(LOOK_TICKS) {
                bar.set_position(survey.progress().done);
                bar.set_message(format!("{} ticks looked at", HumanCount(taken)));
                if interrupt.is_set() {
                    break;
                }
            }
        }
        bar.finish_and_clear();
        let Source::Csv(survey) = survey else { return Ok(()) };
        self.orders = survey.file_orders()?;
        for remark in survey.remarks() {
            tracing::warn!("{remark}");
        }
        self.scaled = survey.scaled_symbols().clone();
        Ok(())
    }

    /// What the ledger knows the files by.
    pub fn inputs(&self) -> Vec<FeedInput> {
        self.paths.iter().enumerate().map(|(file, path)| self.input(file, path)).collect()
    }

    fn input(&self, file: usize, path: &Path) -> FeedInput {
        let venue = self.config.venue.as_deref().unwrap_or_default();
        let in_order_of_rows = match self.config.mapping(file) {
            Some(mapping) => format!("csv venue={venue} mapping={}", mapping.canonical()),
            // The name of a dump says what its ticks are of.
            None => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let round = self.config.round.map_or_else(String::new, |round| format!(" round={round}"));
                canonical(&format!("csv venue={venue}{DUMP}{name}{round}"))
            }
        };
        let sorted = format!("{in_order_of_rows}{SORTED}");
        let is_sorted = self.orders.get(file).is_some_and(|order| order.is_sorted);
        let (source, other) = if is_sorted { (sorted, in_order_of_rows) } else { (in_order_of_rows, sorted) };
        FeedInput { source, path: Some(path.to_owned()), is_sorted, other_order: Some(other), former: None }
    }

    /// Scales that prices have in the log of symbols that have others than nine decimals in the files.
    pub fn scales_in_log(
        &self,
        log: &dyn EventLog,
        ticks: &str,
        partitions: i32,
        interrupt: &Interrupt,
    ) -> anyhow::Result<BTreeMap<String, u8>> {
        Ok(scales_in_log(log, ticks, partitions, &self.scaled, interrupt)?)
    }

    /// Opens the files to be fed, and looks at them again if prices must have scales that symbols have in the log.
    pub fn open(mut self, scales: &BTreeMap<String, u8>, interrupt: &Interrupt) -> anyhow::Result<CsvSource> {
        if let Some(opened) = self.opened {
            return Ok(opened);
        }
        if !scales.is_empty() {
            let mut survey = Source::Csv(CsvSource::open_to_survey(&self.paths, &self.config)?);
            scales.iter().for_each(|(symbol, scale)| survey.know_scale(symbol, *scale));
            self.survey(survey, interrupt)?;
        }
        Ok(CsvSource::open_in_order(&self.paths, &self.config, &self.orders)?)
    }
}

/// True if a file gives its bytes once. One that is not there is told of where it is opened.
fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}
