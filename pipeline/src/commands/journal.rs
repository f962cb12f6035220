//! `warptape journal`: keys for anchors, the anchors in a journal, and the use of both by other commands.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use ring::rand::{SecureRandom, SystemRandom};
use warptape_eventlog::{EventLog, TopicPartition};
use warptape_replay::PartitionReader;
use warptape_replay::anchor::{Anchor, Anchored, PublicKey, SigningKey};

use crate::cli::{JournalArgs, JournalCommand, KeygenArgs, VerifyArgs};
use crate::open::{OpenLog, Purpose, open_anchors, open_log};
use crate::printable::stdout;
use crate::runtime::Anchoring;
use crate::settings::{Settings, is_log_url};
use crate::usage_error::UsageError;

/// Runs the command that was asked for.
pub fn execute(args: &JournalArgs, settings: &Settings) -> anyhow::Result<ExitCode> {
    match &args.command {
        JournalCommand::Keygen(args) => keygen(args),
        JournalCommand::Anchors => print_anchors(settings),
    }
}

fn keygen(args: &KeygenArgs) -> anyhow::Result<ExitCode> {
    let mut public_file = OsString::from(&args.file);
    public_file.push(".pub");
    let public_file = PathBuf::from(public_file);
    let mut seed = [0; 32];
    SystemRandom::new().fill(&mut seed).map_err(|_| anyhow!("the system returned no random numbers"))?;
    let key = SigningKey::from_seed(seed);
    // The file has these permissions from its creation, so nobody else can ever read it.
    create(&args.file, 0o600, &key.pem())?;
    create(&public_file, 0o644, &key.public().pem())?;
    writeln!(
        stdout(),
        "private key: {} (journal.signing_key_file)\npublic key:  {} (replay verify --public-key), id {}",
        args.file.display(),
        public_file.display(),
        key.public().id()
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Creates a file with these permissions from the beginning.
fn create(path: &Path, mode: u32, text: &str) -> anyhow::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let path = path.display();
            anyhow!(UsageError(format!("{path} exists; keys are never overwritten: name another file")))
        }
        _ => anyhow::Error::new(error).context(format!("cannot create {}", path.display())),
    })?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn print_anchors(settings: &Settings) -> anyhow::Result<ExitCode> {
    let OpenLog { log, .. } = open_log(settings, Purpose::Replay)?;
    let mut stdout = stdout();
    for_each_value(&*log, &settings.topics.names.journal, |record| {
        match Anchor::of(&record) {
            Some(Ok(anchor)) => writeln!(stdout, "{anchor}")?,
            Some(Err(error)) => tracing::warn!(offset = record.offset, %error, "a record of the journal"),
            None => {}
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Passes on all records of a topic, partition by partition.
fn for_each_value(
    log: &dyn EventLog,
    topic: &str,
    mut take: impl FnMut(warptape_record::Record) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let known = log.topics()?.into_iter().find(|known| known.spec.name == topic);
    let known = known.ok_or_else(|| UsageError(format!("{} has no topic {topic}", log.url())))?;
    for (partition, range) in (0..).zip(known.offsets) {
        let source = TopicPartition { topic: topic.to_owned(), partition };
        let mut reader = PartitionReader::open(log, source, range)?;
        while let Some(record) = reader.next()? {
            take(record)?;
        }
    }
    Ok(())
}

/// Returns the keys and anchors that a verification was given.
pub fn given(args: &VerifyArgs, settings: &Settings) -> anyhow::Result<(Vec<PublicKey>, Option<Anchored>)> {
    let keys = args.public_key.iter().map(|path| PublicKey::read(path));
    let keys = keys.collect::<Result<Vec<_>, _>>().map_err(|error| UsageError(error.to_string()))?;
    let anchored = match args.from_anchor.as_deref() {
        None => None,
        Some(url) if is_log_url(url) => {
            let log = open_anchors(settings, url, Purpose::Replay)?;
            let mut anchored = Anchored::new(url.to_owned(), &keys);
            for_each_value(&*log, &topic(settings), |record| {
                anchored.add_line(&record.value, &keys);
                Ok(())
            })?;
            Some(anchored.finish())
        }
        Some(path) => Some(Anchored::read(Path::new(path), &keys)),
    };
    let anchored = anchored.transpose().map_err(|error| UsageError(error.to_string()))?;
    Ok((keys, anchored))
}

/// Returns the anchors' topic in another log.
fn topic(settings: &Settings) -> String {
    format!("{}anchors", settings.topics.prefix)
}

/// Returns the anchoring of a running process; `None` if nothing is signed.
pub fn anchoring(settings: &Settings) -> anyhow::Result<Option<Anchoring>> {
    let journal = &settings.journal;
    let file = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
    let Some(key_file) = file(&journal.signing_key_file) else { return Ok(None) };
    let key = SigningKey::read(&key_file)
        .map_err(|error| UsageError(format!("journal.signing_key_file: {error}")))?;
    tracing::info!(key = key.public().id(), "the journal is signed");
    let url = Some(&journal.anchor_log).filter(|url| !url.is_empty());
    let log = url.map(|url| open_anchors(settings, url, Purpose::Run)).transpose();
    let log = log.context("journal.anchor_log")?;
    Ok(Some(Anchoring {
        key: Arc::new(key),
        file: file(&journal.anchor_file),
        log: log.map(|log| (log, topic(settings))),
        interval: journal.anchor_interval,
    }))
}
