//! Mean-variance optimisation against solutions in 50 digits, written by `tests/scripts/make_portfolio_fixtures.py`,
//! and against the conditions that an optimum meets.

use std::io::Read;
use std::path::Path;

use warptape_kernels::Isa;
use warptape_kernels::portfolio::Covariance;
use warptape_stages::risk::optimisation::{MeanVariance, Objective, OptimisationError, Optimum};

struct Case {
    covariance: Covariance,
    means: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
    budget: f64,
    objective: Objective,
}

impl Case {
    fn solve(&self) -> Result<Optimum, OptimisationError> {
        let Self { covariance, means, lower, upper, budget, objective } = self;
        MeanVariance { covariance, means, lower, upper, budget: *budget, objective: *objective }.solve()
    }

    /// Greatest violation of the conditions of Karush, Kuhn and Tucker. With the right multipliers of budget and
    /// target, the cost rises at lower bounds, falls at upper bounds, and is flat between them.
    fn residual(&self, weights: &[f64]) -> f64 {
        let (aversion, linear) = match self.objective {
            Objective::RiskAversion(aversion) => (aversion, -1.0),
            Objective::TargetReturn(_) => (1.0, 0.0),
        };
        let products = self.covariance.product(weights);
        let slope: Vec<f64> = products
            .iter()
            .zip(&self.means)
            .map(|(product, mean)| aversion * product + linear * mean)
            .collect();
        let scale = slope.iter().fold(1e-300_f64, |most, slope| most.max(slope.abs()));
        let is_at = |asset: usize, bound: &[f64]| (weights[asset] - bound[asset]).abs() < 1e-7;
        let free: Vec<usize> = (0..weights.len())
            .filter(|&asset| !is_at(asset, &self.lower) && !is_at(asset, &self.upper))
            .collect();
        // Least squares for `slope = budget + target·mean` over the free assets.
        let has_target = matches!(self.objective, Objective::TargetReturn(_));
        let average =
            |of: &dyn Fn(usize) -> f64| free.iter().map(|i| of(*i)).sum::<f64>() / free.len() as f64;
        let (mean, level) = (average(&|i| self.means[i]), average(&|i| slope[i]));
        let spread = average(&|i| (self.means[i] - mean) * (self.means[i] - mean));
        let target = if has_target && free.len() > 1 {
            average(&|i| (self.means[i] - mean) * (slope[i] - level)) / spread
        } else {
            0.0
        };
        let excess = |i: usize| slope[i] - level - target * (self.means[i] - mean);
        // With a single free asset and a target the multipliers are not determined: the fixture alone tells the
        // solution.
        if free.is_empty() || (has_target && free.len() < 2) {
            return 0.0;
        }
        let missed = |i: usize| {
            if is_at(i, &self.lower) {
                -excess(i)
            } else if is_at(i, &self.upper) {
                excess(i)
            } else {
                excess(i).abs()
            }
        };
        (0..weights.len()).map(|i| missed(i) / scale).fold(0.0, f64::max)
    }
}

fn cases() -> Vec<(Case, Vec<f64>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/optimisation.csv.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the fixture is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it is text");
    let case = |line: &str| {
        let numbers: Vec<f64> = line.split(',').map(|number| number.parse().expect("a number")).collect();
        let (n, mut rest) = (numbers[0] as usize, numbers[4..].iter().copied());
        let mut take = |count| rest.by_ref().take(count).collect::<Vec<f64>>();
        let (means, lower, upper) = (take(n), take(n), take(n));
        let covariance = Covariance::new(n, take(n * n)).expect("positive");
        let target = numbers[3];
        let objective = if target.is_nan() {
            Objective::RiskAversion(numbers[1])
        } else {
            Objective::TargetReturn(target)
        };
        (Case { covariance, means, lower, upper, budget: numbers[2], objective }, take(n))
    };
    text.lines().map(case).collect()
}

#[test]
fn weights_are_those_of_the_fixtures() {
    let (mut worst, mut worst_residual, mut worst_sum) = (0.0_f64, 0.0_f64, 0.0_f64);
    let cases = cases();
    assert_eq!(cases.len(), 40);
    for (case, expected) in &cases {
        let found = case.solve().expect("feasible");
        for (weight, expected) in found.weights.iter().zip(expected) {
            worst = worst.max((weight - expected).abs());
        }
        worst_residual = worst_residual.max(case.residual(&found.weights));
        worst_sum = worst_sum.max((found.weights.iter().sum::<f64>() - case.budget).abs());
        if let Objective::TargetReturn(target) = case.objective {
            worst_sum = worst_sum.max((found.mean - target).abs());
        }
        // The conditions do detect errors: a little more of one asset and less of another is no optimum.
        let mut other = found.weights.clone();
        let step = 1e-4;
        (other[0], other[1]) = (other[0] + step, other[1] - step);
        let is_within = |i: usize| other[i] > case.lower[i] + 1e-3 && other[i] < case.upper[i] - 1e-3;
        if matches!(case.objective, Objective::RiskAversion(_)) && is_within(0) && is_within(1) {
            assert!(case.residual(&other) > 1e-7);
        }
        assert_eq!(case.solve().expect("feasible"), found, "the same bits");
    }
    println!("weights {worst:e}, conditions {worst_residual:e}, sums {worst_sum:e}");
    assert!(
        worst < 1e-8 && worst_residual < 1e-8 && worst_sum < 1e-10,
        "{worst:e} {worst_residual:e} {worst_sum:e}"
    );
}

