//! Crashes of `run` on a real Kafka: nothing lost, nothing twice, the outputs those of an uninterrupted run over the same
//! ticks on the embedded log; and each risk request that was asked meanwhile has one result, the right one.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use super::asking::{Asking, Topics};
use super::broker::shared;
use super::history::{Random, lives, poison};
use super::kafka_market::{Market, PARTITIONS, TickReader, published};
use super::processes::ends;

const KILLS: u64 = 20;
const KILLS_QUICK: u64 = 4;
/// Ticks at least, with the quick kills and with more.
const TICKS: u64 = 100_000;
const TICKS_QUICK: u64 = 10_000;
/// Longest life of a run, and of one that is to be killed while it begins.
const LIFE_MS_MAX: u64 = 1_500;
const BEGINNING_MS_MAX: u64 = 300;
/// One random kill in this many hits a run while it begins.
const BEGINNINGS_ONE_IN: u64 = 3;
/// Questions before a run that kills itself.
const QUESTIONS: u64 = 3;
/// Places where a run kills itself, and from how many passages the one is drawn.
const FAILPOINTS: [(&str, u64); 5] = [
    ("AfterProduce", 20),
    ("AfterSendOffsets", 20),
    ("DuringCommit", 20),
    ("DuringSnapshot", 20),
    ("DuringRestore", PARTITIONS as u64),
];
const SIGABRT: i32 = 6;

/// How many times to kill `run`: WARPTAPE_TEST_KILLS, else few or many.
fn kills() -> u64 {
    match std::env::var("WARPTAPE_TEST_KILLS") {
        Ok(text) => text.parse().expect("WARPTAPE_TEST_KILLS is a whole number"),
        Err(_) if is_quick() => KILLS_QUICK,
        Err(_) => KILLS,
    }
}

fn is_quick() -> bool {
    std::env::var_os("WARPTAPE_TEST_QUICK").is_some()
}

#[test]
fn kills_on_kafka_lose_nothing_and_double_nothing() {
    let mut random = Random::from_environment();
    let kills = kills();
    let market = Market::new("kills", shared());
    let seed = random.below(1 << 32);
    let mut feed = market.start_feed(seed);
    let mut first = market.start_run();
    market.run_on(&mut first, &mut feed);
    first.run_until("snapshots are written", || {
        let ends = ends(&market.log, &market.topic("snapshots"));
        ends.iter().all(|end| *end > 0).then_some(())
    });
    let mut asking = Asking::new(&market.log, Topics::new(&market.prefix), PARTITIONS);
    asking.run_for(&mut first, Duration::from_millis(LIFE_MS_MAX), &mut random);
    first.kill();

    let first_failpoint = random.below(FAILPOINTS.len() as u64);
    for kill in 1..kills {
        if kill.is_multiple_of(2) {
            let mut run = market.start_run();
            let is_beginning = random.below(BEGINNINGS_ONE_IN) == 0;
            let life_ms_max = if is_beginning { BEGINNING_MS_MAX } else { LIFE_MS_MAX };
            let life = Duration::from_millis(random.below(life_ms_max));
            asking.run_for(&mut run, life, &mut random);
            run.kill();
        } else {
            (0..QUESTIONS).for_each(|_| asking.ask(&mut random));
            let (name, passages) = FAILPOINTS[(first_failpoint + kill / 2) as usize % FAILPOINTS.len()];
            let failpoint = format!("{name}:{}", 1 + random.below(passages));
            let run = market.start_run_with(&[], &[("WARPTAPE_FAILPOINT", &failpoint)]);
            let (status, _, error) = run.finish();
            assert_eq!(status.signal(), Some(SIGABRT), "{failpoint}: {status}\n{error}");
        }
        assert!(feed.is_running(), "the load is gone");
        poison(&market.log, &market.topic("ticks"), PARTITIONS, &mut random);
    }
    let ticks_min = if is_quick() { TICKS_QUICK } else { TICKS };
    let mut ticks = TickReader::new(&market.log, &market.topic("ticks"), PARTITIONS);
    feed.run_while_moving("enough is published", || {
        let found = ticks.read_on();
        if found[0] >= ticks_min { Ok(()) } else { Err(found) }
    });
    let fed = feed.stop("TERM");
    ticks.await_all(published(&fed), kills - 1);
    let mut last = market.start_run();
    asking.await_answers(&mut last, &market.group);
    market.drain(last);

    let counts = market.check();
    // What was compared is worth it: there is much of it, and the kills hit what they were to hit.
    let results = asking.check();
    let lives = lives(&market.log, &market.topic("journal"));
    println!("{kills} kills, {fed}signals, late, dead letters: {counts:?}; {results:?}; {lives:?}");
    assert!(counts[0] > 1000 && counts[1] > 0 && counts[2] as u64 == kills - 1, "{counts:?}");
    assert!(lives.began >= 2 && lives.from_snapshot > 0, "{lives:?}");
    assert!(kills < KILLS || (lives.began > 2 && lives.with_tail > 0), "{lives:?}");
}
