//! Random rows as the host side makes them: without late trades, and with watermark rows where the watermark crosses a
//! boundary.

use warptape_kernels::{ABSENT, Aggressor, BarSpec, BySide, ClosedBars, Rows};

/// Pseudorandom numbers from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Numbers {
    state: u64,
}

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// A number between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Parameters of the rows.
#[derive(Clone, Debug)]
pub struct Market {
    pub seed: u64,
    pub slots: u32,
    pub ticks: usize,
    pub allowed_lateness_ns: i64,
    pub specs: Vec<BarSpec>,
}

impl Market {
    /// Trades and quotes of random walks, about 10 per second of event time over all slots. Every fourth seed gives
    /// many more, most of them quotes.
    pub fn rows(&self) -> Rows {
        let mut numbers = Numbers::new(self.seed);
        let mut prices: Vec<i64> =
            (0..self.slots).map(|slot| 1_000_000_000 * (10 + 37 * i64::from(slot))).collect();
        let is_dense = self.seed.is_multiple_of(4);
        let mut rows = Rows::default();
        let (mut now_ns, mut latest_ns, mut watermark_ns) =
            (1_723_000_000_000_000_000_i64, i64::MIN, i64::MIN);
        for tick in 0..self.ticks {
            now_ns += numbers.below(if is_dense { 5_000_000 } else { 200_000_000 }) as i64;
            // A few ticks are out of order, some of them late; a few have the same time as others.
            let behind_ns = match numbers.below(10) {
                0..=6 => 0,
                7..=8 => numbers.below(1 + self.allowed_lateness_ns as u64) as i64,
                _ => numbers.below(1 + 2 * self.allowed_lateness_ns as u64) as i64,
            };
            let time_ns = (now_ns - behind_ns) / 50_000_000 * 50_000_000;
            if time_ns < watermark_ns {
                continue;
            }
            let (offset, index) = (tick as i64 / 8, tick as u32 % 8);
            latest_ns = latest_ns.max(time_ns);
            let before_ns = std::mem::replace(&mut watermark_ns, latest_ns - self.allowed_lateness_ns);
            let crossed = self.specs.iter().any(|spec| match spec {
                BarSpec::Time { interval_ns } => {
                    before_ns.div_euclid(*interval_ns) != watermark_ns.div_euclid(*interval_ns)
                }
                BarSpec::Ticks { .. } | BarSpec::Volume { .. } => false,
            });
            if crossed && numbers.below(20) == 0 {
                rows.push_cut(watermark_ns, 0, offset, index);
            } else if crossed {
                rows.push_watermark(watermark_ns, offset, index);
            }
            let slot = numbers.below(self.slots.into()) as u32;
            let price = &mut prices[slot as usize];
            *price = (*price + (numbers.below(2_000_001) as i64 - 1_000_000) * 3).max(1_000_000);
            match numbers.below(8) {
                number if number == 0 || is_dense && number > 2 => {
                    // Some quotes have a side without orders, no sizes, or sizes in other units.
                    let side = |numbers: &mut Numbers, price: i64| match numbers.below(6) {
                        0 => (0, ABSENT),
                        1 => (price, 0),
                        _ => (price, 1 + numbers.below(1_000_000_000_000) as i64),
                    };
                    let (bid, bid_size) = side(&mut numbers, *price - 10);
                    let (ask, ask_size) = side(&mut numbers, *price + 10);
                    let exponent = numbers.below(20).saturating_sub(10) as u32;
                    rows.push_quote_of(
                        slot,
                        time_ns,
                        [bid, ask],
                        ([bid_size, ask_size], exponent),
                        offset,
                        index,
                    )
                }
                1 => rows.push_barrier(tick as i64, offset, index),
                _ => {
                    let size_e9 = numbers.below(3_000_000_000) as i64;
                    let aggressor =
                        [Aggressor::Unknown, Aggressor::Buyer, Aggressor::Seller][numbers.below(3) as usize];
                    rows.push_trade_of(slot, time_ns, *price, (size_e9, 0, aggressor), offset, index);
                }
            }
        }
        rows
    }
}

/// Bars of random walks, one per slot and time, as one list of closed bars for each of `bars` times.
pub fn closed_bars(seed: u64, slots: u32, bars: usize) -> Vec<ClosedBars> {
    let mut numbers = Numbers::new(seed);
    let mut closes: Vec<i64> = (0..slots).map(|slot| 1_000_000_000 * (1 + 61 * i64::from(slot))).collect();
    (0..bars)
        .map(|bar| {
            let mut closed = ClosedBars::default();
            for slot in 0..slots {
                let open = closes[slot as usize];
                let step = open as f64 * 0.002 * (numbers.unit() + numbers.unit() - 1.0);
                let close = (open + step as i64).max(1_000);
                closes[slot as usize] = close;
                let reach = open / 2000 + 1;
                let high = open.max(close) + numbers.below(reach as u64) as i64;
                let low = (open.min(close) - numbers.below(reach as u64) as i64).max(1);
                let volume = i128::from(1_000_000 + numbers.below(5_000_000_000));
                push(&mut closed, slot, bar as i64, [open, high, low, close], volume);
            }
            closed
        })
        .collect()
}

/// Adds a bar whose trades were all at the mean of high and low.
pub fn push(
    closed: &mut ClosedBars,
    slot: u32,
    bar: i64,
    [open, high, low, close]: [i64; 4],
    volume_e9: i128,
) {
    closed.slot.push(slot);
    closed.start_ns.push(bar * 1_000_000_000);
    closed.end_ns.push((bar + 1) * 1_000_000_000);
    closed.open_e9.push(open);
    closed.high_e9.push(high);
    closed.low_e9.push(low);
    closed.close_e9.push(close);
    closed.volume_e9.push(volume_e9);
    closed.notional_e18.push(volume_e9 * ((i128::from(high) + i128::from(low)) / 2));
    closed.trades.push(1);
    closed.bid_price_e9.push(0);
    closed.ask_price_e9.push(0);
    closed.by_side.push(BySide::default());
    closed.quote_sizes_e9.push([0; 2]);
    closed.is_cut.push(false);
    closed.offset.push(bar);
    closed.index.push(slot);
    closed.row.push(slot);
}
