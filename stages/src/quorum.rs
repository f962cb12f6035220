//! Event times far from all before, judged tick by tick: one symbol alone does not move the watermark of the others.
//!
//! ```text
//!   event time     ── far behind ──┬──── future_max ──── reference ───┬──── future_max ────┬── ahead: a dead letter
//!                     late         │ late, or in time                  │ accepted           │ never counts where it is ahead
//!                                                                                          │ of the clock; else a vote
//! ```
//!
//! The *reference* is the greatest event time of the partition's accepted ticks; [`crate::ahead`] defines which ticks
//! are ahead of it. A tick that is ahead is a dead letter, at no cost to others.
//!
//! A tick that is ahead is a *vote* of its symbol for its time. One that is ahead of the writing time of its record is
//! none, because such an event has not happened yet. A jump is followed when
//!
//! - [`JUMP_TICKS`] ticks of it follow each other without a tick in time among them, and
//! - more symbols vote for it than others *are heard*: symbols of which a tick in time was written within the last
//!   [`HEARD_NS`].
//!
//! So a partition of one symbol follows it after a closed market or into another recording once it has voted often
//! enough. One wrong unit among several symbols waits in vain, because the others are heard. Symbols that ended do not
//! hold the rest back for longer than a minute. Ticks that are not followed are dead letters; an operator can set the
//! event time.
//!
//! A partition that has just begun may have begun with the wrong tick. Until [`YOUNG_TICKS`] ticks came in time, ticks
//! that are as far *behind* the reference are votes as well. The rule is the same with one exception: ticks in time
//! among them do not count, because it is these that are in doubt.

use std::collections::BTreeSet;

use warptape_events::TickProblem;
use xxhash_rust::xxh3::xxh3_64;

use crate::StageError;
use crate::ahead::AheadLimits;
use crate::bytes::{get_i64, get_u32, get_u64, put_i64, put_u32, put_u64};

/// Ticks of a jump that are needed to follow it.
const JUMP_TICKS: u32 = 8;
/// Time for which a symbol is heard after the record of its last tick in time was written, in nanoseconds.
const HEARD_NS: i64 = 60_000_000_000;
/// Ticks in time after which a partition has begun for good.
const YOUNG_TICKS: u32 = 1_024;
/// Most symbols whose votes are kept; later ones do not count.
const VOTERS_MAX: usize = 65_536;
/// Average number of symbols that are looked at for each vote: heard symbols are counted anew only after enough further
/// votes.
const LOOKS_A_VOTE: usize = 64;

/// Symbols that vote for a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Votes {
    /// The newest time voted for.
    time_ns: i64,
    /// Ticks for it, minus those for other times since; 0 if there are none.
    ticks: u32,
    /// Value of `ticks` when the heard symbols were last counted.
    counted_at: u32,
    /// Hashes of the symbols' names, because symbols of a jump have no numbers.
    voters: BTreeSet<u64>,
}

impl Votes {
    /// Counts a vote. Returns true if it belongs to the present votes, rather than against them.
    fn add(&mut self, symbol: &str, time_ns: i64, within_ns: i64) -> bool {
        let belongs = self.ticks > 0 && self.time_ns.abs_diff(time_ns) <= within_ns.unsigned_abs();
        if !belongs && self.ticks > 1 {
            self.ticks -= 1;
            self.counted_at = self.counted_at.min(self.ticks);
            return false;
        }
        if !belongs {
            *self = Self::default();
        }
        self.time_ns = time_ns;
        self.ticks = self.ticks.saturating_add(1);
        if self.voters.len() < VOTERS_MAX {
            self.voters.insert(hash(symbol));
        }
        true
    }

    fn write(&self, out: &mut Vec<u8>) {
        put_i64(out, self.time_ns);
        put_u32(out, self.ticks);
        put_u32(out, self.counted_at);
        put_u32(out, self.voters.len() as u32);
        self.voters.iter().for_each(|voter| put_u64(out, *voter));
    }

