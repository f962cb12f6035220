//! A campaign of faults. `run` and `feed` are killed, frozen, stopped and poisoned, and so is the broker. Feeds are
//! repeated, transactions aborted, and copies of the log damaged. On Kafka, retention removes ticks, topics of
//! neighbours are created and deleted, and batches unpack without bound. A seed determines the order. In the end the
//! outputs must equal the outputs of an uninterrupted run over the same ticks. Each fed tick must be in the log once,
//! and each record or batch of poison must have one dead letter. Each risk request must have exactly one result, the
//! right one, and the log must verify.
//!
//! A campaign is a sequence of episodes, each with its own market, so that damage is found soon. `tests/run` runs a
//! short episode, `tests/run --all` a long one. `tests/crash --minutes N` begins further long ones until the time is
//! over.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, Record, TopicPartition};

use super::asking::{Asking, Topics};
use super::broker::Broker;
use super::history::{Lives, Random, lives};
use super::kafka_market::{Market, fed};
use super::neighbours::Neighbours;
use super::processes::{DEADLINE, Running, ends, is_long, texts, warptape};
use super::repeated_feeds::{RepeatedFeeds, VENUE};
use super::strangers::Strangers;

/// Number of faults in a long episode. The next constant is the number in a short one.
const FAULTS: u64 = 24;
const FAULTS_SHORT: u64 = 8;
/// Longest life of a run between two faults, in milliseconds. The next constant is that of a run killed at its
/// beginning.
const LIFE_MS_MAX: u64 = 1_500;
const BEGINNING_MS_MAX: u64 = 300;
/// Longest freeze of a run or a broker, in milliseconds. It is shorter than a session, so no other process takes over.
const FREEZE_MS_MAX: u64 = 3_000;
/// Greatest error of the run's clock, in milliseconds.
const CLOCK_STEP_MS_MAX: u64 = 3_600_000;
/// Longest time without a broker, in milliseconds.
const OUTAGE_MS_MAX: u64 = 2_000;
/// Number of requests sent before a freeze, or before a run that kills itself.
const QUESTIONS: u64 = 3;
/// Number of faults between two requests with large answers.
const LARGE_QUESTION_AFTER: u64 = 6;
/// Failpoints at which a run kills itself. Each has the greatest number of passages that may be drawn.
const FAILPOINTS: [(&str, u64); 5] = [
    ("AfterProduce", 20),
    ("AfterSendOffsets", 20),
    ("DuringCommit", 20),
    ("DuringSnapshot", 20),
    ("DuringRestore", 3),
];
/// Commands that read the log while neighbours' topics are created and deleted.
const COMMANDS: [&[&str]; 3] =
    [&["topics"], &["dlq", "list"], &["tail", "lifecycle", "--from-beginning", "--exit-at-end"]];
/// Verifies the log. The command refuses a log while a run writes it.
const VERIFY: &[&str] = &["replay", "verify"];
/// Feeds a CSV file with the columns `s,t,p,q`, in small records.
pub const FEED_FILE: &[&str] = &["feed", "csv", "--map", "symbol=s,time=t:ns,price=p,size=q", "--batch", "7"];
const SIGABRT: i32 = 6;
/// Wait between two checks which of two feeds continues.
const LOOK: Duration = Duration::from_millis(10);

/// Faults of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The run is killed after some time of work.
    Kill,
    /// The run is killed while it starts.
    KillBeginning,
    /// The run reaches a failpoint and kills itself.
    Failpoint,
    /// The run is asked to stop, and stops.
    Stop,
    /// The run is frozen for a while, and then continues.
    Freeze,
    /// The feed is killed, and the same feed is started again.
    KillFeed,
    /// The feed is started again while it runs; one of the two must continue.
    FeedTwice,
    /// Files are fed, interrupted, and fed again.
    RepeatFile,
    /// A foreign transaction among the ticks is never committed.
    Abort,
    /// A copy of the log is damaged while nothing runs.
    DamageCopy,
    /// A foreign client sets the group's offset of a partition to any offset in it, while nothing runs.
    ResetOffsets,
    /// The run's clock is up to an hour ahead or behind.
    ClockStep,
    /// The broker is killed, and started again after a while.
    KillBroker,
    /// The broker is frozen for a while, and then continues.
    FreezeBroker,
    /// Retention removes ticks covered by snapshots from the topic, while the run works or after it has stopped.
    Retention,
    /// Topics of neighbours are created, deleted and created again, while a run starts and commands read.
    Neighbours,
    /// A foreign batch among the ticks unpacks without bound.
    Bomb,
}

