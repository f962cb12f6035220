//! The twin of the kernels that sort closed bars.

use crate::device::DeviceClosedBar;

/// Sorts closed bars by place, from 0 to `places` − 1, then by rank.
pub fn ordered(places: usize, closed: &[DeviceClosedBar]) -> Vec<DeviceClosedBar> {
    let mut begin = vec![0; places + 1];
    closed.iter().for_each(|bar| begin[bar.place as usize + 1] += 1);
    (0..places).for_each(|place| begin[place + 1] += begin[place]);
    let mut ordered = vec![DeviceClosedBar::default(); closed.len()];
    closed.iter().for_each(|bar| ordered[begin[bar.place as usize] + bar.rank as usize] = *bar);
    ordered
}