    fn read(bytes: &mut &[u8]) -> Result<Self, StageError> {
        let (time_ns, ticks) = (get_i64(bytes, "time voted for")?, get_u32(bytes, "votes")?);
        let counted_at = get_u32(bytes, "votes counted")?;
        let voters = get_u32(bytes, "voters")?;
        let voters = (0..voters).map(|_| get_u64(bytes, "voter")).collect::<Result<_, _>>()?;
        Ok(Self { time_ns, ticks, counted_at, voters })
    }
}

fn hash(symbol: &str) -> u64 {
    xxh3_64(symbol.as_bytes())
}

/// A tick that is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgedTick<'a> {
    pub(crate) symbol: &'a str,
    pub(crate) time_ns: i64,
    /// Writing time of its record; 0 if it is unknown.
    pub(crate) written_ns: i64,
}

/// The effect of a tick on the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moves {
    /// The effect of any tick: a later one moves it, a late one does not.
    Normally,
    /// The reference moves back to the tick.
    Back,
}

/// The symbols heard in a partition, and their votes.
#[derive(Debug, Default)]
pub(crate) struct Quorum {
    /// Writing time of the record of a symbol's last tick in time, by symbol number; `i64::MIN` before the first.
    heard_ns: Vec<i64>,
    /// Ticks in time so far, up to [`YOUNG_TICKS`].
    in_time: u32,
    ahead: Votes,
    behind: Votes,
}

impl Quorum {
    /// Makes room for `symbols` symbols.
    pub(crate) fn grow(&mut self, symbols: usize) {
        self.heard_ns.resize(symbols, i64::MIN);
    }

    /// True if ticks far behind the reference are votes.
    pub(crate) fn is_young(&self) -> bool {
        self.in_time < YOUNG_TICKS
    }

    /// Judges a tick after ticks up to `reference_ns`. Returns its problem if it is too far ahead and not followed.
    /// `names` gives the symbols' names by number.
    pub(crate) fn judge<'n>(
        &mut self,
        tick: JudgedTick<'_>,
        limits: Option<&AheadLimits>,
        reference_ns: Option<i64>,
        names: impl Fn(u32) -> &'n str,
    ) -> Result<Moves, TickProblem> {
        let Some(limits) = limits else { return Ok(Moves::Normally) };
        let JudgedTick { symbol, time_ns, written_ns } = tick;
        let future_max_ns = limits.future_max_ns();
        let names = &names;
        if limits.is_ahead(time_ns) {
            let counts = !limits.is_ahead_of_writing(time_ns);
            if counts && self.ahead.add(symbol, time_ns, future_max_ns) {
                let is_followed = is_quorum(&mut self.ahead, &self.heard_ns, written_ns, names);
                if is_followed {
                    self.ahead = Votes::default();
                    return Ok(Moves::Normally);
                }
            }
            return Err(limits.problem_of(time_ns));
        }
        let is_far_behind =
            reference_ns.is_some_and(|reference| time_ns < reference.saturating_sub(future_max_ns));
        if is_far_behind && self.is_young() && self.behind.add(symbol, time_ns, future_max_ns) {
            let is_followed = is_quorum(&mut self.behind, &self.heard_ns, written_ns, names);
            if is_followed {
                self.go_back(written_ns, names);
                return Ok(Moves::Back);
            }
        }
        Ok(Moves::Normally)
    }

    /// Notes that ticks of these symbols came in time, in a record that was written at this time.
    pub(crate) fn hear(&mut self, symbols: impl ExactSizeIterator<Item = u32>, written_ns: i64) {
        if symbols.len() == 0 {
            return;
        }
        self.in_time = self.in_time.saturating_add(symbols.len() as u32).min(YOUNG_TICKS);
        if self.ahead.ticks > 0 {
            self.ahead = Votes::default();
        }
        symbols.for_each(|symbol| self.heard_ns[symbol as usize] = written_ns);
        if !self.is_young() && self.behind.ticks > 0 {
            self.behind = Votes::default();
        }
    }

    /// Drops all votes, because an operator has set the event time.
    pub(crate) fn settle(&mut self) {
        (self.ahead, self.behind, self.in_time) = (Votes::default(), Votes::default(), YOUNG_TICKS);
    }

    /// Moves the reference back to the time with the most votes; its voters are the heard symbols now.
    fn go_back<'n>(&mut self, written_ns: i64, names: impl Fn(u32) -> &'n str) {
        let Votes { voters, .. } = std::mem::take(&mut self.behind);
        for (number, heard_ns) in (0..).zip(&mut self.heard_ns) {
            *heard_ns = if voters.contains(&hash(names(number))) { written_ns } else { i64::MIN };
        }
        self.ahead = Votes::default();
        self.in_time = 0;
    }

    /// Writes the state.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.in_time);
        self.ahead.write(out);
        self.behind.write(out);
        self.heard_ns.iter().for_each(|heard_ns| put_i64(out, *heard_ns));
    }

    /// Reads the bytes of a partition with `symbols` symbols.
    pub(crate) fn read(symbols: usize, bytes: &mut &[u8]) -> Result<Self, StageError> {
        let in_time = get_u32(bytes, "ticks in time")?;
        let (ahead, behind) = (Votes::read(bytes)?, Votes::read(bytes)?);
        let heard_ns =
            (0..symbols).map(|_| get_i64(bytes, "when a symbol was heard")).collect::<Result<_, _>>()?;
        Ok(Self { heard_ns, in_time, ahead, behind })
    }
}

