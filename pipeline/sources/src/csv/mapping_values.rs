//! Values in the text of a `--map`: settings, units, quoted constants.

use warptape_events::tick::Scales;

use super::mapping::ColumnUnit;
use super::time_rule::Zone;
use crate::time_unit::TimeUnit;

/// Columns that may have a unit.
const NUMBER_KEYS: [&str; 6] = ["price", "size", "bid_price", "bid_size", "ask_price", "ask_size"];
/// Examples of zones, for messages.
pub(super) const ZONES: &str = "as in zone=UTC, zone=America/New_York or zone=+02:00";

/// The value of a key, if it is not a column.
pub(super) enum Setting {
    YesNo(bool),
    Mark(char),
    Round(u8),
    Zone(Zone),
    Words(Vec<String>),
}

/// Returns the text inside single quotes; `None` if there are no quotes.
pub(super) fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('\'')?.strip_suffix('\'')
}

/// Returns the values in `'a|b'`.
fn values(text: &str) -> Option<Vec<String>> {
    Some(quoted(text)?.split('|').map(str::to_owned).collect())
}

/// Reads a setting. An error names the allowed values.
pub(super) fn read_setting(key: &str, value: &str) -> Result<Setting, String> {
    let mark = || {
        let named = match value {
            "dot" => Some('.'),
            "comma" => Some(','),
            "semicolon" => Some(';'),
            "tab" => Some('\t'),
            "pipe" => Some('|'),
            "space" => Some(' '),
            "apostrophe" => Some('\''),
            _ => None,
        };
        let of_quotes = quoted(value).and_then(|text| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        });
        named.or(of_quotes).filter(|mark| mark.is_ascii() && !mark.is_ascii_alphanumeric())
    };
    let in_number = |mark: &char| !matches!(mark, '-' | '+' | '"') && !mark.is_control();
    match key {
        "delimiter" => mark()
            .filter(|mark| !matches!(mark, '"' | '\n' | '\r' | '\0'))
            .map(Setting::Mark)
            .ok_or("comma, semicolon, tab, pipe, space, or a character in single quotes".to_owned()),
        "decimal" => mark()
            .filter(in_number)
            .map(Setting::Mark)
            .ok_or("dot, comma, or a character in single quotes".to_owned()),
        "thousands" => mark()
            .filter(in_number)
            .map(Setting::Mark)
            .ok_or("dot, comma, space, apostrophe, or a character in single quotes".to_owned()),
        "round" => {
            let decimals = value.parse().ok().filter(|decimals| *decimals <= Scales::MAX);
            decimals.map(Setting::Round).ok_or(format!("decimals from 0 to {}", Scales::MAX))
        }
        "zone" => Zone::by_name(quoted(value).unwrap_or(value))
            .map(Setting::Zone)
            .ok_or("UTC, a name such as America/New_York, an offset such as +02:00".to_owned()),
        "buy" | "sell" => {
            let words = values(value).filter(|words| words.iter().all(|word| !word.is_empty()));
            words.map(Setting::Words).ok_or("words in single quotes, as in 'B' or 'B|1'".to_owned())
        }
        "empty" => match value {
            "last" => Ok(Setting::YesNo(true)),
            "absent" => Ok(Setting::YesNo(false)),
            _ => Err("absent, last".to_owned()),
        },
        _ => match value {
            "yes" => Ok(Setting::YesNo(true)),
            "no" => Ok(Setting::YesNo(false)),
            _ => Err("yes, no".to_owned()),
        },
    }
}

/// Reads the text after the colon of a column. An error describes its fault.
pub(super) fn column_unit(key: &str, name: &str, unit: Option<&str>) -> Result<Option<ColumnUnit>, String> {
    match (key, unit) {
        ("time" | "receive_time", unit) => {
            let format = || unit.and_then(quoted).map(|format| ColumnUnit::Format(format.to_owned()));
            let unit = unit.and_then(TimeUnit::by_name).map(ColumnUnit::Time).or_else(format);
            unit.map(Some).ok_or_else(|| {
                format!(
                    "a time needs its unit, as in {name}:ms; allowed are s, ms, us, ns, rfc3339, and a format in single \
                     quotes, as in {name}:'%d.%m.%Y %H:%M:%S'"
                )
            })
        }
        ("date", None) => Ok(None),
        ("date", Some(unit)) => match quoted(unit) {
            Some(format) => Ok(Some(ColumnUnit::Format(format.to_owned()))),
            None => Err(format!("a date needs a format in single quotes, as in {name}:'%d.%m.%Y'")),
        },
        ("only" | "except", unit) => match unit.and_then(values) {
            Some(values) => Ok(Some(ColumnUnit::Values(values))),
            None => Err(format!("a filter needs values in single quotes, as in {name}:'4|5'")),
        },
        (_, None) => Ok(None),
        (key, Some(unit)) if NUMBER_KEYS.contains(&key) => {
            let power = unit.strip_prefix('e').and_then(|power| power.parse().ok());
            let power = power.filter(|power| *power <= Scales::MAX);
            power.map(|power| Some(ColumnUnit::Power(power))).ok_or_else(|| {
                format!(
                    "the unit of a number is the power of ten that divides it, e0 to e{}, as in {name}:e9; if a \
                     column's name has a colon, give its number",
                    Scales::MAX
                )
            })
        }
        (_, Some(_)) => {
            Err("only times, dates and numbers have a unit; if a column's name has a colon, give its number"
                .to_owned())
        }
    }
}
