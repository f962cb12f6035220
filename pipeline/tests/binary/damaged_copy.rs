//! Random damage to a copy of an embedded log. The damage must be reported or harmless, and readable records must be
//! right.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::Path;

use warptape_eventlog::{EventLog, Fetched, LogError, Record, SqliteLog, TopicPartition};

use super::files_of_logs;
use super::history::Random;
use super::outputs::records;
use super::processes::{folder, texts, warptape};

const COPY: &str = "copy.db";

/// Copies a log that nothing writes, damages the copy, and asserts that no wrong contents are read from it.
pub fn check(log: &SqliteLog, path: &Path, group: &str, random: &mut Random) {
    let folder = folder();
    let copy = folder.path().join(COPY);
    if random.below(2) == 0 {
        let name = path.to_str().expect("a name");
        let target = copy.to_str().expect("a name");
        texts(&warptape(folder.path(), &["log", "backup", target, "--log", &format!("sqlite:{name}")]), 0);
    } else {
        copy_files(path, &copy);
    }
    let what = damage(&copy, random);
    let output = warptape(folder.path(), &["log", "check", "--log", &format!("sqlite:{COPY}")]);
    let code = output.status.code();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    println!("  {what}: exit status {code:?}");
    let is_named = match code {
        Some(0) => false,
        Some(1) => out.contains("damaged    ") || error.contains("error: "),
        Some(2) => error.contains("error: "),
        _ => panic!("{what}: {}\n{out}{error}", output.status),
    };
    assert!(is_named || code == Some(0), "{what} is not named: {out}{error}");
    assert!(!error.contains("panicked"), "{what}: {error}");
    if let Some(difference) = difference(log, &copy, group, is_named) {
        panic!("{what}, and {difference}; the check said:\n{out}{error}");
    }
    // A log that could not be opened keeps its file open until the process ends. Truncating the file keeps a campaign
    // from filling the disk.
    std::fs::File::create(&copy).expect("the copy is there");
}

/// Copies all files as they were at one moment, which is between two changes.
fn copy_files(from: &Path, to: &Path) {
    let state = || {
        let of = |metadata: Metadata| (metadata.len(), metadata.modified().expect("a time"));
        files_of_logs::parts(from)
            .map(|(part, path)| (part, std::fs::metadata(path).ok().map(of)))
            .collect::<Vec<_>>()
    };
    loop {
        let before = state();
        files_of_logs::copy_log(from, to);
        if state() == before {
            return;
        }
    }
}

/// Flips a bit or truncates a file. Returns a description of the damage.
fn damage(copy: &Path, random: &mut Random) -> String {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let parts: Vec<_> =
        files_of_logs::parts(copy).map(|(_, path)| path).filter(|path| bytes(path) > 0).collect();
    let path = &parts[random.below(parts.len() as u64) as usize];
    let mut all = std::fs::read(path).expect("a file");
    let (place, len) = (random.below(all.len() as u64) as usize, all.len());
    let is_cut = random.below(3) == 0;
    if is_cut {
        all.truncate(place);
    } else {
        all[place] ^= 1 << random.below(8);
    }
    std::fs::write(path, all).expect("it can be written");
    let name = path.file_name().expect("a name").display();
    format!("{name} {} at {place} of {len}", if is_cut { "cut" } else { "with a flipped bit" })
}

/// Describes a readable record of the copy that the log lacks. Unless damage was reported, records missing from the
/// copy also count; `None` without a difference.
fn difference(log: &SqliteLog, copy: &Path, group: &str, is_named: bool) -> Option<String> {
    let copied = match SqliteLog::open_existing(copy) {
        Ok(copied) => copied,
        Err(error) => return (!is_named).then(|| format!("it cannot be opened: {error}")),
    };
    for info in log.topics().expect("the log can be read") {
        for partition in 0..info.spec.partitions {
            let source = TopicPartition { topic: info.spec.name.clone(), partition };
            let found = read_as_far_as_possible(&copied, &source);
            let expected: BTreeMap<i64, Record> = records(log, &source.topic, partition)
                .into_iter()
                .map(|record| (record.offset, record))
                .collect();
            if let Some(wrong) = found.0.iter().find(|record| expected.get(&record.offset) != Some(record)) {
                return Some(format!("{source:?} has a wrong record at {}", wrong.offset));
            }
            if !is_named && (found.1.is_err() || found.0.len() != expected.len()) {
                let (found, outcome) = (found.0.len(), found.1);
                return Some(format!("{source:?} has {found} of {} records ({outcome:?})", expected.len()));
            }
            let offsets = [&copied, log].map(|log| log.committed(group, &source).ok());
            if !is_named && offsets[0] != offsets[1] {
                return Some(format!("{group} has committed {offsets:?} in {source:?}"));
            }
        }
    }
    None
}

fn read_as_far_as_possible(log: &SqliteLog, source: &TopicPartition) -> (Vec<Record>, Result<(), LogError>) {
    let mut all = Vec::new();
    let mut read = || {
        let mut reader = log.reader(std::slice::from_ref(source))?;
        let end = reader.offsets(source)?.next;
        while reader.position(source)? < end {
            match reader.poll(std::time::Duration::ZERO, 4096, 16 << 20)? {
                Fetched::Records { records, .. } => all.extend(records),
                // More records should exist, but none arrives.
                _ => break,
            }
        }
        Ok(())
    };
    let outcome = read();
    (all, outcome)
}