/// The object of a campaign: a log with its own topics, and the processes that use it.
pub trait Scene {
    /// Returns the log through the test's own client.
    fn log(&self) -> &dyn EventLog;
    /// Returns the number of partitions of the ticks.
    fn partitions(&self) -> i32;
    /// Returns the prefix of the topics' names.
    fn prefix(&self) -> &str;
    /// Returns the name of the consumer group.
    fn group(&self) -> &str;
    /// Returns the faults of this scene, each as often as it should be drawn.
    fn faults(&self) -> &[Fault];
    /// Starts the feed of an endless market.
    fn start_feed(&self, seed: u64) -> Running;
    /// Starts a run with these environment variables.
    fn start_run(&self, environment: &[(&str, &str)]) -> Running;
    /// Returns all ticks that the log ever had, by partition.
    fn ticks(&self) -> Vec<Vec<Record>>;
    /// Returns the broker of the log; `None` for an embedded log.
    fn broker(&self) -> Option<&Broker>;
    /// Returns the market on the broker; `None` for an embedded log.
    fn market(&self) -> Option<&Market>;
    /// Returns the log through a client that compresses. The client refuses no record because of its uncompressed size.
    fn compressing(&self) -> Box<dyn EventLog>;
    /// Returns the greatest size of key and value of a foreign noise record, in bytes.
    fn noise_bytes_max(&self) -> usize;
    /// Returns the folder of the files to feed.
    fn folder(&self) -> &Path;
    /// Starts to feed a CSV file of the folder.
    fn feed_file(&self, file: &str, arguments: &[&str]) -> Running;
    /// Damages a copy of the log while nothing writes it, and checks what commands report about the copy.
    fn check_damaged_copy(&self, random: &mut Random);
    /// Waits until the log has the ticks that the feed reports, and `others`: the numbers of other ticks and of other
    /// records.
    fn await_published(&self, seed: u64, summary: &str, others: [u64; 2]);
    /// Lets a last run process the rest, and stops it.
    fn drain(&self, run: Running);
    /// Compares the outputs with those of an uninterrupted run over the same ticks, and verifies the log. Returns the
    /// numbers of signals, late ticks and dead letters.
    fn check(&self) -> [usize; 3];
}

/// Totals of a campaign.
#[derive(Debug, Default)]
pub struct Campaign {
    pub episodes: u64,
    pub faults: BTreeMap<Fault, u64>,
    /// Number of tick records that retention removed from their topic.
    pub removed: u64,
    /// Number of deletions of neighbours' topics.
    pub deleted_topics: u64,
    pub signals: usize,
    pub late: usize,
    pub dead_letters: usize,
    pub results: BTreeMap<String, usize>,
    pub lives: Lives,
}

/// Runs one episode, or as many as can start within WARPTAPE_TEST_MINUTES.
pub fn run<S: Scene>(new_scene: impl Fn() -> S) -> Campaign {
    let mut random = Random::from_environment();
    let minutes = std::env::var("WARPTAPE_TEST_MINUTES").ok();
    let minutes: u64 =
        minutes.map_or(0, |text| text.parse().expect("WARPTAPE_TEST_MINUTES is a whole number"));
    let since = Instant::now();
    let mut campaign = Campaign::default();
    while campaign.episodes == 0 || since.elapsed() < Duration::from_secs(60 * minutes) {
        let scene = new_scene();
        Episode::begin(&scene, &mut random, &mut campaign).run();
        campaign.episodes += 1;
        println!("after {} s: {campaign:?}", since.elapsed().as_secs());
    }
    campaign
}

struct Episode<'a> {
    scene: &'a dyn Scene,
    random: &'a mut Random,
    campaign: &'a mut Campaign,
    seed: u64,
    feed: Running,
    asking: Asking<'a>,
    strangers: Strangers,
    repeated: RepeatedFeeds,
}

