//! The work of the kernels on closed bars, on the host.

use crate::device::DeviceClosedBar;

/// The closed bars of this many places, in order.
pub fn ordered(places: usize, closed: &[DeviceClosedBar]) -> Vec<DeviceClosedBar> {
    let mut begin = vec![0; places + 1];
    closed.iter().for_each(|bar| begin[bar.place as usize + 1] += 1);
    (0..places).for_each(|place| begin[place + 1] += begin[place]);
    let mut ordered = vec![DeviceClosedBar::default(); closed.len()];
    closed.iter().for_each(|bar| ordered[begin[bar.place as usize] + bar.rank as usize] = *bar);
    ordered
}
