//! Rules of one kind, computed side by side: from closes to positions.

#![expect(clippy::needless_range_loop, reason = "a lane is a position in several arrays at once")]

use super::window_sum::WindowSum;
use super::{Account, CHUNK, TradingRule};
use crate::indicators::Period;
use crate::isa::Isa;

/// Number of rules computed side by side: two vector registers of AVX2, one of which computes while the other waits, or
/// one of AVX-512.
pub(super) const LANES: usize = 8;

/// Up to eight rules of one kind, and their state after a symbol's bars so far.
#[derive(Clone, Debug)]
pub(super) struct RuleBlock {
    /// Number of each lane's rule; `None` for lanes without a rule.
    pub cells: [Option<usize>; LANES],
    pub account: Account<LANES>,
    kind: RuleKind,
}

#[derive(Clone, Debug)]
enum RuleKind {
    EmaCross(EmaCross),
    Rsi(Rsi),
    ZScore(Bands<true>),
    Breakout(Bands<false>),
}

impl RuleBlock {
    /// Blocks of all rules.
    pub fn all(rules: &[TradingRule]) -> Vec<Self> {
        blocks(rules).iter().map(|cells| Self::new(cells, rules)).collect()
    }

    fn new(cells: &[usize], rules: &[TradingRule]) -> Self {
        // Lanes without a rule repeat the first rule.
        let of_lane = |lane: usize| rules[*cells.get(lane).unwrap_or(&cells[0])];
        let each: [TradingRule; LANES] = std::array::from_fn(of_lane);
        let kind = match each[0] {
            TradingRule::EmaCross { .. } => RuleKind::EmaCross(EmaCross::new(&each)),
            TradingRule::RsiReversion { .. } => RuleKind::Rsi(Rsi::new(&each)),
            TradingRule::ZScoreReversion { .. } => RuleKind::ZScore(Bands::new(&each)),
            TradingRule::BandBreakout { .. } => RuleKind::Breakout(Bands::new(&each)),
        };
        Self { cells: std::array::from_fn(|lane| cells.get(lane).copied()), account: Account::EMPTY, kind }
    }

    /// Begins another symbol; `scale` is the power of ten of its closes' unit.
    pub fn begin(&mut self, first_close: f64, scale: f64) {
        self.account = Account::EMPTY;
        match &mut self.kind {
            RuleKind::EmaCross(rules) => rules.begin(),
            RuleKind::Rsi(rules) => rules.begin(),
            RuleKind::ZScore(rules) => rules.begin(first_close, scale),
            RuleKind::Breakout(rules) => rules.begin(first_close, scale),
        }
    }

    /// The fastest instruction set for the block. A register of AVX-512 holds all rules. Relative strength indices have
    /// the longest chains of dependent steps, and are faster in two alternating registers of AVX2.
    pub fn isa(&self, isa: Isa) -> Isa {
        if matches!(self.kind, RuleKind::Rsi(_)) { isa.of_four() } else { isa }
    }

    /// Processes the bars `from..to`.
    #[inline(always)]
    pub fn run(&mut self, closes: &[f64], changes: &[f64], from: usize, to: usize, cost: f64) {
        match &mut self.kind {
            RuleKind::EmaCross(rules) => run(rules, &mut self.account, closes, changes, from, to, cost),
            RuleKind::Rsi(rules) => run(rules, &mut self.account, closes, changes, from, to, cost),
            RuleKind::ZScore(rules) => run(rules, &mut self.account, closes, changes, from, to, cost),
            RuleKind::Breakout(rules) => run(rules, &mut self.account, closes, changes, from, to, cost),
        }
    }
}

/// The numbers of the rules that are computed side by side: up to eight of one kind, in their order. Such a block takes
/// as long as one rule.
pub fn blocks(rules: &[TradingRule]) -> Vec<Vec<usize>> {
    let is_of: [fn(&TradingRule) -> bool; 4] = [
        |rule| matches!(rule, TradingRule::EmaCross { .. }),
        |rule| matches!(rule, TradingRule::RsiReversion { .. }),
        |rule| matches!(rule, TradingRule::ZScoreReversion { .. }),
        |rule| matches!(rule, TradingRule::BandBreakout { .. }),
    ];
    let mut blocks = Vec::new();
    for is_of in is_of {
        let cells: Vec<usize> = (0..rules.len()).filter(|&cell| is_of(&rules[cell])).collect();
        blocks.extend(cells.chunks(LANES).map(<[usize]>::to_vec));
    }
    blocks
}

