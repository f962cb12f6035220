//! State and results of formulas under one specification of bars.

use crate::StageError;
use crate::bytes::{get_u32, get_u64, put_u32, put_u64};

use super::Program;

/// Numbers of state of each slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormulaSlab {
    /// Numbers of one slot.
    width: usize,
    numbers: Vec<f64>,
}

impl FormulaSlab {
    pub(crate) fn new(program: &Program) -> Self {
        Self { width: program.state_len(), numbers: Vec::new() }
    }

    pub(crate) fn resize(&mut self, slots: usize) {
        self.numbers.resize(slots * self.width, 0.0);
    }

    pub(crate) fn of_slot(&mut self, slot: usize) -> &mut [f64] {
        &mut self.numbers[slot * self.width..(slot + 1) * self.width]
    }

    pub(crate) fn copy_slot(&mut self, to: usize, from: &Self, slot: usize) {
        let width = self.width;
        self.of_slot(to).copy_from_slice(&from.numbers[slot * width..(slot + 1) * width]);
    }

    /// Appends the numbers. A configuration without formulas has no bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        if self.width > 0 {
            put_u32(out, self.width as u32);
            self.numbers.iter().for_each(|number| put_u64(out, canonical(*number).to_bits()));
        }
    }

    pub(crate) fn read(program: &Program, slots: usize, bytes: &mut &[u8]) -> Result<Self, StageError> {
        let mut slab = Self::new(program);
        if slab.width == 0 {
            return Ok(slab);
        }
        let found = get_u32(bytes, "width of formulas")? as usize;
        if found != slab.width {
            return Err(StageError::Damaged {
                found: format!("formulas with {found} numbers, not {}", slab.width),
            });
        }
        for _ in 0..slots * slab.width {
            slab.numbers.push(canonical(f64::from_bits(get_u64(bytes, "state of a formula")?)));
        }
        Ok(slab)
    }
}

/// The number, with one pattern for null: processors have several.
fn canonical(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number }
}
