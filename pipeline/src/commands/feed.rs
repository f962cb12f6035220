//! `warptape feed`: publishes the ticks of a source in the log.

mod csv;
mod gaps;
#[cfg(feature = "live-feeds")]
mod live;
mod log_times;
mod scales;
mod summary;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};

use super::topics::ready_topics;
use crate::cli::{
    CaptureArgs, FeedArgs, FeedCommon, FeedSource, GapArgs, Interrupt, StoredSource, SynthArgs,
};
use crate::clock::wall_clock_ns;
use crate::feed_ledger::{FeedInput, FeedLedger, claim};
use crate::open::{Purpose, open_log};
use crate::printable::stdout;
use crate::publisher::Publisher;
use crate::runtime::Topics;
use crate::settings::Settings;
use warptape_sources::binance_capture::BinanceCapture;
use warptape_sources::coinbase::CoinbaseCapture;
#[cfg(feature = "dbn")]
use warptape_sources::dbn::DbnSource;
use warptape_sources::synth::{SynthConfig, SynthSource, SynthTicks};
use warptape_sources::{EarliestTicks, GapFollower, GapSurvey, ProgressUnit, Source, SourceError};

use self::csv::CsvFeed;
use self::gaps::{FeedGaps, KnownGaps, followed, look_at, refuse_pipe};
use self::log_times::{LogTimes, limits_of};

/// Greatest number of reported rows whose times are far from the log's event time.
const FAR_TOLD: usize = 10;
/// Ticks between two checks of Ctrl-C and updates of the progress bar.
const LOOK_TICKS: u64 = 1_024;

/// Publishes the ticks of a source.
pub fn execute(args: &FeedArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    match &args.source {
        FeedSource::Stored(source) => feed_stored(source, settings),
        #[cfg(feature = "live-feeds")]
        FeedSource::Live(source) => live::execute(source, settings),
        #[cfg(not(feature = "live-feeds"))]
        FeedSource::Live(source) => {
            let what = format!("feed {}", source.parts().0.source());
            Err(crate::usage_error::UsageError::not_built(&what, "live-feeds").into())
        }
    }
}

