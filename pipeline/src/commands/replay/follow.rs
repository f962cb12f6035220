//! `warptape replay verify --follow`: a verifier beside a running pipeline.
//!
//! A thread verifies; the main thread reports progress and waits for a signal. An unreadable log is retried without
//! limit.

use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use crossbeam_channel::{Receiver, RecvTimeoutError, bounded};
use warptape_replay::{Follower, ReplayError};

use super::{options, print};
use crate::cli::{DIVERGED, Interrupt, VerifyArgs};
use crate::clock::Clock;
use crate::commands::run::NO_THREAD;
use crate::endpoint::{self, Endpoint, VerifierProgress};
use crate::logging::NOTICE;
use crate::open::{OpenLog, Purpose, open_log};
use crate::printable::to_stderr;
use crate::settings::Settings;

/// Pause before the next read of a log that was verified to its end.
const LOOK_PAUSE: Duration = Duration::from_millis(500);
/// Pause after a failed read of the log.
const RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Time between two lines of progress.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Longest wait for the verifying thread at the end; it may hang in a read of the log.
const END_MAX: Duration = Duration::from_secs(5);
/// Time between two checks for a signal.
const WAIT: Duration = Duration::from_millis(100);

/// Verifies until a signal comes; without an endpoint, until the first difference.
pub(super) fn execute(args: &VerifyArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay).map_err(ReplayError::from)?;
    let options = options(args, settings, schemas);
    let listener = args.listen.as_deref().map(endpoint::listen).transpose()?;
    let interrupt = Interrupt::install()?;
    let progress = Arc::new(VerifierProgress::default());
    let endpoint = listener.map(|listener| {
        let names = (settings.engine.node.clone(), options.sources.group.clone(), options.journal.clone());
        Endpoint::start_for_verifier(listener, &settings.endpoint, names, progress.clone(), log.clone())
    });
    let endpoint = endpoint.transpose()?;
    if let Some(endpoint) = &endpoint {
        to_stderr(format_args!("metrics and health: {}", endpoint.url()));
    }
    let from_beginning = args.from_beginning;
    let (stop, stopped) = bounded(0);
    let verifier = {
        let progress = progress.clone();
        let verify = move || {
            follow(Follower::new(&*log, options, from_beginning), &progress, &stopped);
            progress.end();
        };
        thread::Builder::new().name("verifier".to_owned()).spawn(verify).context(NO_THREAD)?
    };
    let mut told = Instant::now();
    while !verifier.is_finished() && !interrupt.wait(WAIT) {
        if told.elapsed() >= LINE_INTERVAL {
            told = Instant::now();
            let report = progress.followed().report;
            tracing::info!(target: NOTICE, entries = report.entries, "{report} so far");
        }
    }
    drop::<crossbeam_channel::Sender<()>>(stop);
    let ending = Instant::now();
    while !verifier.is_finished() && ending.elapsed() < END_MAX {
        thread::park_timeout(WAIT);
    }
    let report = progress.followed().report;
    print(&report, args.output)?;
    if verifier.is_finished() && verifier.join().is_err() {
        anyhow::bail!("the verifier has failed; the report above is from before the failure");
    }
    if report.is_identical() {
        if let Some(cause) = progress.cause_of_failure() {
            anyhow::bail!("the log can no longer be read: {cause}");
        }
        if report.entries == 0 {
            anyhow::bail!(
                "nothing was verified: the log has no readable journal entries; check --log and topics.prefix"
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    if endpoint.is_some() {
        // A restarted verifier would begin after the difference, and no longer report it.
        to_stderr(format_args!(
            "the verifier keeps running to report the difference, until Ctrl-C or SIGTERM"
        ));
        while !interrupt.wait(LINE_INTERVAL) {}
    }
    Ok(ExitCode::from(DIVERGED))
}

/// Verifies in rounds until the sender is dropped or a difference is found.
fn follow(mut follower: Follower<'_>, progress: &VerifierProgress, stopped: &Receiver<()>) {
    let clock = Clock::start();
    let mut is_failing = false;
    loop {
        let pause = match follower.round() {
            Ok(is_at_end) => {
                is_failing = false;
                progress.follow(follower.followed());
                if let Some(divergence) = &follower.followed().report.divergence {
                    let sequence = follower.followed().sequence;
                    return tracing::error!(sequence, "the log differs from its replay: {divergence}");
                }
                if is_at_end { LOOK_PAUSE } else { Duration::ZERO }
            }
            Err(error) => {
                if !is_failing {
                    tracing::warn!("verification fails for now and is retried: {error}");
                }
                is_failing = true;
                progress.fail(clock.now_ns(), error.to_string());
                RETRY_PAUSE
            }
        };
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}