/// True if the votes are enough, in a record that was written at this time.
fn is_quorum<'n>(
    votes: &mut Votes,
    heard_ns: &[i64],
    written_ns: i64,
    names: impl Fn(u32) -> &'n str,
) -> bool {
    let since_counted = (votes.ticks - votes.counted_at) as usize;
    if votes.ticks < JUMP_TICKS || since_counted.saturating_mul(LOOKS_A_VOTE) < heard_ns.len() {
        return false;
    }
    votes.counted_at = votes.ticks;
    let since_ns = written_ns.saturating_sub(HEARD_NS);
    let is_heard = |(number, heard_ns): &(u32, i64)| {
        *heard_ns != i64::MIN && *heard_ns >= since_ns && !votes.voters.contains(&hash(names(*number)))
    };
    let others = (0..).zip(heard_ns.iter().copied()).filter(is_heard).take(votes.voters.len()).count();
    others < votes.voters.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StageConfig;
    use crate::config::tests::config;

    const MAX: i64 = 100;
    const SKEW: i64 = 5;
    const NAMES: [&str; 4] = ["A", "B", "C", "D"];

    struct Judge {
        quorum: Quorum,
        reference_ns: Option<i64>,
    }

    impl Judge {
        /// A quorum that is no longer young, after enough ticks in time of all symbols.
        fn grown_up(symbols: usize, written_ns: i64) -> Self {
            let mut quorum = Quorum::default();
            quorum.grow(NAMES.len());
            for _ in 0..YOUNG_TICKS {
                quorum.hear(0..symbols as u32, written_ns);
            }
            Self { quorum, reference_ns: Some(1_000) }
        }

        fn new() -> Self {
            Self { reference_ns: None, ..Self::grown_up(0, 0) }
        }

        /// Judges a tick as the intake does: -1 if it is refused, 0 if it is late, 1 if it is in time.
        fn tick(&mut self, symbol: usize, time_ns: i64, written_ns: i64) -> i32 {
            let config = StageConfig { future_max_ns: MAX, clock_skew_max_ns: SKEW, ..config() };
            let limits = AheadLimits::of(&config, self.reference_ns, written_ns);
            let tick = JudgedTick { symbol: NAMES[symbol], time_ns, written_ns };
            let name = |number: u32| NAMES[number as usize];
            match self.quorum.judge(tick, limits.as_ref(), self.reference_ns, name) {
                Err(_) => return -1,
                Ok(Moves::Back) => self.reference_ns = Some(time_ns),
                Ok(Moves::Normally) => {}
            }
            if self.reference_ns.is_some_and(|reference| time_ns < reference - 10) {
                return 0;
            }
            self.reference_ns = self.reference_ns.max(Some(time_ns));
            self.quorum.hear([symbol as u32].into_iter(), written_ns);
            1
        }
    }

    #[test]
    fn one_symbol_of_one_is_followed_and_one_of_two_is_not() {
        let mut judge = Judge::grown_up(1, 9_000);
        let found: Vec<i32> = (0..9).map(|number| judge.tick(0, 5_000 + number, 9_000)).collect();
        assert_eq!(found, [-1, -1, -1, -1, -1, -1, -1, 1, 1]);
        let mut judge = Judge::grown_up(2, 9_000);
        assert!((0..5_000).all(|_| judge.tick(0, 5_000, 9_000) == -1), "the other one is heard");
        assert_eq!(judge.tick(1, 1_001, 9_000), 1);
        assert_eq!(judge.tick(0, 5_000, 9_000 + HEARD_NS), -1, "seven more are missing");
        assert!((0..6).all(|_| judge.tick(0, 5_000, 9_000 + HEARD_NS) == -1));
        assert_eq!(judge.tick(0, 5_000, 9_001 + HEARD_NS), 1, "the other one is heard no more");
    }

    #[test]
    fn most_symbols_are_followed_unless_ticks_are_in_time_between() {
        let mut judge = Judge::grown_up(3, 9_000);
        let found: Vec<i32> = (0..10).map(|number| judge.tick(number % 2, 5_000, 9_000)).collect();
        assert_eq!(found, [-1, -1, -1, -1, -1, -1, -1, 1, 1, 1]);
        let mut judge = Judge::grown_up(3, 9_000);
        for _ in 0..100 {
            assert!((0..7).all(|number| judge.tick(number % 2, 5_000, 9_000) == -1));
            assert_eq!(judge.tick(2, 1_001, 9_000), 1);
        }
        // Ticks of another time count against it.
        let mut judge = Judge::grown_up(1, 9_000);
        assert!((0..7).all(|_| judge.tick(0, 5_000, 9_000) == -1 && judge.tick(0, 7_000, 9_000) == -1));
    }

    #[test]
    fn what_is_ahead_of_the_clock_never_counts() {
        let mut judge = Judge::grown_up(1, 1_000);
        assert!((0..100).all(|_| judge.tick(0, 5_000, 1_000) == -1));
        assert_eq!(judge.tick(0, 1_005, 1_000), 1);
        let mut judge = Judge::new();
        assert!((0..100).all(|_| judge.tick(0, 1_006, 1_000) == -1), "nor at the beginning");
        assert_eq!(judge.tick(0, 1_005, 1_000), 1);
    }

    #[test]
    fn a_beginning_with_the_wrong_tick_is_taken_back() {
        let mut judge = Judge::new();
        assert_eq!(judge.tick(0, 5_000, 9_000), 1);
        let found: Vec<i32> = (0..10).map(|number| judge.tick(0, 1_000 + number, 9_000)).collect();
        assert_eq!(found, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1]);
        // One symbol of three has the wrong unit, and came first.
        let mut judge = Judge::new();
        let found: Vec<i32> = (0..30)
            .map(|number| {
                if number % 3 == 0 {
                    judge.tick(0, 5_000, 9_000)
                } else {
                    judge.tick(number % 3, 1_000, 9_000)
                }
            })
            .collect();
        assert_eq!(found[..3], [1, 0, 0]);
        assert_eq!(found[27..], [-1, 1, 1]);
        // Later, the ticks behind are late.
        let mut judge = Judge::grown_up(1, 9_000);
        assert!((0..100).all(|_| judge.tick(0, 500, 9_000) == 0));
    }

    #[test]
    fn the_state_is_read_as_it_was_written() {
        let mut judge = Judge::grown_up(2, 9_000);
        assert!((0..5).all(|_| judge.tick(0, 5_000, 9_000) == -1));
        let mut bytes = Vec::new();
        judge.quorum.write(&mut bytes);
        let read = Quorum::read(NAMES.len(), &mut &bytes[..]).expect("it was written so");
        let mut again = Vec::new();
        read.write(&mut again);
        assert_eq!((again, read.ahead), (bytes, judge.quorum.ahead));
    }
}