/// Publishes all ticks of the source that are not in the log yet, or those read before Ctrl-C.
fn feed_stored(source: &StoredSource, settings: &Settings) -> anyhow::Result<ExitCode> {
    let interrupt = Interrupt::install()?;
    let Opened { input: opened, inputs, common } = open(source, settings, &interrupt)?;
    let log = open_log(settings, Purpose::Feed)?.log;
    let partitions = ready_topics(&*log, settings, Purpose::Feed)?;
    let stopping = interrupt.clone();
    let topics = &settings.topics.names;
    let _claims = claim(&*log, &topics.feeds, &inputs)?;
    let name = publisher_name(topics, &inputs);
    let mut publisher = Publisher::new(
        &log,
        &name,
        &topics.ticks,
        partitions,
        common.batch,
        Box::new(move || stopping.since()),
    )?;
    // Another feed of the same inputs is refused or fenced by now, so the ledger cannot change until this feed writes
    // it.
    let ledger = FeedLedger::open(&*log, &topics.feeds, &inputs, common.again)?;
    let before: Vec<u64> = ledger.ticks().collect();
    let mut scales = ledger.scales().clone();
    publisher.keep(ledger);
    let ahead_ns_max = settings.stages.future_max_ns;
    let known = |gaps, are_followed| -> anyhow::Result<FeedGaps> {
        let follower = GapFollower::new(gaps, ahead_ns_max, inputs.len(), partitions);
        let known = KnownGaps::new(follower, are_followed, &before, name.clone());
        Ok(FeedGaps::Known(Box::new(known.find_empty(&*log, &topics.ticks, partitions)?)))
    };
    let watched = || FeedGaps::Watched(Box::new(GapSurvey::new(ahead_ns_max, inputs.len())));
    let limits = limits_of(&settings.stages);
    let log_times = LogTimes::read(&*log, &topics.ticks, partitions, limits, &interrupt)?;
    let mut looked_at: Option<EarliestTicks> = None;
    let (mut source, mut gaps) = match opened {
        OpenedSource::Ready { source, to_look_at: None } => (source, watched()),
        OpenedSource::Ready { source, to_look_at: Some(mut survey) } => {
            scales.iter().for_each(|(symbol, scale)| survey.know_scale(symbol, *scale));
            let found = look_at(&mut survey, ahead_ns_max, inputs.len(), &interrupt)?;
            looked_at = Some(found.earliest().clone());
            (source, known(followed(&found)?, true)?)
        }
        OpenedSource::Csv(mut csv) => {
            scales.extend(csv.scales_in_log(&*log, &topics.ticks, partitions, &interrupt)?);
            csv.know_scales(&scales, &interrupt)?;
            if !common.again {
                csv.refuse_far(&log_times, &inputs, &before)?;
            }
            looked_at = csv.earliest();
            let gaps = csv.gaps(watched, known)?;
            (Source::Csv(Box::new(csv.open()?)), gaps)
        }
    };
    scales.iter().for_each(|(symbol, scale)| source.know_scale(symbol, *scale));
    gaps.leave(&mut source, &before);
    let bar = progress_bar(&source);
    let started = Instant::now();
    let leaves_out = before.iter().any(|ticks| *ticks > 0);
    let pace = common.rate.map(|rate| Pace::start(rate, Duration::from_millis(common.commit_ms)));
    let fed = feed(&mut source, &mut gaps, &mut publisher, leaves_out, pace, &interrupt, &bar);
    bar.finish_and_clear();
    let published = publisher.published();
    fed.with_context(|| stopped(published.ticks, publisher.in_doubt_ticks()))?;

    let mut stdout = stdout();
    let first = summary::published(published, &log.url(), started.elapsed());
    let interrupted = if interrupt.is_set() { ", interrupted" } else { "" };
    writeln!(
        stdout,
        "{first}{}{interrupted}",
        summary::passed_over(&source.passed_over(), source.place_word())
    )?;
    for (input, &ticks) in inputs.iter().zip(&before).filter(|(_, ticks)| **ticks > 0) {
        let name =
            input.path.as_ref().map_or_else(|| "the market".to_owned(), |path| path.display().to_string());
        let ticks = HumanCount(ticks);
        writeln!(
            stdout,
            "{name}: the first {ticks} ticks were already in the log and were left out (--again publishes them again)"
        )?;
    }
    if let Source::Csv(csv) = &source {
        summary::write_csv(&mut stdout, csv)?;
    }
    for remark in gaps.remarks(&inputs, &source, ahead_ns_max) {
        writeln!(stdout, "{remark}")?;
    }
    let far = looked_at.as_ref().or(gaps.earliest()).map(|earliest| log_times.far(earliest, &before));
    let told = far.into_iter().flatten().filter(|far| !common.again && !far.is_followed(gaps.are_followed()));
    for far in told.take(FAR_TOLD) {
        writeln!(stdout, "{}", far.says(&inputs, source.place_word()))?;
    }
    summary::refuse_unfit(&source.passed_over())?;
    Ok(ExitCode::SUCCESS)
}

fn stopped(published_ticks: u64, in_doubt_ticks: u64) -> String {
    let mut text = format!("stopped after {} ticks were published", HumanCount(published_ticks));
    if in_doubt_ticks > 0 {
        text += &format!(", and up to {} more whose outcome is unknown", HumanCount(in_doubt_ticks));
    }
    text
}

/// Returns a name that is the same for feeds of the same inputs. Several feeds may run at once if their inputs differ.
/// A second feed of the same inputs fences the first on Kafka and continues its work; the embedded log refuses it.
fn publisher_name(topics: &Topics, inputs: &[FeedInput]) -> String {
    let mut parts: Vec<_> = inputs
        .iter()
        .map(|FeedInput { source, path, .. }| {
            (source, path.as_deref().and_then(Path::file_name).unwrap_or_default())
        })
        .collect();
    parts.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    hasher.update(topics.ticks.as_bytes());
    for (source, name) in parts {
        for part in [source.as_bytes(), name.as_encoded_bytes()] {
            hasher.update(&[0]);
            hasher.update(part);
        }
    }
    format!("feed-{}", &hasher.finalize().to_hex()[..16])
}

/// Prefix of a dump's name in the ledger's key of a CSV source.
const DUMP: &str = " dump=";
/// Suffix of the ledger's key of a source whose rows are sorted.
const SORTED: &str = " sorted";

