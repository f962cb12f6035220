//! Elementary functions with the same bits on every device.

mod ln;

pub use ln::ln;
pub(crate) use ln::ln_of_positive;
