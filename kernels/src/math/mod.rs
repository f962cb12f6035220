//! Elementary functions and random numbers with the same bits on every device.

mod dual;
mod exp;
mod ln;
mod normal;
mod philox;
mod polynomial;
mod real;
mod single;
mod sobol;

pub(crate) use dual::{Dual, Number, PARAMETERS, RATE, SPOT, Term, VOLATILITY, YEARS};
pub(crate) use exp::Exp;
pub use exp::exp;
pub use ln::ln;
pub(crate) use ln::{Quotient, ln_of_positive};
pub(crate) use normal::{
    INVERSE_SQRT_TWO_PI, MILLS_MIN, Mills, OUTER, density_and_cdf, mills, quantile_central, quantile_tail,
};
pub use normal::{inverse_normal_cdf, normal_cdf, normal_density};
pub(crate) use philox::Keys;
pub(crate) use polynomial::{estrin, value_and_slope};
pub(crate) use real::Real;
pub(crate) use sobol::{Directions, SOBOL_DIMENSIONS, coordinate, directions};

#[cfg(test)]
mod accuracy;
