//! Files that are fed to a campaign's log while it runs: interrupted, continued, and fed again. Each of their ticks
//! must count once.

use std::time::Duration;

use super::campaign::Scene;
use super::history::Random;
use super::kafka_market::fed;
use super::strangers::market_time_ns;

/// Venue of the files' ticks.
pub const VENUE: &str = "REPEATED";
/// Number of ticks of a file. The next constant is the feed's rate while it may be interrupted.
const ROWS: u64 = 400;
const TICKS_PER_SECOND: &str = "500";
/// Greatest time until the interruption, in milliseconds.
const LIFE_MS_MAX: u64 = 1_000;

/// Counts the files fed so far.
#[derive(Default)]
pub struct RepeatedFeeds {
    files: u64,
}

impl RepeatedFeeds {
    /// Returns the number of ticks that the log must have from all files together.
    pub fn ticks(&self) -> u64 {
        self.files * ROWS
    }

    /// Feeds a new file, kills the feed, and feeds the file to its end twice. Then it feeds an earlier file again.
    #[expect(clippy::disallowed_methods, reason = "a time that is drawn is waited for")]
    pub fn feed(&mut self, scene: &dyn Scene, random: &mut Random) {
        let file = format!("repeated-{}.csv", self.files);
        self.files += 1;
        let from_ns = market_time_ns(scene, 0);
        let row = |row: u64| format!("{VENUE}:{},{},{}.5,1\n", row % 5, from_ns + row as i64, 100 + row % 7);
        let rows: String = (0..ROWS).map(row).collect();
        std::fs::write(scene.folder().join(&file), format!("s,t,p,q\n{rows}")).expect("a file");

        let mut killed = scene.feed_file(&file, &["--keep-order", "--rate", TICKS_PER_SECOND]);
        let life = Duration::from_millis(random.below(LIFE_MS_MAX));
        // The feed may already have ended.
        std::thread::sleep(life);
        println!("  {file} is {} after {life:?}", if killed.is_running() { "killed" } else { "fed" });
        drop(killed);
        let (told, in_log) = feed_whole(scene, &file);
        assert_eq!(in_log, ROWS, "{told}");
        let before = format!("repeated-{}.csv", random.below(self.files));
        for file in [file, before] {
            let (told, _) = feed_whole(scene, &file);
            assert!(told.starts_with("published 0 ticks"), "{file}: {told}");
        }
    }
}

/// Feeds a file to its end. Returns the output, and the number of the file's ticks that the log has according to it.
fn feed_whole(scene: &dyn Scene, file: &str) -> (String, u64) {
    // The log has newer ticks, so the file's ticks are late, but none is lost.
    let (status, told, error) = scene.feed_file(file, &["--keep-order"]).finish();
    assert!(status.success(), "{file}: {status}\n{told}{error}");
    let in_log = fed(&told);
    (told, in_log)
}
