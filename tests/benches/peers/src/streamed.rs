//! Renoir: one source, tumbling windows by event time for each symbol, spread over the threads by symbol.
//!
//! Renoir begins a window at the time of its first tick. Ticks therefore have the start of their bar as their time.

use renoir::prelude::*;

use crate::bars::{Averages, Bar, Row, Task, Tick, plain_row};

pub fn rows_of(task: &Task, ticks: Vec<Tick>, threads: u64) -> Vec<Row> {
    let config = RuntimeConfig::local(threads).expect("a number of threads");
    let context = StreamContext::new(config);
    let trades = context.stream_iter(ticks.into_iter()).filter(|tick| tick.is_trade);
    let outputs: Vec<_> = trades
        .split(task.lengths_ns.len())
        .into_iter()
        .zip(&task.lengths_ns)
        .map(|(trades, &length_ns)| {
            let (emas, crossings) = (task.emas, task.crossings);
            let mut open_ns = i64::MIN;
            trades
                .add_timestamps(
                    move |tick| tick.time_ns.div_euclid(length_ns) * length_ns,
                    // A watermark comes with the first tick of each bar.
                    move |_, &start_ns| {
                        (start_ns > open_ns).then(|| {
                            open_ns = start_ns;
                            start_ns
                        })
                    },
                )
                .group_by(|tick| tick.symbol)
                .window(EventTimeWindow::tumbling(length_ns))
                .fold(Bar::default(), move |bar: &mut Bar, tick: &Tick| bar.fold(tick, length_ns))
                .rich_map({
                    let mut averages = Averages::new();
                    move |(_, bar)| if emas { averages.push(bar, crossings) } else { plain_row(bar) }
                })
                .drop_key()
                .collect_vec()
        })
        .collect();
    context.execute_blocking();
    outputs.into_iter().flat_map(|output| output.get().expect("the collected bars")).collect()
}