impl<'a> Episode<'a> {
    fn begin(scene: &'a dyn Scene, random: &'a mut Random, campaign: &'a mut Campaign) -> Self {
        let seed = random.below(1 << 32);
        let (mut feed, mut first) = (scene.start_feed(seed), scene.start_run(&[]));
        let in_all_partitions = |topic: &str| {
            let ends = ends(scene.log(), &format!("{}{topic}", scene.prefix()));
            ends.len() == scene.partitions() as usize && !ends.contains(&0)
        };
        feed.run_until("ticks are published", || in_all_partitions("ticks").then_some(()));
        first.run_until("snapshots are written", || in_all_partitions("snapshots").then_some(()));
        first.kill();
        let asking = Asking::new(scene.log(), Topics::new(scene.prefix()), scene.partitions());
        let (strangers, repeated) = (Strangers::default(), RepeatedFeeds::default());
        Self { scene, random, campaign, seed, feed, asking, strangers, repeated }
    }

    fn run(mut self) {
        let is_long = is_long() || std::env::var_os("WARPTAPE_TEST_MINUTES").is_some();
        let since = Instant::now();
        let mut faults = self.scene.faults().to_vec();
        for number in 0..if is_long { FAULTS } else { FAULTS_SHORT } {
            // Each fault comes once before any fault comes again.
            if (number as usize).is_multiple_of(faults.len()) {
                self.shuffle(&mut faults);
            }
            let fault = faults[number as usize % faults.len()];
            println!("fault {number} after {} s: {fault:?}", since.elapsed().as_secs());
            *self.campaign.faults.entry(fault).or_default() += 1;
            self.befall(fault);
            assert!(self.feed.is_running(), "the load is gone after {fault:?}");
            self.strangers.publish(self.scene, self.random);
            if number.is_multiple_of(LARGE_QUESTION_AFTER) {
                self.asking.ask_for_much(self.random);
            }
        }
        self.conclude();
    }

    fn shuffle(&mut self, faults: &mut [Fault]) {
        for left in (1..faults.len()).rev() {
            faults.swap(left, self.random.below(left as u64 + 1) as usize);
        }
    }

    fn time(&mut self, ms_max: u64) -> Duration {
        Duration::from_millis(self.random.below(ms_max))
    }

    /// Applies one fault to a new run, or to the feed or the log.
    fn befall(&mut self, fault: Fault) {
        match fault {
            Fault::Kill | Fault::KillBeginning => {
                let mut run = self.scene.start_run(&[]);
                if fault == Fault::Kill {
                    self.goes_on(&mut run);
                }
                let life = self.time(if fault == Fault::Kill { LIFE_MS_MAX } else { BEGINNING_MS_MAX });
                self.asking.run_for(&mut run, life, self.random);
                run.kill();
            }
            Fault::Failpoint => self.reach_failpoint(),
            Fault::Stop => {
                let mut run = self.scene.start_run(&[]);
                self.goes_on(&mut run);
                run.stop(if self.random.below(2) == 0 { "TERM" } else { "INT" });
            }
            Fault::Freeze => {
                let mut run = self.scene.start_run(&[]);
                self.goes_on(&mut run);
                // No requests are sent during the freeze: a run that is frozen during a commit blocks the embedded log.
                (0..QUESTIONS).for_each(|_| self.asking.ask(self.random));
                run.signal("STOP");
                let frozen = self.time(FREEZE_MS_MAX);
                self.feed.run_for(frozen);
                run.signal("CONT");
                self.goes_on(&mut run);
                run.kill();
            }
            Fault::KillFeed => {
                let mut run = self.scene.start_run(&[]);
                self.goes_on(&mut run);
                self.kill_feed();
                self.feed = self.scene.start_feed(self.seed);
                self.goes_on(&mut run);
                run.kill();
            }
            Fault::FeedTwice | Fault::RepeatFile | Fault::Abort | Fault::Bomb => {
                let mut run = self.scene.start_run(&[]);
                self.goes_on(&mut run);
                match fault {
                    Fault::FeedTwice => self.feed_twice(),
                    Fault::RepeatFile => self.repeated.feed(self.scene, self.random),
                    Fault::Bomb => self.strangers.bomb(self.market(), self.random),
                    _ => self.strangers.abort(self.scene, &mut run, self.random),
                }
                self.goes_on(&mut run);
                run.kill();
            }
            Fault::DamageCopy => {
                self.kill_feed();
                self.scene.check_damaged_copy(self.random);
                self.feed = self.scene.start_feed(self.seed);
            }
            Fault::ResetOffsets => {
                self.reset_offsets();
                let mut run = self.scene.start_run(&[]);
                self.goes_on(&mut run);
                run.kill();
            }
            Fault::ClockStep => {
                let ahead_ms = self.random.below(2 * CLOCK_STEP_MS_MAX) as i64 - CLOCK_STEP_MS_MAX as i64;
                let mut run = self.scene.start_run(&[("WARPTAPE_CLOCK_AHEAD_MS", &ahead_ms.to_string())]);
                self.goes_on(&mut run);
                let life = self.time(LIFE_MS_MAX);
                self.asking.run_for(&mut run, life, self.random);
                run.kill();
            }
            Fault::KillBroker | Fault::FreezeBroker => self.break_broker(fault),
            Fault::Retention => self.remove_processed(),
            Fault::Neighbours => self.disturb(),
        }
    }