trait Rules: Clone {
    /// Called before the bars from `bar` on are processed, so that sums can be recomputed.
    fn resume(&mut self, _closes: &[f64], _bar: usize) {}

    /// Number of bars after which all rules are past their seeds.
    fn settled_after(&self) -> usize;

    /// Positions after the bar at `bar`. If `SETTLED` is true, more than [`Self::settled_after`] bars came before.
    fn target<const SETTLED: bool>(
        &mut self,
        closes: &[f64],
        bar: usize,
        position: &[f64; LANES],
    ) -> [f64; LANES];
}

#[inline(always)]
fn run<R: Rules>(
    rules: &mut R,
    account: &mut Account<LANES>,
    closes: &[f64],
    changes: &[f64],
    from: usize,
    to: usize,
    cost: f64,
) {
    // Local copies stay in registers as far as possible.
    let (mut local_rules, mut local) = (rules.clone(), *account);
    local_rules.resume(closes, from);
    let settled = rules.settled_after().clamp(from, to);
    for bar in from..settled {
        let target = local_rules.target::<false>(closes, bar, &local.position);
        local.step(changes[bar], &target, cost);
    }
    for bar in settled..to {
        let target = local_rules.target::<true>(closes, bar, &local.position);
        local.step(changes[bar], &target, cost);
    }
    (*rules, *account) = (local_rules, local);
}

/// Constants of averages, by lane.
#[derive(Clone, Debug)]
struct Periods([[f64; LANES]; 3]);

impl Periods {
    fn new(lengths: [u32; LANES]) -> Self {
        let constants = lengths.map(|length| Period::new(length).constants());
        Self(std::array::from_fn(|constant| constants.map(|of_lane| of_lane[constant])))
    }

    #[inline(always)]
    fn of_lane(&self, lane: usize) -> Period {
        let Self([length, inverse, alpha]) = self;
        Period::from_constants([length[lane], inverse[lane], alpha[lane]])
    }

    fn longest(&self) -> usize {
        self.0[0].into_iter().map(|length| length as usize).fold(0, usize::max)
    }
}

#[derive(Clone, Debug)]
struct EmaCross {
    fast: Periods,
    slow: Periods,
    fast_average: [f64; LANES],
    slow_average: [f64; LANES],
}

impl EmaCross {
    fn new(each: &[TradingRule; LANES]) -> Self {
        let of = |rule: &TradingRule| match *rule {
            TradingRule::EmaCross { fast, slow } => [fast, slow],
            _ => unreachable!("rules of one kind"),
        };
        Self {
            fast: Periods::new(each.map(|rule| of(&rule)[0])),
            slow: Periods::new(each.map(|rule| of(&rule)[1])),
            fast_average: [0.0; LANES],
            slow_average: [0.0; LANES],
        }
    }

    fn begin(&mut self) {
        (self.fast_average, self.slow_average) = ([0.0; LANES], [0.0; LANES]);
    }
}

impl Rules for EmaCross {
    fn settled_after(&self) -> usize {
        self.fast.longest().max(self.slow.longest())
    }

    #[inline(always)]
    fn target<const SETTLED: bool>(
        &mut self,
        closes: &[f64],
        bar: usize,
        position: &[f64; LANES],
    ) -> [f64; LANES] {
        let (close, sample) = (closes[bar], bar as f64 + 1.0);
        let mut target = [0.0; LANES];
        for lane in 0..LANES {
            let (fast, slow) = (self.fast.of_lane(lane), self.slow.of_lane(lane));
            let above = fast.exponential::<SETTLED>(self.fast_average[lane], close, sample);
            let below = slow.exponential::<SETTLED>(self.slow_average[lane], close, sample);
            (self.fast_average[lane], self.slow_average[lane]) = (above, below);
            let crossed = if above < below { -1.0 } else { position[lane] };
            let crossed = if above > below { 1.0 } else { crossed };
            let full = SETTLED || (sample >= slow.length) & (sample >= fast.length);
            target[lane] = if full { crossed } else { 0.0 };
        }
        target
    }
}

#[derive(Clone, Debug)]
struct Rsi {
    period: Periods,
    low: [f64; LANES],
    high: [f64; LANES],
    gain: [f64; LANES],
    loss: [f64; LANES],
}

