//! The earliest ticks of a feed.

use std::collections::HashMap;

use super::TickPlace;

/// The earliest tick of each symbol, by input.
#[derive(Clone, Debug, Default)]
pub struct EarliestTicks(Vec<HashMap<String, EarliestTick>>);

/// The earliest tick of a symbol.
#[derive(Clone, Copy, Debug)]
pub struct EarliestTick {
    /// Time of the tick, in nanoseconds.
    pub time_ns: i64,
    /// Line or record of the tick.
    pub line: u64,
    /// Number of ticks of the symbol.
    pub ticks: u64,
}

impl EarliestTicks {
    /// Adds the next tick.
    pub fn add(&mut self, place: TickPlace, symbol: &str, time_ns: i64) {
        if self.0.len() <= place.input {
            self.0.resize_with(place.input + 1, HashMap::new);
        }
        let of_input = &mut self.0[place.input];
        match of_input.get_mut(symbol) {
            Some(earliest) => {
                earliest.ticks += 1;
                if (time_ns, place.line) < (earliest.time_ns, earliest.line) {
                    (earliest.time_ns, earliest.line) = (time_ns, place.line);
                }
            }
            None => {
                of_input.insert(symbol.to_owned(), EarliestTick { time_ns, line: place.line, ticks: 1 });
            }
        }
    }

    /// Returns input, symbol and tick of each entry, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str, EarliestTick)> {
        let of_inputs = self.0.iter().enumerate();
        of_inputs.flat_map(|(input, symbols)| {
            symbols.iter().map(move |(symbol, earliest)| (input, symbol.as_str(), *earliest))
        })
    }
}