/// Mark in the ledger's key of captures and DBN files: rows that are not trades are not counted.
const COUNTING: &str = " counting=2";

/// A source, with its inputs.
struct Opened<'a> {
    input: OpenedSource,
    inputs: Vec<FeedInput>,
    common: &'a FeedCommon,
}

enum OpenedSource {
    /// The source to feed. `to_look_at` is the same source once more, read first to find its gaps; `None` if gaps are
    /// not followed.
    Ready { source: Source, to_look_at: Option<Source> },
    /// Surveyed CSV files, which are opened for the feed once the log's state is known.
    Csv(Box<CsvFeed>),
}

fn open<'a>(
    source: &'a StoredSource,
    settings: &Settings,
    interrupt: &Interrupt,
) -> anyhow::Result<Opened<'a>> {
    Ok(match source {
        StoredSource::BinanceCapture(args) => {
            capture(args, "binance-capture", |files| Ok(Source::of(BinanceCapture::open(files)?)))?
        }
        StoredSource::CoinbaseCapture(args) => {
            capture(args, "coinbase-capture", |files| Ok(Source::of(CoinbaseCapture::open(files)?)))?
        }
        StoredSource::Csv(args) => {
            let csv = CsvFeed::look_at(args, &settings.stages, interrupt)?;
            Opened { inputs: csv.inputs(), input: OpenedSource::Csv(Box::new(csv)), common: &args.common }
        }
        #[cfg(not(feature = "dbn"))]
        StoredSource::Dbn(_) => {
            return Err(crate::usage_error::UsageError::not_built("feed dbn", "dbn").into());
        }
        #[cfg(feature = "dbn")]
        StoredSource::Dbn(args) => {
            let venue = args.venue.as_deref();
            let input = |path: &PathBuf| file("dbn", format!("venue={}", venue.unwrap_or_default()), path);
            let open = || anyhow::Ok(Source::of(DbnSource::open(&args.files, venue, args.skip_bad)?));
            Opened {
                inputs: args.files.iter().map(input).collect(),
                input: ready(open, args.gaps, args.files.iter().map(PathBuf::as_path))?,
                common: &args.common,
            }
        }
        StoredSource::Synth(args) => {
            let &SynthArgs { symbols, ticks, seed, .. } = args;
            let config = SynthConfig { symbols, seed, ..SynthConfig::default() };
            let source = format!("synth symbols={symbols} seed={seed}");
            let synth = Source::of(SynthTicks(SynthSource::new(config)?.first(ticks)));
            Opened {
                inputs: vec![FeedInput { source, path: None, is_sorted: false, other_order: None }],
                input: OpenedSource::Ready { source: synth, to_look_at: None },
                common: &args.common,
            }
        }
    })
}

/// Opens recorded messages. `kind` is the source's text in the ledger's key.
fn capture<'a>(
    args: &'a CaptureArgs,
    kind: &str,
    open: impl Fn(&[(String, PathBuf)]) -> Result<Source, SourceError>,
) -> anyhow::Result<Opened<'a>> {
    let files = args.venues()?;
    let input = |(venue, path): &(String, PathBuf)| file(kind, format!("venue={venue}"), path);
    Ok(Opened {
        inputs: files.iter().map(input).collect(),
        input: ready(|| Ok(open(&files)?), args.gaps, files.iter().map(|(_, path)| path.as_path()))?,
        common: &args.common,
    })
}

/// Returns the ledger's entry of a file.
fn file(kind: &str, words: String, path: &Path) -> FeedInput {
    FeedInput {
        source: format!("{kind}{COUNTING} {words}"),
        path: Some(path.to_owned()),
        is_sorted: false,
        other_order: None,
    }
}

/// Opens a source; opens it twice if its gaps are followed.
fn ready<'a>(
    open: impl Fn() -> anyhow::Result<Source>,
    args: GapArgs,
    paths: impl Iterator<Item = &'a Path>,
) -> anyhow::Result<OpenedSource> {
    if args.follow_gaps {
        refuse_pipe("--follow-gaps", paths)?;
    }
    let to_look_at = args.follow_gaps.then(&open).transpose()?;
    Ok(OpenedSource::Ready { source: open()?, to_look_at })
}

