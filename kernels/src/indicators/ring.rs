//! The last values of each slot, and sums over them.

/// The last `length` values of each slot, zeros before there are that many.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    pub length: usize,
    /// By slot: where the next value goes, the number of values so far modulo the length.
    next: Vec<u32>,
    /// By slot, then by position.
    values: Vec<T>,
}

impl<T: Copy + Default> Ring<T> {
    pub fn new(length: u32) -> Self {
        Self { length: length as usize, next: Vec::new(), values: Vec::new() }
    }

    pub fn resize(&mut self, slots: usize) {
        self.next.resize(slots, 0);
        self.values.resize(slots * self.length, T::default());
    }

    /// Puts a value in the place of the oldest, which is returned.
    #[inline(always)]
    pub fn push(&mut self, slot: usize, value: T) -> T {
        let next = self.next[slot] as usize;
        let place = &mut self.values[slot * self.length + next];
        let oldest = std::mem::replace(place, value);
        self.next[slot] = if next + 1 == self.length { 0 } else { next as u32 + 1 };
        oldest
    }

    /// The values of a slot, in the order of their positions: which is oldest depends on how many there were.
    #[inline(always)]
    pub fn window(&self, slot: usize) -> &[T] {
        &self.values[slot * self.length..][..self.length]
    }

    /// The newest `count` values of a slot, oldest first.
    pub fn newest(&self, slot: usize, count: usize) -> impl Iterator<Item = T> + '_ {
        let window = self.window(slot);
        let start = self.next[slot] as usize + self.length - count;
        (0..count).map(move |position| window[(start + position) % self.length])
    }

    /// Sets where a slot's next value goes, from how many values it has had.
    pub fn seek(&mut self, slot: usize, values: i64) {
        self.next[slot] = (values % self.length as i64) as u32;
    }
}

/// Independent sums, so that additions overlap. Part of the results' definition.
const ACCUMULATORS: usize = 4;

/// Σ(v − origin) and Σ(v − origin)² over a window: value i goes to accumulator i mod 4, then (0+2) + (1+3).
#[inline(always)]
pub(crate) fn sums_from(window: &[f64], origin: f64) -> (f64, f64) {
    let mut sums = [0.0; ACCUMULATORS];
    let mut squares = [0.0; ACCUMULATORS];
    let (chunks, rest) = window.as_chunks::<ACCUMULATORS>();
    for chunk in chunks {
        for lane in 0..ACCUMULATORS {
            let distance = chunk[lane] - origin;
            sums[lane] += distance;
            squares[lane] += distance * distance;
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        let distance = value - origin;
        sums[lane] += distance;
        squares[lane] += distance * distance;
    }
    (total(sums), total(squares))
}

/// Σv over a window, of the same shape.
#[inline(always)]
pub(crate) fn sum(window: &[f64]) -> f64 {
    let mut sums = [0.0; ACCUMULATORS];
    let (chunks, rest) = window.as_chunks::<ACCUMULATORS>();
    for chunk in chunks {
        for lane in 0..ACCUMULATORS {
            sums[lane] += chunk[lane];
        }
    }
    for (lane, value) in rest.iter().enumerate() {
        sums[lane] += value;
    }
    total(sums)
}

#[inline(always)]
fn total(sums: [f64; ACCUMULATORS]) -> f64 {
    (sums[0] + sums[2]) + (sums[1] + sums[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_keeps_the_last_values_of_each_slot() {
        let mut ring = Ring::new(3);
        ring.resize(2);
        for value in 1..=5 {
            let oldest = ring.push(1, value);
            assert_eq!(oldest, (value - 3).max(0));
        }
        assert_eq!(ring.newest(1, 3).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(ring.newest(1, 2).collect::<Vec<_>>(), [4, 5]);
        assert_eq!(ring.window(1), [4, 5, 3]);
        assert_eq!(ring.window(0), [0, 0, 0]);
        ring.seek(0, 5);
        assert_eq!(ring.push(0, 7), 0);
        assert_eq!(ring.window(0), [0, 0, 7]);
    }

    #[test]
    fn sums_include_what_does_not_fill_a_chunk() {
        for length in 0..14 {
            let window: Vec<f64> = (0..length).map(f64::from).collect();
            let distances: Vec<f64> = window.iter().map(|value| value - 3.0).collect();
            let squares = distances.iter().map(|distance| distance * distance);
            assert_eq!(sums_from(&window, 3.0), (distances.iter().sum(), squares.sum()));
            assert_eq!(sum(&window), window.iter().sum());
        }
    }
}
