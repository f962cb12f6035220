//! Formulas: indicators and alerts that a user defines by expressions, computed at each closed bar.
//!
//! ```text
//!   stages.formulas   spread_z = "zscore((ask - bid) / mid, 50)" ─┐ parse ─► Program ─► per symbol and specification:
//!   stages.alerts     wide     = "spread_z > 3"                  ─┘                     state, values, alerts, faults
//! ```
//!
//! They run on the host where signals are encoded, behind the lane's kernels: equal bits on every lane. All operations are
//! on doubles in the order of the expression. Functions keep their state in doubles, so snapshots need no code of theirs.

mod builtin;
mod compile;
mod function;
mod inputs;
mod parse;
mod program;
mod slab;

use std::collections::BTreeMap;

pub use builtin::BUILTIN;
pub use compile::signature;
pub use function::{Constant, Function, Registered, Window, register};
pub(crate) use inputs::inputs_of;
pub use inputs::{INPUTS, Input};
pub(crate) use program::{Computed, Occurred, Program};
pub(crate) use slab::FormulaSlab;

/// Greatest number of formulas, and of alerts.
pub const FORMULAS_MAX: usize = 32;

/// Functions in these texts that the program itself registered, with their versions.
pub fn functions_of<'a>(texts: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, u32> {
    let mut functions = BTreeMap::new();
    for text in texts {
        let Ok(expression) = parse::parse(text) else { continue };
        expression.visit_calls(&mut |name| {
            if let Some(function) = function::registered(name) {
                functions.insert(name.to_owned(), function.version());
            }
        });
    }
    functions
}

/// True if the text can name a formula or an alert: up to 64 letters, digits and `_`, in lower case, a letter first. Words
/// of the language cannot.
pub fn is_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    text.len() <= 64
        && !["and", "or", "not"].contains(&text)
        && text.bytes().next().is_some_and(is_letter)
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit() || byte == b'_')
}
