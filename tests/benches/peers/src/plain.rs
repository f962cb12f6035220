//! The plain loop: one thread, one slot for each symbol and length, nothing between the ticks and the arithmetic.

use crate::bars::{Averages, Bar, Row, Task, Tick, plain_row};

pub fn rows_of(task: &Task, ticks: &[Tick]) -> Vec<Row> {
    let symbols = ticks.iter().map(|tick| tick.symbol as usize + 1).max().unwrap_or(0);
    let mut rows = Vec::new();
    let mut series: Vec<_> = task
        .lengths_ns
        .iter()
        .map(|&length_ns| (length_ns, vec![(Bar::default(), Averages::new()); symbols]))
        .collect();
    let close = |(bar, averages): &mut (Bar, Averages), rows: &mut Vec<Row>| {
        if bar.trades > 0 {
            rows.push(if task.emas { averages.push(*bar, task.crossings) } else { plain_row(*bar) });
            bar.trades = 0;
        }
    };
    for tick in ticks.iter().filter(|tick| tick.is_trade) {
        for (length_ns, slots) in &mut series {
            let slot = &mut slots[tick.symbol as usize];
            if tick.time_ns >= slot.0.start_ns + *length_ns {
                close(slot, &mut rows);
            }
            slot.0.fold(tick, *length_ns);
        }
    }
    for (_, slots) in &mut series {
        slots.iter_mut().for_each(|slot| close(slot, &mut rows));
    }
    rows
}
