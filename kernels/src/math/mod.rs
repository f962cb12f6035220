//! Elementary functions and random numbers with the same bits on every device.

mod dual;
mod exp;
mod ln;
mod normal;
mod philox;
mod polynomial;
mod real;
mod single;

pub(crate) use dual::{Dual, Number, PARAMETERS, RATE, SPOT, Term, VOLATILITY, YEARS};
pub use exp::exp;
pub use ln::ln;
pub(crate) use ln::ln_of_positive;
pub(crate) use normal::{OUTER, density_and_cdf, mills, quantile_central, quantile_tail};
pub use normal::{inverse_normal_cdf, normal_cdf, normal_density};
pub(crate) use philox::Keys;
pub(crate) use polynomial::estrin;
pub(crate) use real::Real;

#[cfg(test)]
mod accuracy;