/// Publishes the ticks of the source. `leaves_out` is true if some of its ticks were already in the log.
fn feed(
    source: &mut Source,
    gaps: &mut FeedGaps,
    publisher: &mut Publisher,
    leaves_out: bool,
    mut pace: Option<Pace>,
    interrupt: &Interrupt,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut taken = 0_u64;
    loop {
        if let Some(pace) = &mut pace {
            pace.wait_for(taken, publisher, interrupt)?;
        }
        if interrupt.is_set() {
            return Ok(publisher.flush()?);
        }
        match source.next() {
            None => {
                if taken == 0 && !leaves_out {
                    summary::refuse_nothing(source)?;
                }
                return Ok(publisher.finish()?);
            }
            Some(Ok(tick)) => {
                if let Some((symbol, scale)) = source.take_begun_scale() {
                    publisher.begin_scale(symbol, scale);
                }
                if !gaps.take(source, &tick, publisher)? {
                    continue;
                }
                publisher.push_from(source.last_input(), tick)?;
            }
            Some(Err(error)) => {
                // Ticks before the error are valid.
                publisher.flush()?;
                return Err(error.into());
            }
        }
        taken += 1;
        if taken.is_multiple_of(LOOK_TICKS) {
            bar.set_position(source.progress().done);
            bar.set_message(format!("{} ticks", HumanCount(taken)));
        }
    }
}

/// Publishes ticks at a rate, on a schedule that does not depend on how long commits take. A record is stamped with the
/// time at which it was due, so a feed that falls behind adds to the latency of its ticks.
struct Pace {
    ticks_per_second: u64,
    commit_interval: Duration,
    started: Instant,
    /// Time of `started`, ns since the epoch.
    started_ns: i64,
    /// Time from `started` to the next commit.
    next_commit: Duration,
}

impl Pace {
    fn start(ticks_per_second: u64, commit_interval: Duration) -> Pace {
        Pace {
            ticks_per_second,
            commit_interval,
            started: Instant::now(),
            started_ns: wall_clock_ns(),
            next_commit: commit_interval,
        }
    }

    /// Waits until the tick after the first `taken` ticks is due, or Ctrl-C is pressed. Meanwhile it commits pushed
    /// ticks at their times, however slow the rate.
    fn wait_for(
        &mut self,
        taken: u64,
        publisher: &mut Publisher,
        interrupt: &Interrupt,
    ) -> anyhow::Result<()> {
        let due = Duration::from_secs_f64(taken as f64 / self.ticks_per_second as f64);
        loop {
            let now = self.started.elapsed();
            // Ticks that are due before a commit belong to it, even if the commit is late.
            if self.next_commit <= due.min(now) {
                publisher.stamp(self.time_ns(self.next_commit));
                publisher.flush()?;
                // Commits that are late already become one.
                let missed = (now - self.next_commit).as_nanos() / self.commit_interval.as_nanos();
                let steps = u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
                self.next_commit += self.commit_interval * steps;
                continue;
            }
            if now >= due || interrupt.wait(due.min(self.next_commit) - now) {
                publisher.stamp(self.time_ns(due));
                return Ok(());
            }
        }
    }

    fn time_ns(&self, after: Duration) -> i64 {
        self.started_ns.saturating_add(i64::try_from(after.as_nanos()).unwrap_or(i64::MAX))
    }
}

fn progress_bar(source: &Source) -> ProgressBar {
    let progress = source.progress();
    let Some(total) = progress.total else {
        return ProgressBar::new_spinner();
    };
    let template = match progress.unit {
        ProgressUnit::Bytes => "{wide_bar} {bytes}/{total_bytes} {msg} {eta}",
        ProgressUnit::Ticks => "{wide_bar} {percent}% {msg} {eta}",
    };
    let style = ProgressStyle::with_template(template).expect("the templates above are valid");
    ProgressBar::new(total).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_has_one_name_in_whatever_order_its_files_are_named() {
        let input = |name: &str| FeedInput {
            source: "dbn venue=".to_owned(),
            path: Some(PathBuf::from(name)),
            is_sorted: false,
            other_order: None,
        };
        let name = |inputs: &[&str]| {
            publisher_name(&Topics::new("t."), &inputs.iter().map(|name| input(name)).collect::<Vec<_>>())
        };
        assert_eq!(name(&["a", "b"]), name(&["b", "a"]));
        assert_ne!(name(&["a", "b"]), name(&["a"]));
    }
}
