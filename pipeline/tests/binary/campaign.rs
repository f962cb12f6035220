//! A campaign of faults: `run` and `feed` are killed, frozen, stopped and poisoned, the broker with them, in an order drawn
//! from a seed. In the end the outputs are those of an uninterrupted run over the same ticks, each risk request that was
//! asked meanwhile has one result, the right one, and the log verifies.
//!
//! A campaign is a sequence of episodes, each with a market of its own, so that what was broken is found soon. The tests
//! run one episode; `tests/crash --minutes N` begins another for as long as there is time.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use warptape_eventlog::{EventLog, TopicPartition};

use super::asking::{Asking, Topics};
use super::broker::Broker;
use super::history::{Lives, Random, lives, poison};
use super::processes::{Running, ends};

/// Faults of an episode, with many and with few.
const FAULTS: u64 = 24;
const FAULTS_QUICK: u64 = 6;
/// Longest life of a run between two faults, and of one that is to be killed while it begins.
const LIFE_MS_MAX: u64 = 1_500;
const BEGINNING_MS_MAX: u64 = 300;
/// Longest freeze of a run or of a broker: shorter than a session, so that nobody takes over.
const FREEZE_MS_MAX: u64 = 3_000;
/// Longest time without a broker.
const OUTAGE_MS_MAX: u64 = 2_000;
/// Questions before a run that kills itself.
const QUESTIONS: u64 = 3;
/// Places where a run kills itself, and from how many passages the one is drawn.
const FAILPOINTS: [(&str, u64); 5] = [
    ("AfterProduce", 20),
    ("AfterSendOffsets", 20),
    ("DuringCommit", 20),
    ("DuringSnapshot", 20),
    ("DuringRestore", 3),
];
const SIGABRT: i32 = 6;

/// What befalls an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The run is killed after some time at work.
    Kill,
    /// The run is killed while it begins.
    KillBeginning,
    /// The run kills itself at a failpoint.
    Failpoint,
    /// The run is asked to stop, and does.
    Stop,
    /// The run is frozen for a while, and goes on.
    Freeze,
    /// The feed is killed, and the same feed is started again.
    KillFeed,
    /// The broker is killed, and started again after a while.
    KillBroker,
    /// The broker is frozen for a while, and goes on.
    FreezeBroker,
}

/// What a campaign is about: a log with topics of its own, and the processes over it.
pub trait Scene {
    /// The log, as the test reaches it.
    fn log(&self) -> &dyn EventLog;
    /// Number of partitions of the ticks.
    fn partitions(&self) -> i32;
    /// What stands before the names of topics.
    fn prefix(&self) -> &str;
    /// Name of the consumer group.
    fn group(&self) -> &str;
    /// Faults that this scene knows, each as often as it shall be drawn.
    fn faults(&self) -> &[Fault];
    /// Starts a market that does not end.
    fn start_feed(&self, seed: u64) -> Running;
    /// Starts a run with these variables.
    fn start_run(&self, environment: &[(&str, &str)]) -> Running;
    /// The broker below the log, where there is one.
    fn broker(&self) -> Option<&Broker>;
    /// Waits until the log shows what the feed says it published, and so much poison.
    fn await_published(&self, seed: u64, summary: &str, poison: u64);
    /// Lets a last run process what is left, and stops it.
    fn drain(&self, run: Running);
    /// Compares the outputs with those of an uninterrupted run over the same ticks, and verifies the log. Gives the numbers
    /// of signals, late ticks and dead letters.
    fn check(&self) -> [usize; 3];
}

/// What a campaign came to.
#[derive(Debug, Default)]
pub struct Campaign {
    pub episodes: u64,
    /// Episodes that proved nothing, because the broker broke a transaction by itself.
    pub excused: u64,
    pub faults: BTreeMap<Fault, u64>,
    pub signals: usize,
    pub late: usize,
    pub dead_letters: usize,
    pub results: BTreeMap<String, usize>,
    pub lives: Lives,
}