fn two_assets() -> Case {
    Case {
        covariance: Covariance::new(2, vec![0.04, 0.01, 0.01, 0.09]).expect("positive"),
        means: vec![0.05, 0.1],
        lower: vec![0.0; 2],
        upper: vec![1.0; 2],
        budget: 1.0,
        objective: Objective::RiskAversion(3.0),
    }
}

#[test]
fn what_has_no_solution_says_why() {
    let error = |case: Case| case.solve().unwrap_err();
    assert_eq!(
        error(Case { upper: vec![0.4; 2], ..two_assets() }).to_string(),
        "budget is 1, but within bounds and budget it is from 0 to 0.8: change one of them"
    );
    assert_eq!(
        error(Case { objective: Objective::TargetReturn(0.11), ..two_assets() }).to_string(),
        "target_return is 0.11, but within bounds and budget it is from 0.05 to 0.1: change one of them"
    );
    let indefinite = Covariance::new(2, vec![0.04, 0.08, 0.08, 0.09]).expect("symmetric");
    let refused = error(Case { covariance: indefinite, ..two_assets() });
    assert!(matches!(refused, OptimisationError::Covariance(_)), "{refused}");
    let crossed = error(Case { lower: vec![0.0, 1.5], ..two_assets() });
    assert!(
        matches!(crossed, OptimisationError::Parameter { field: "upper", asset: Some(1), .. }),
        "{crossed}"
    );
    let missing = error(Case { means: vec![0.1], ..two_assets() });
    assert!(
        matches!(missing, OptimisationError::Shape { field: "means", count: 1, expected: 2 }),
        "{missing}"
    );
    for value in [f64::NAN, f64::INFINITY, 0.0] {
        let refused = error(Case { objective: Objective::RiskAversion(value), ..two_assets() });
        assert!(matches!(refused, OptimisationError::Parameter { field: "risk_aversion", .. }), "{refused}");
    }
    let none = Covariance::new(0, Vec::new()).expect("empty");
    let (means, lower, upper) = (Vec::new(), Vec::new(), Vec::new());
    let refused = error(Case { covariance: none, means, lower, upper, ..two_assets() });
    assert_eq!(refused, OptimisationError::Assets { assets: 0 });
}

#[test]
fn edges_are_solved() {
    let solve = |case: Case| case.solve().expect("feasible").weights;
    let near = |found: Vec<f64>, expected: &[f64]| {
        let error = found.iter().zip(expected).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
        assert!(error < 1e-8, "{found:?} for {expected:?}");
    };
    // One point, or one line.
    near(solve(Case { upper: vec![0.5; 2], ..two_assets() }), &[0.5, 0.5]);
    near(solve(Case { lower: vec![0.3, 0.0], upper: vec![0.3, 1.0], ..two_assets() }), &[0.3, 0.7]);
    near(solve(Case { objective: Objective::TargetReturn(0.1), ..two_assets() }), &[0.0, 1.0]);
    near(solve(Case { objective: Objective::TargetReturn(0.06), ..two_assets() }), &[0.8, 0.2]);
    // Equal means leave the least variance: 0.08 to 0.03.
    let even = Case { means: vec![0.1; 2], objective: Objective::TargetReturn(0.1), ..two_assets() };
    near(solve(even), &[8.0 / 11.0, 3.0 / 11.0]);
    // Nothing varies, so that everything goes to the better asset.
    let still = Covariance::new(2, vec![0.0; 4]).expect("positive");
    near(solve(Case { covariance: still, ..two_assets() }), &[0.0, 1.0]);
    // Returns of a day are small numbers, and two of three assets are the same one.
    let returns = [0.001, 0.001, -0.002, -0.002, -0.002, 0.001, 0.003, 0.003, 0.0015, -0.001, -0.001, 0.002];
    let covariance = Covariance::sample(Isa::detect(), 3, &returns).expect("finite");
    let case = Case {
        covariance,
        means: vec![1e-4, 1e-4, 1.1e-4],
        lower: vec![0.0; 3],
        upper: vec![1.0; 3],
        budget: 1.0,
        objective: Objective::RiskAversion(2.0),
    };
    let found = case.solve().expect("feasible");
    assert!(case.residual(&found.weights) < 1e-6, "{found:?}");
}