    fn market(&self) -> &'a Market {
        self.scene.market().expect("a scene with faults of a cluster has one")
    }

    /// Removes ticks while a run works, or between two runs. In the second case, the first run leaves a snapshot of
    /// everything that it processed.
    fn remove_processed(&mut self) {
        let mut run = self.scene.start_run(&[]);
        self.goes_on(&mut run);
        let mut run = if self.random.below(2) == 0 {
            self.remove_ticks("at work");
            run
        } else {
            run.stop("TERM");
            self.remove_ticks("between runs");
            self.scene.start_run(&[])
        };
        self.goes_on(&mut run);
        run.kill();
    }

    fn remove_ticks(&mut self, when: &str) {
        let removed = self.market().remove_processed();
        println!("  {removed} records are removed {when}");
        assert!(removed > 0, "there was nothing to remove");
        self.campaign.removed += removed;
    }

    /// Creates and deletes neighbours' topics while a run starts and continues, and while commands read.
    fn disturb(&mut self) {
        let market = self.market();
        let neighbours = Neighbours::start(market.brokers());
        let mut run = self.scene.start_run(&[]);
        self.goes_on(&mut run);
        let check = |command| {
            texts(&warptape(market.path(), &market.arguments(command, &market.url)), 0);
        };
        COMMANDS.into_iter().for_each(check);
        let life = self.time(LIFE_MS_MAX);
        self.asking.run_for(&mut run, life, self.random);
        self.goes_on(&mut run);
        run.stop("TERM");
        check(VERIFY);
        self.campaign.deleted_topics += neighbours.stop();
    }

    /// Commits a random offset of a partition for the group.
    fn reset_offsets(&mut self) {
        let (scene, partitions) = (self.scene, self.scene.partitions() as u64);
        let topic = format!("{}ticks", scene.prefix());
        let partition = self.random.below(partitions) as i32;
        let end = ends(scene.log(), &topic)[partition as usize];
        let offset = self.random.below(end as u64 + 1) as i64;
        println!("  partition {partition} of {end} to {offset}");
        let mut producer = scene.log().producer(&format!("{topic}-offsets")).expect("a producer");
        producer.begin().expect("a transaction");
        producer
            .send_offsets(scene.group(), &[(TopicPartition { topic, partition }, offset)])
            .expect("an offset");
        producer.commit().expect("a commit");
    }

    /// Kills the feed, and waits for its end. The embedded log accepts only one feed of a source at a time.
    fn kill_feed(&mut self) {
        assert!(self.feed.is_running(), "the load is gone");
        self.feed.signal("KILL");
        while self.feed.is_running() {
            std::thread::yield_now();
        }
    }

    /// Starts the feed again. The embedded log refuses the second feed; on Kafka, it fences the first.
    #[expect(clippy::disallowed_methods, reason = "which of two processes ends first is not told")]
    fn feed_twice(&mut self) {
        let mut second = self.scene.start_feed(self.seed);
        let since = Instant::now();
        while self.feed.is_running() && second.is_running() {
            assert!(since.elapsed() < DEADLINE, "two feeds of one market go on side by side");
            std::thread::sleep(LOOK);
        }
        if second.is_running() {
            std::mem::swap(&mut self.feed, &mut second);
        }
        let (status, _, error) = second.finish();
        assert!(matches!(status.code(), Some(1 | 2)) && error.contains("error: "), "{status}\n{error}");
    }

    fn reach_failpoint(&mut self) {
        (0..QUESTIONS).for_each(|_| self.asking.ask(self.random));
        let (name, passages) = FAILPOINTS[self.random.below(FAILPOINTS.len() as u64) as usize];
        let failpoint = format!("{name}:{}", 1 + self.random.below(passages));
        let run = self.scene.start_run(&[("WARPTAPE_FAILPOINT", &failpoint)]);
        let (status, _, error) = run.finish();
        assert_eq!(status.signal(), Some(SIGABRT), "{failpoint}: {status}\n{error}");
    }

    fn break_broker(&mut self, fault: Fault) {
        let broker = self.scene.broker().expect("a scene with faults of a broker has one");
        let mut run = self.scene.start_run(&[]);
        self.goes_on(&mut run);
        let life = self.time(LIFE_MS_MAX);
        self.asking.run_for(&mut run, life, self.random);
        if fault == Fault::KillBroker {
            broker.kill();
            let outage = self.time(OUTAGE_MS_MAX);
            run.run_for(outage);
            broker.start_again();
        } else {
            broker.pause();
            let outage = self.time(FREEZE_MS_MAX);
            run.run_for(outage);
            broker.go_on();
        }
        self.goes_on(&mut run);
        run.kill();
        self.asking.connect();
    }

    /// Waits until the group has committed more than now in every partition.
    fn goes_on(&mut self, run: &mut Running) {
        let Self { scene, feed, .. } = self;
        let mut before = None;
        run.run_until("more is committed in every partition", || {
            feed.run_for(Duration::ZERO);
            let now = committed(*scene)?;
            let before = before.get_or_insert_with(|| now.clone());
            now.iter().zip(before).all(|(now, before)| *now > *before).then_some(())
        })
    }

    /// Ends the feed, and compares the results.
    fn conclude(self) {
        let Self { scene, campaign, seed, feed, asking, strangers, repeated, .. } = self;
        let summary = feed.stop("TERM");
        let [ticks, others] = strangers.readable();
        scene.await_published(seed, &summary, [ticks + repeated.ticks(), others]);
        strangers.check_ticks(scene, &[("SYNTH", fed(&summary)), (VENUE, repeated.ticks())]);
        let mut last = scene.start_run(&[]);
        asking.await_answers(&mut last, scene.group());
        scene.drain(last);
        let [signals, late, dead_letters] = scene.check();
        assert!(
            signals > 1000 && dead_letters as u64 == strangers.dead(),
            "{signals} signals, {dead_letters} dead letters of {}",
            strangers.dead()
        );
        strangers.check_dead_letters(scene);
        campaign.signals += signals;
        campaign.late += late;
        campaign.dead_letters += dead_letters;
        for (kind, count) in asking.check() {
            *campaign.results.entry(kind).or_default() += count;
        }
        let Lives { began, from_snapshot, with_tail } =
            lives(scene.log(), &format!("{}journal", scene.prefix()));
        // The comparison is meaningful only if the faults took effect.
        assert!(began >= 2 && from_snapshot > 0, "{began} lives, {from_snapshot} restored from a snapshot");
        campaign.lives.began += began;
        campaign.lives.from_snapshot += from_snapshot;
        campaign.lives.with_tail += with_tail;
    }
}

/// Returns the group's committed offset in each partition of the ticks; `None` if the log does not answer.
fn committed(scene: &dyn Scene) -> Option<Vec<i64>> {
    let source = |partition| TopicPartition { topic: format!("{}ticks", scene.prefix()), partition };
    let one = |partition| Some(scene.log().committed(scene.group(), &source(partition)).ok()?.unwrap_or(0));
    (0..scene.partitions()).map(one).collect()
}