impl Rsi {
    fn new(each: &[TradingRule; LANES]) -> Self {
        let of = |rule: &TradingRule| match *rule {
            TradingRule::RsiReversion { length, low, high } => (length, low, high),
            _ => unreachable!("rules of one kind"),
        };
        Self {
            period: Periods::new(each.map(|rule| of(&rule).0)),
            low: each.map(|rule| of(&rule).1),
            high: each.map(|rule| of(&rule).2),
            gain: [0.0; LANES],
            loss: [0.0; LANES],
        }
    }

    fn begin(&mut self) {
        (self.gain, self.loss) = ([0.0; LANES], [0.0; LANES]);
    }
}

impl Rules for Rsi {
    fn settled_after(&self) -> usize {
        // The first change comes with the second bar.
        self.period.longest() + 1
    }

    #[inline(always)]
    fn target<const SETTLED: bool>(
        &mut self,
        closes: &[f64],
        bar: usize,
        position: &[f64; LANES],
    ) -> [f64; LANES] {
        let before = if bar == 0 { closes[0] } else { closes[bar - 1] };
        let (change, sample) = (closes[bar] - before, bar as f64);
        let up = if change > 0.0 { change } else { 0.0 };
        let mut target = [0.0; LANES];
        for lane in 0..LANES {
            let period = self.period.of_lane(lane);
            let gain = period.wilder::<SETTLED>(self.gain[lane], up, sample);
            let loss = period.wilder::<SETTLED>(self.loss[lane], up - change, sample);
            (self.gain[lane], self.loss[lane]) = (gain, loss);
            // The index is 100 · gain / (gain + loss), compared without a division.
            let (scaled, all) = (100.0 * gain, gain + loss);
            let reversed = if scaled > self.high[lane] * all { -1.0 } else { position[lane] };
            let reversed = if scaled < self.low[lane] * all { 1.0 } else { reversed };
            let full = SETTLED || sample >= period.length;
            target[lane] = if full { reversed } else { 0.0 };
        }
        target
    }
}

/// Share of the mean square up to which a variance counts as 0.
const STILL: f64 = 1e-12;
/// Replacement for a distance of 0 on a known side; its square is above 0.
const LEAST_DISTANCE: f64 = 1e-150;
/// Share of a close that counts as a difference of prices. A double differs from its decimal number by at most half of
/// the close's last bit. The resulting doubt is at least 2¹³ bits of the largest difference.
const CLOSE_SHARE: f64 = 1.0 / 4_096.0;

/// Rules based on mean and deviation of a window: positions against the deviation if `REVERSION`, with it otherwise.
#[derive(Clone, Debug)]
struct Bands<const REVERSION: bool> {
    window: [usize; LANES],
    period: Periods,
    /// Squares of the numbers of deviations at which a position is taken. Below: squares of those within which it is
    /// given up.
    entry: [f64; LANES],
    exit: [f64; LANES],
    /// The symbol's first close, to which all prices are relative.
    base: f64,
    sum: [f64; LANES],
    squares: [f64; LANES],
    /// Power of ten that makes all closes whole numbers; 0 if there is none.
    scale: f64,
    /// Greatest difference so far of a price from the base, or share of a close.
    largest: f64,
    /// Distance from the mean within which rounding may hide the side, as a share of `largest`, by lane.
    doubt: [f64; LANES],
    exact: [WindowSum; LANES],
}

/// Greatest error of a mean, as a share of the largest price. The sum loses half a unit in the last place in each step
/// since its recomputation.
fn doubt_of(window: u32) -> f64 {
    (f64::from(window) + 2.0 * CHUNK as f64 + 8.0) * f64::EPSILON
}

impl<const REVERSION: bool> Bands<REVERSION> {
    fn new(each: &[TradingRule; LANES]) -> Self {
        let of = |rule: &TradingRule| match *rule {
            TradingRule::ZScoreReversion { window, entry, exit } => (window, entry, exit),
            TradingRule::BandBreakout { window, width } => (window, width, 0.0),
            _ => unreachable!("rules of one kind"),
        };
        Self {
            window: each.map(|rule| of(&rule).0 as usize),
            period: Periods::new(each.map(|rule| of(&rule).0)),
            entry: each.map(|rule| of(&rule).1 * of(&rule).1),
            exit: each.map(|rule| of(&rule).2 * of(&rule).2),
            base: 0.0,
            scale: 0.0,
            sum: [0.0; LANES],
            squares: [0.0; LANES],
            largest: 0.0,
            doubt: each.map(|rule| doubt_of(of(&rule).0)),
            exact: [WindowSum::default(); LANES],
        }
    }