/// Runs one episode, or as many as begin within WARPTAPE_TEST_MINUTES.
pub fn run<S: Scene>(new_scene: impl Fn() -> S) -> Campaign {
    let mut random = Random::from_environment();
    let minutes = std::env::var("WARPTAPE_TEST_MINUTES").ok();
    let minutes: u64 =
        minutes.map_or(0, |text| text.parse().expect("WARPTAPE_TEST_MINUTES is a whole number"));
    let since = Instant::now();
    let mut campaign = Campaign::default();
    while campaign.episodes == 0 || since.elapsed() < Duration::from_secs(60 * minutes) {
        let scene = new_scene();
        match Episode::begin(&scene, &mut random, &mut campaign).run() {
            true => campaign.episodes += 1,
            false => campaign.excused += 1,
        }
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
    poison: u64,
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
        Self { scene, random, campaign, seed, feed, asking, poison: 0 }
    }

    /// False if the broker broke a transaction by itself, and nothing is proven.
    fn run(mut self) -> bool {
        let is_quick = std::env::var_os("WARPTAPE_TEST_QUICK").is_some();
        let mut faults = self.scene.faults().to_vec();
        for number in 0..if is_quick { FAULTS_QUICK } else { FAULTS } {
            // Each of them comes once before any comes twice.
            if (number as usize).is_multiple_of(faults.len()) {
                self.shuffle(&mut faults);
            }
            let fault = faults[number as usize % faults.len()];
            println!("fault {number}: {fault:?}");
            *self.campaign.faults.entry(fault).or_default() += 1;
            if !self.befall(fault) {
                return false;
            }
            assert!(self.feed.is_running(), "the load is gone after {fault:?}");
            poison(self.scene.log(), &self.topic("ticks"), self.scene.partitions(), self.random);
            self.poison += 1;
        }
        self.conclude();
        true
    }

    fn shuffle(&mut self, faults: &mut [Fault]) {
        for left in (1..faults.len()).rev() {
            faults.swap(left, self.random.below(left as u64 + 1) as usize);
        }
    }

    fn topic(&self, name: &str) -> String {
        format!("{}{name}", self.scene.prefix())
    }

    fn time(&mut self, ms_max: u64) -> Duration {
        Duration::from_millis(self.random.below(ms_max))
    }

    /// One fault of one life of the run. False if the broker has an excuse.
    fn befall(&mut self, fault: Fault) -> bool {
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
                // Nobody asks meanwhile: a run that is frozen while it commits lets nobody write the embedded log.
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
                // Before another one begins: the embedded log takes one feed of a source at a time.
                assert!(self.feed.is_running(), "the load is gone");
                self.feed.signal("KILL");
                while self.feed.is_running() {
                    std::thread::yield_now();
                }
                self.feed = self.scene.start_feed(self.seed);
                self.goes_on(&mut run);
                run.kill();
            }
            Fault::KillBroker | Fault::FreezeBroker => return self.break_broker(fault),
        }
        true
    }

    fn reach_failpoint(&mut self) {
        (0..QUESTIONS).for_each(|_| self.asking.ask(self.random));
        let (name, passages) = FAILPOINTS[self.random.below(FAILPOINTS.len() as u64) as usize];
        let failpoint = format!("{name}:{}", 1 + self.random.below(passages));
        let run = self.scene.start_run(&[("WARPTAPE_FAILPOINT", &failpoint)]);
        let (status, _, error) = run.finish();
        assert_eq!(status.signal(), Some(SIGABRT), "{failpoint}: {status}\n{error}");
    }

    fn break_broker(&mut self, fault: Fault) -> bool {
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
        if !self.goes_on(&mut run) {
            return false;
        }
        run.kill();
        self.asking.connect();
        true
    }

    /// Waits until more is committed in every partition than now. False if the broker has an excuse.
    fn goes_on(&mut self, run: &mut Running) -> bool {
        let Self { scene, feed, .. } = self;
        let mut before = None;
        run.run_until("more is committed in every partition", || {
            feed.run_for(Duration::ZERO);
            if scene.broker().is_some_and(Broker::has_skipped_markers) {
                return Some(false);
            }
            let now = committed(*scene)?;
            let before = before.get_or_insert_with(|| now.clone());
            now.iter().zip(before).all(|(now, before)| *now > *before).then_some(true)
        })
    }

    /// Ends the load and compares what there is.
    fn conclude(self) {
        let Self { scene, campaign, seed, feed, asking, poison, .. } = self;
        let fed = feed.stop("TERM");
        scene.await_published(seed, &fed, poison);
        let mut last = scene.start_run(&[]);
        asking.await_answers(&mut last, scene.group());
        scene.drain(last);
        let [signals, late, dead_letters] = scene.check();
        assert!(
            signals > 1000 && dead_letters as u64 == poison,
            "{signals} signals, {dead_letters} dead letters of {poison}"
        );
        campaign.signals += signals;
        campaign.late += late;
        campaign.dead_letters += dead_letters;
        for (kind, count) in asking.check() {
            *campaign.results.entry(kind).or_default() += count;
        }
        let Lives { began, from_snapshot, with_tail } =
            lives(scene.log(), &format!("{}journal", scene.prefix()));
        // What was compared is worth it: the faults hit what they were to hit.
        assert!(began >= 2 && from_snapshot > 0, "{began} lives, {from_snapshot} restored from a snapshot");
        campaign.lives.began += began;
        campaign.lives.from_snapshot += from_snapshot;
        campaign.lives.with_tail += with_tail;
    }
}

/// Committed offsets of the group in the partitions of the ticks; `None` where the log does not say at present.
fn committed(scene: &dyn Scene) -> Option<Vec<i64>> {
    let source = |partition| TopicPartition { topic: format!("{}ticks", scene.prefix()), partition };
    let one = |partition| Some(scene.log().committed(scene.group(), &source(partition)).ok()?.unwrap_or(0));
    (0..scene.partitions()).map(one).collect()
}
