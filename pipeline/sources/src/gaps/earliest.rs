//! The earliest ticks of what is fed.

use std::collections::HashMap;

use super::TickPlace;

/// The earliest tick of each symbol, by input.
#[derive(Clone, Debug, Default)]
pub struct EarliestTicks(Vec<HashMap<String, (i64, u64)>>);

impl EarliestTicks {
    /// Looks at the next tick.
    pub fn add(&mut self, place: TickPlace, symbol: &str, time_ns: i64) {
        if self.0.len() <= place.input {
            self.0.resize_with(place.input + 1, HashMap::new);
        }
        let of_input = &mut self.0[place.input];
        match of_input.get_mut(symbol) {
            Some(earliest) => *earliest = (*earliest).min((time_ns, place.line)),
            None => {
                of_input.insert(symbol.to_owned(), (time_ns, place.line));
            }
        }
    }

    /// Input, symbol, time and line of each, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &str, i64, u64)> {
        let of_inputs = self.0.iter().enumerate();
        of_inputs.flat_map(|(input, symbols)| {
            symbols.iter().map(move |(symbol, (time_ns, line))| (input, symbol.as_str(), *time_ns, *line))
        })
    }
}