    fn begin(&mut self, first_close: f64, scale: f64) {
        (self.base, self.sum, self.squares) = (first_close, [0.0; LANES], [0.0; LANES]);
        self.scale = scale;
        (self.largest, self.exact) = (0.0, [WindowSum::default(); LANES]);
    }

    /// Corrects the signs of distances from the mean that rounding may hide; the magnitudes stay.
    #[cold]
    #[inline(never)]
    fn decide(&mut self, closes: &[f64], bar: usize, distance: &mut [f64; LANES]) {
        for lane in 0..LANES {
            let is_full = bar + 1 >= self.window[lane];
            if is_full && distance[lane].abs() <= self.doubt[lane] * self.largest {
                let side = self.exact[lane].side(closes, self.scale, bar, self.window[lane]);
                let size = distance[lane].abs();
                let size = if size > LEAST_DISTANCE { size } else { LEAST_DISTANCE };
                distance[lane] = if side == 0.0 { 0.0 } else { size.copysign(side) };
            }
        }
    }
}

impl<const REVERSION: bool> Rules for Bands<REVERSION> {
    /// Recomputes the sums of the windows before the bar, so that rounding does not accumulate.
    fn resume(&mut self, closes: &[f64], bar: usize) {
        for lane in 0..LANES {
            let (mut sum, mut squares) = (0.0, 0.0);
            for close in &closes[bar.saturating_sub(self.window[lane])..bar] {
                let value = close - self.base;
                sum += value;
                squares += value * value;
            }
            (self.sum[lane], self.squares[lane]) = (sum, squares);
        }
    }

    fn settled_after(&self) -> usize {
        self.window.into_iter().fold(0, usize::max)
    }

    #[inline(always)]
    fn target<const SETTLED: bool>(
        &mut self,
        closes: &[f64],
        bar: usize,
        position: &[f64; LANES],
    ) -> [f64; LANES] {
        let (value, sample) = (closes[bar] - self.base, bar as f64 + 1.0);
        let mut oldest = [0.0; LANES];
        for lane in 0..LANES {
            // Bars before the first one count as the first close, which is 0 relative to itself.
            let leaving =
                if SETTLED { Some(bar - self.window[lane]) } else { bar.checked_sub(self.window[lane]) };
            oldest[lane] = leaving.map_or(0.0, |leaving| closes[leaving] - self.base);
        }
        for lane in 0..LANES {
            self.sum[lane] += value - oldest[lane];
            self.squares[lane] += value * value - oldest[lane] * oldest[lane];
        }
        let doubtful = closes[bar] * CLOSE_SHARE;
        let size = if value.abs() > doubtful { value.abs() } else { doubtful };
        self.largest = if size > self.largest { size } else { self.largest };
        let (mut variances, mut distances) = ([0.0; LANES], [0.0; LANES]);
        let mut is_doubtful = false;
        for lane in 0..LANES {
            let (sum, squares) = (self.sum[lane], self.squares[lane]);
            let period = self.period.of_lane(lane);
            let mean = sum * period.inverse;
            let mean_square = squares * period.inverse;
            let variance = mean_square - mean * mean;
            // A smaller variance may be due to rounding.
            let varies = variance > STILL * mean_square;
            variances[lane] = if varies { variance } else { 0.0 };
            distances[lane] = if varies { value - mean } else { 0.0 };
            is_doubtful |= varies & (distances[lane].abs() <= self.doubt[lane] * self.largest);
        }
        if is_doubtful {
            self.decide(closes, bar, &mut distances);
        }
        let mut target = [0.0; LANES];
        for lane in 0..LANES {
            let (distance, variance) = (distances[lane], variances[lane]);
            let square = distance * distance;
            let side = if distance > 0.0 { 1.0 } else { -1.0 };
            let (direction, held) = if REVERSION {
                let near = square <= self.exit[lane] * variance;
                (-side, if near { 0.0 } else { position[lane] })
            } else {
                let crossed = position[lane] * distance < 0.0;
                (side, if crossed { 0.0 } else { position[lane] })
            };
            let far = square > self.entry[lane] * variance;
            let next = if far { direction } else { held };
            let full = SETTLED || sample >= self.period.of_lane(lane).length;
            target[lane] = if full { next } else { 0.0 };
        }
        target
    }
}
