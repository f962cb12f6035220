//! Numbers with derivatives. Every result computed from them has its derivatives by the same parameters, exact up to
//! rounding. This is forward differentiation (Griewank and Walther, *Evaluating Derivatives*, 2008, chapter 3). The
//! values have the same bits as without derivatives.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::{Real, density_and_cdf};

/// A type of number for which formulas are written: a [`Real`], or one with derivatives.
pub(crate) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    /// The type of the value and of each derivative.
    type Part: Real;

    /// A number that depends on no parameter.
    fn constant(value: Self::Part) -> Self;
    /// Converts a term to this type: without derivatives, or with the first of them.
    fn of_term(term: &Term) -> Self;
    fn scaled(self, by: Self::Part) -> Self;
    fn value(self) -> Self::Part;
    fn sqrt(self) -> Self;
    fn exp(self) -> Self;
    /// `e^x − 1`.
    fn exp_less_1(self) -> Self;
    /// Natural logarithm of a positive, normal number.
    fn ln(self) -> Self;

    #[inline(always)]
    fn of(x: f64) -> Self {
        Self::constant(Self::Part::of(x))
    }

    #[inline(always)]
    fn greater(self, other: Self) -> Self {
        if self.value() > other.value() { self } else { other }
    }

    #[inline(always)]
    fn lesser(self, other: Self) -> Self {
        if self.value() < other.value() { self } else { other }
    }
}

/// Parameters on which constants of a simulation depend, in the order of their derivatives.
pub(crate) const SPOT: usize = 0;
pub(crate) const VOLATILITY: usize = 1;
pub(crate) const YEARS: usize = 2;
pub(crate) const RATE: usize = 3;
pub(crate) const PARAMETERS: usize = 4;

/// A value and its derivatives by the first parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dual<T, const N: usize> {
    pub value: T,
    pub by: [T; N],
}

/// A constant of a simulation.
pub(crate) type Term = Dual<f64, PARAMETERS>;

impl<T: Real, const N: usize> Dual<T, N> {
    /// A parameter itself, whose derivative by itself is 1.
    pub fn parameter(value: T, number: usize) -> Self {
        let mut by = [T::of(0.0); N];
        by[number] = T::of(1.0);
        Self { value, by }
    }

    #[inline(always)]
    fn map(self, value: T, derivative: T) -> Self {
        Self { value, by: self.by.map(|by| derivative * by) }
    }

    #[inline(always)]
    pub fn double(self) -> Dual<f64, N> {
        Dual { value: self.value.double(), by: self.by.map(T::double) }
    }
}

impl Default for Term {
    fn default() -> Self {
        Term::of(0.0)
    }
}

impl Term {
    /// Φ.
    pub fn normal_cdf(self) -> Self {
        let (density, cdf) = density_and_cdf(self.value);
        self.map(cdf, density)
    }
}

impl<T: Real, const N: usize> Number for Dual<T, N> {
    type Part = T;

    #[inline(always)]
    fn constant(value: T) -> Self {
        Self { value, by: [T::of(0.0); N] }
    }

    #[inline(always)]
    fn of_term(term: &Term) -> Self {
        Self { value: T::of(term.value), by: std::array::from_fn(|number| T::of(term.by[number])) }
    }

    #[inline(always)]
    fn scaled(self, by: T) -> Self {
        self.map(self.value * by, by)
    }

    #[inline(always)]
    fn value(self) -> T {
        self.value
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        self.map(root, T::of(0.5) / root)
    }

    #[inline(always)]
    fn exp(self) -> Self {
        let e = self.value.exp();
        self.map(e, e)
    }

    #[inline(always)]
    fn exp_less_1(self) -> Self {
        let e = self.value.exp_less_1();
        self.map(e, T::of(1.0) + e)
    }

    #[inline(always)]
    fn ln(self) -> Self {
        self.map(self.value.ln(), T::of(1.0) / self.value)
    }
}

impl<T: Real, const N: usize> Add for Dual<T, N> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let by = std::array::from_fn(|number| self.by[number] + other.by[number]);
        Self { value: self.value + other.value, by }
    }
}

impl<T: Real, const N: usize> Sub for Dual<T, N> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let by = std::array::from_fn(|number| self.by[number] - other.by[number]);
        Self { value: self.value - other.value, by }
    }
}

impl<T: Real, const N: usize> Mul for Dual<T, N> {
    type Output = Self;

    #[expect(clippy::suspicious_arithmetic_impl, reason = "derivatives")]
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let by = |number: usize| self.value * other.by[number] + other.value * self.by[number];
        Self { value: self.value * other.value, by: std::array::from_fn(by) }
    }
}

impl<T: Real, const N: usize> Div for Dual<T, N> {
    type Output = Self;

    #[expect(clippy::suspicious_arithmetic_impl, reason = "derivatives")]
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        let by = |number: usize| (self.by[number] - value * other.by[number]) / other.value;
        Self { value, by: std::array::from_fn(by) }
    }
}

impl<T: Real, const N: usize> Neg for Dual<T, N> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self { value: -self.value, by: self.by.map(|by| -by) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares derivatives with differences, for an expression with all operations.
    #[test]
    fn derivatives_are_those_of_what_is_computed() {
        let of = |x: [f64; PARAMETERS]| {
            let [spot, volatility, years, rate] =
                std::array::from_fn(|number| Term::parameter(x[number], number));
            let deviation = volatility * years.sqrt();
            let d = ((spot / Term::of(90.0)).ln() - -rate * years).scaled(2.0) / deviation;
            let product = d.greater(Term::of(0.1)) * rate.lesser(Term::of(0.5));
            product.exp() + product.scaled(0.3).exp_less_1() + d.normal_cdf()
        };
        let at = [100.0, 0.3, 1.5, 0.04];
        let found = of(at);
        for (number, by) in found.by.iter().enumerate() {
            let h = 1e-5 * at[number];
            let moved = |by: f64| {
                let mut x = at;
                x[number] += by;
                of(x).value
            };
            let difference = (moved(h) - moved(-h)) / (2.0 * h);
            assert!((by / difference - 1.0).abs() < 1e-7, "{number}: {by} instead of {difference}");
        }
        assert_eq!(<Dual<f32, 1> as Number>::of_term(&found).by, [found.by[0] as f32]);
    }
}
