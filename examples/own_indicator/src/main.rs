//! A warptape with an indicator of its own: Kaufman's efficiency ratio, as `efficiency(x, bars)` in formulas.

use std::process::ExitCode;

use warptape_stages::formulas::{Constant, Function, Window};

/// Distance that the series has come in so many bars, over the way that it has gone: 1 for a straight line.
struct Efficiency;

impl Function for Efficiency {
    fn name(&self) -> &'static str {
        "efficiency"
    }

    fn version(&self) -> u32 {
        1
    }

    fn series(&self) -> usize {
        1
    }

    fn constants(&self) -> &'static [Constant] {
        &[Constant::BARS]
    }

    fn state_len(&self, constants: &[f64]) -> usize {
        Window::state_len(constants[0] as usize + 1)
    }

    fn next(&self, _constants: &[f64], state: &mut [f64], series: &[f64]) -> f64 {
        let mut window = Window::of(state);
        window.push(series[0]);
        let (first, mut last, mut way) = (window.iter().next().unwrap_or(f64::NAN), f64::NAN, 0.0);
        for value in window.iter() {
            way += if last.is_nan() { 0.0 } else { (value - last).abs() };
            last = value;
        }
        // A window that is not full, or whose values are all equal, has none.
        if window.is_full() { (last - first).abs() / way } else { f64::NAN }
    }
}

fn main() -> ExitCode {
    warptape_pipeline::cli::main_with(&[&Efficiency], std::env::args_os())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_has_one() {
        let constants = [2.0];
        let mut state = vec![0.0; Efficiency.state_len(&constants)];
        let mut next = |value| Efficiency.next(&constants, &mut state, &[value]);
        assert!(next(1.0).is_nan() && next(2.0).is_nan());
        assert_eq!([next(3.0), next(2.0), next(1.0)], [1.0, 0.0, 1.0]);
    }
}
