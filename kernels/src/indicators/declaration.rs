//! Derivations from the table of indicators: columns, parameters with their settings, kept values, and the names for
//! the CUDA twins. This module must not know any indicator.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::table::{Indicator, IndicatorParams, KEPT, Kept, ROWS};

/// The unit of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Units of price: prices, and differences of prices.
    Price,
    /// A number without a unit: a share, a percentage, a number of deviations.
    Number,
}

/// A parameter of an indicator.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name of the parameter: that of its field in [`IndicatorParams`].
    pub key: &'static str,
    /// Name of the parameter among all settings.
    pub path: &'static str,
    /// Letter in formulas; empty if the letter of the next parameter stands for both.
    pub letter: &'static str,
    /// Its default.
    pub default: f64,
    /// The least allowed value. It may be 0 only for the first parameter of an indicator; then 0 turns the indicator
    /// off.
    pub min: f64,
    /// The greatest allowed value.
    pub max: f64,
    /// True if the parameter is a window: a whole number of closed bars.
    pub is_window: bool,
    /// Purpose of the parameter, in one sentence.
    pub about: &'static str,
}

/// Columns of one formula, which share a row in the documentation.
pub(super) struct IndicatorRow {
    pub columns: &'static [Indicator],
    pub parameters: &'static [Parameter],
    /// Number of closed bars from which on the indicator has a value.
    pub from_bar: &'static str,
    pub formula: &'static str,
    /// Seeds and conventions.
    pub convention: &'static str,
}

impl IndicatorRow {
    /// True if the indicator may be off.
    const fn may_be_off(&self) -> bool {
        matches!(self.parameters.first(), Some(first) if first.min == 0.0)
    }
}

/// Number of columns of the rows that are always on, which come first.
pub(super) const fn columns_always(rows: &[IndicatorRow]) -> usize {
    let (mut columns, mut number) = (0, 0);
    while number < rows.len() {
        if rows[number].may_be_off() {
            assert!(rows[number].parameters[0].default == 0.0, "what may be off is off by default");
        } else {
            assert!(number == 0 || !rows[number - 1].may_be_off(), "what may be off is declared last");
            columns += rows[number].columns.len();
        }
        number += 1;
    }
    columns
}

impl IndicatorParams {
    /// True if the indicator is off: it never has a value.
    pub fn is_off(&self, indicator: Indicator) -> bool {
        let has = |key: &str| self.on().any(|(parameter, _)| parameter.key == key);
        let row = ROWS.iter().find(|row| row.columns.contains(&indicator));
        row.and_then(|row| row.parameters.first()).is_some_and(|first| !has(first.key))
    }

    /// True if any indicator that may be off is on.
    pub(super) fn has_further(&self) -> bool {
        self.on().any(|(parameter, _)| parameter.min == 0.0)
    }

    /// Parameters with these values. Indicators that are off get their defaults, because their values have no effect.
    pub fn from_values(value: impl Fn(&Parameter) -> f64) -> Self {
        let of_row = |row: &'static IndicatorRow| {
            let is_off = row.parameters.first().is_some_and(|first| value(first) == 0.0);
            let value = |parameter: &Parameter| if is_off { parameter.default } else { value(parameter) };
            row.parameters.iter().map(value).collect::<Vec<f64>>()
        };
        Self::of_values(&mut ROWS.iter().flat_map(of_row))
    }

    /// Parameters of the indicators that are on, with their values.
    pub(super) fn on(&self) -> impl Iterator<Item = (&'static Parameter, f64)> {
        let mut values = self.values().into_iter();
        ROWS.iter().flat_map(move |row| {
            let of_row: Vec<_> = row.parameters.iter().zip(values.by_ref()).collect();
            let is_off = of_row.first().is_some_and(|(_, value)| *value == 0.0);
            if is_off { Vec::new() } else { of_row }
        })
    }

    /// Windows of the indicators that are on, by their keys.
    pub(super) fn windows(&self) -> impl Iterator<Item = (&'static str, u32)> {
        self.on()
            .filter(|(parameter, _)| parameter.is_window)
            .map(|(parameter, value)| (parameter.key, value as u32))
    }

    /// Number of kept values of each [`Kept`]; 0 if its indicator is off.
    pub(super) fn kept_lengths(&self) -> [u32; KEPT] {
        let length = |key| self.windows().find(|(window, _)| *window == key).map_or(0, |(_, length)| length);
        Kept::WINDOWS.map(length)
    }
}

/// The rows of the table in `docs/indicators.md`, in Markdown.
pub fn documented_indicators() -> String {
    let row = |row: &IndicatorRow| {
        let columns: Vec<String> = row.columns.iter().map(|column| format!("`{}`", column.name())).collect();
        let parameters: Vec<String> = row.parameters.iter().map(documented_parameter).collect();
        let cells = [
            columns.join(", "),
            parameters.join(", "),
            row.from_bar.to_owned(),
            row.formula.to_owned(),
            row.convention.to_owned(),
        ];
        let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
        format!("|{}\n", cells.iter().map(cell).collect::<String>())
    };
    ROWS.iter().map(row).collect()
}

