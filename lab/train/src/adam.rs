//! The Adam optimiser (Kingma and Ba, 2015), with moments that a checkpoint can save and restore.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

#[derive(Debug)]
pub(crate) struct Adam {
    pub(crate) updates: u64,
    pub(crate) learning_rate: f64,
    /// First and second moment of each variable's gradient.
    pub(crate) moments: Vec<[Tensor; 2]>,
    /// β to the power of the number of updates, for each of the two moments.
    pub(crate) powers: [f64; 2],
}

impl Adam {
    pub(crate) fn new(vars: &[Var], learning_rate: f64) -> Result<Self> {
        let zeros = |var: &Var| Ok([var.zeros_like()?, var.zeros_like()?]);
        let moments = vars.iter().map(zeros).collect::<Result<_>>()?;
        Ok(Self { updates: 0, learning_rate, moments, powers: [1.0; 2] })
    }

    pub(crate) fn step(&mut self, vars: &[Var], gradients: &GradStore) -> Result<()> {
        self.updates += 1;
        self.powers = [self.powers[0] * BETA_1, self.powers[1] * BETA_2];
        let [first_scale, second_scale] = self.powers.map(|power| 1.0 / (1.0 - power));
        for (var, [first, second]) in vars.iter().zip(&mut self.moments) {
            let Some(gradient) = gradients.get(var) else { continue };
            // The gradient is detached, so that it does not join the graph of the next gradient.
            let gradient = gradient.detach();
            *first = ((&*first * BETA_1)? + (&gradient * (1.0 - BETA_1))?)?;
            *second = ((&*second * BETA_2)? + (gradient.sqr()? * (1.0 - BETA_2))?)?;
            let root = ((&*second * second_scale)?.sqrt()? + EPSILON)?;
            let change = ((&*first * (first_scale * self.learning_rate))? / root)?;
            var.set(&(var.as_tensor().detach() - change)?)?;
        }
        Ok(())
    }
}