fn documented_parameter(parameter: &Parameter) -> String {
    let Parameter { key, default, letter, min, .. } = parameter;
    let off = if *min == 0.0 { ": off" } else { "" };
    let equals = if letter.is_empty() { "" } else { " = " };
    format!("`{key}` ({default}{off}){equals}{letter}")
}

/// Omits indicators that are off, so that configurations recorded before an indicator existed stay the same.
impl Serialize for IndicatorParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (parameter, value) in self.on() {
            if parameter.is_window {
                map.serialize_entry(parameter.key, &(value as u32))?;
            } else {
                map.serialize_entry(parameter.key, &value)?;
            }
        }
        map.end()
    }
}

/// Generates all following items from the table: [`super::table`] describes the form of a row.
macro_rules! indicators {
    ($({
        columns: [$($column:ident: $name:ident, $unit:ident, $column_about:literal);+ $(;)?],
        parameters: [$($key:ident: $type:ident = $default:literal in $min:literal..=$max:expr, $letter:literal, $about:literal);* $(;)?],
        keeps: [$($kept:ident: $window:ident),*],
        from_bar: $from_bar:literal,
        formula: $formula:literal,
        convention: $convention:literal,
    })+) => {
        /// The columns, in their order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Indicator {
            $($(#[doc = $column_about] $column,)+)+
        }

        impl Indicator {
            /// Number of the column among those of indicators that may be off; it must be one of these.
            #[inline(always)]
            pub(super) const fn further(self) -> usize {
                self as usize - ALWAYS
            }

            /// All columns, in their order.
            pub const ALL: [Self; INDICATORS] = [$($(Self::$column,)+)+];

            /// Name of the column in signals.
            pub const fn name(self) -> &'static str {
                match self {
                    $($(Self::$column => stringify!($name),)+)+
                }
            }

            /// Description of the column, in one sentence.
            pub const fn about(self) -> &'static str {
                match self {
                    $($(Self::$column => $column_about,)+)+
                }
            }

            /// True if the values are prices or differences of prices.
            pub fn is_price(self) -> bool {
                let unit = match self {
                    $($(Self::$column => Unit::$unit,)+)+
                };
                unit == Unit::Price
            }
        }

        /// Number of indicator columns.
        pub const INDICATORS: usize = [$($(Indicator::$column,)+)+].len();

        /// Number of columns that are always computed; they come first.
        pub(super) const ALWAYS: usize = columns_always(ROWS);

        /// Number of columns of indicators that may be off; they are the others.
        pub(super) const FURTHER: usize = INDICATORS - ALWAYS;

        /// Quantities whose values an indicator keeps for each slot's last bars.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(super) enum Kept {
            $($($kept,)*)*
            /// End of the list: its number is the number of quantities.
            End,
        }

        /// Number of variants of [`Kept`].
        pub(super) const KEPT: usize = Kept::End as usize;

        impl Kept {
            /// Key of the window that determines the number of kept values, for each [`Kept`].
            pub(super) const WINDOWS: [&'static str; KEPT] = [$($(stringify!($window),)*)*];
        }

        /// Parameters of the indicators: windows are in closed bars.
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct IndicatorParams {
            $($(#[doc = $about] pub $key: $type,)*)*
        }

        impl Default for IndicatorParams {
            fn default() -> Self {
                Self { $($($key: $default,)*)* }
            }
        }

        impl IndicatorParams {
            /// Values in the order of [`PARAMETERS`].
            pub(super) fn values(&self) -> [f64; PARAMETERS.len()] {
                [$($(f64::from(self.$key),)*)*]
            }

            /// Parameters with values in the order of [`PARAMETERS`].
            pub(super) fn of_values(values: &mut dyn Iterator<Item = f64>) -> Self {
                let mut next = || values.next().expect("each parameter has a value");
                Self { $($($key: next() as $type,)*)* }
            }
        }

        /// All parameters, in their order.
        pub const PARAMETERS: &[Parameter] = &[$($(indicators!(parameter $key $type $default $min $max, $letter $about),)*)*];

        /// The table.
        pub(super) const ROWS: &[IndicatorRow] = &[$(IndicatorRow {
            columns: &[$(Indicator::$column,)+],
            parameters: &[$(indicators!(parameter $key $type $default $min $max, $letter $about),)*],
            from_bar: $from_bar,
            formula: $formula,
            convention: $convention,
        },)+];

        /// The header with the indicators for CUDA sources: columns in their order, and kept quantities.
        pub(crate) const HEADER: &str = concat!(
            "namespace warptape {\n\n",
            "enum Indicator : unsigned { ", $($(stringify!($column), ", ",)+)+ "INDICATORS };\n\n",
            "enum Kept : unsigned { ", $($(stringify!($kept), ", ",)*)* "KEPT };\n\n",
            "}  // namespace warptape\n",
        );
    };
    (parameter $key:ident $type:ident $default:literal $min:literal $max:expr, $letter:literal $about:literal) => {
        Parameter {
            key: stringify!($key),
            path: concat!("stages.indicators.", stringify!($key)),
            letter: $letter,
            default: $default as f64,
            min: $min as f64,
            max: $max as f64,
            is_window: indicators!(is_window $type),
            about: $about,
        }
    };
    (is_window u32) => { true };
    (is_window f64) => { false };
}

pub(super) use indicators;
