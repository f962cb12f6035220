//! Declares keys: [`section!`] has the name, default, limits, description and typed field of a key in one place. This
//! module must not know any key.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::keys::{Key, ValueKind};
use super::secret::Secret;
use super::show::Effective;
use super::table::Entry;
use super::value::Setting;

/// A section of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Dotted path, such as `kafka.retention_hours`.
    pub path: &'static str,
    /// Description of the section in one sentence, for the example file.
    pub about: &'static str,
    /// Keys of the section, in the order of the example file.
    pub keys: &'static [Key],
}

/// A struct whose fields are the typed values of a section's keys.
pub trait FromKeys: Sized {
    /// The section.
    const SECTION: Section;

    /// Builds the struct from checked values.
    fn read(values: &Values<'_>) -> Self;
}

/// Declares a section: `"path": "description";`, followed by a struct with a field for each key.
///
/// ```text
/// /// What the key is for: these words are the field's documentation and stand in the example file.
/// field as key: Type = integer(default, least..=greatest, from_integer);
/// ```
///
/// Without `as key` the key has the field's name. The struct is declared here; after `into`, a struct of another crate
/// is filled. Fields that are not values of keys follow in `and { field: Type = |values| …; }`.
macro_rules! section {
    (
        $path:literal: $about:literal;
        $(#[doc = $doc:literal])+
        pub struct $name:ident {
            $($(#[doc = $words:literal])+ $field:ident $(as $key:ident)?: $type:ty = $declared:expr;)+
        }
        $(and { $($(#[doc = $other_doc:literal])+ $other:ident: $other_type:ty = $derived:expr;)+ })?
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $words])+ pub $field: $type,)+
            $($($(#[doc = $other_doc])+ pub $other: $other_type,)+)?
        }

        section! {
            $path: $about;
            into $name { $($(#[doc = $words])+ $field $(as $key)?: $type = $declared;)+ }
            $(and { $($other: $other_type = $derived;)+ })?
        }
    };
    (
        $path:literal: $about:literal;
        into $name:ident {
            $($(#[doc = $words:literal])+ $field:ident $(as $key:ident)?: $type:ty = $declared:expr;)+
        }
        $(and { $($other:ident: $other_type:ty = $derived:expr;)+ })?
    ) => {
        impl $crate::settings::declaration::FromKeys for $name {
            const SECTION: $crate::settings::declaration::Section = $crate::settings::declaration::Section {
                path: $path,
                about: $about,
                keys: &[$($crate::settings::keys::Key {
                    path: section!(path $path, $field $($key)?),
                    field: stringify!($field),
                    kind: {
                        const DECLARED: $crate::settings::declaration::Declared<$type> = $declared;
                        DECLARED.kind
                    },
                    about: $crate::settings::declaration::sentence(concat!($($words),+)),
                }),+],
            };

            fn read(values: &$crate::settings::declaration::Values<'_>) -> Self {
                Self {
                    $($field: {
                        const DECLARED: $crate::settings::declaration::Declared<$type> = $declared;
                        DECLARED.read(values, section!(path $path, $field $($key)?))
                    },)+
                    $($($other: {
                        const DERIVED: fn(&$crate::settings::declaration::Values<'_>) -> $other_type = $derived;
                        DERIVED(values)
                    },)+)?
                }
            }
        }
    };
    (path $path:literal, $field:ident) => { concat!($path, ".", stringify!($field)) };
    (path $path:literal, $field:ident $key:ident) => { concat!($path, ".", stringify!($key)) };
}
pub(super) use section;

/// Returns lines of documentation without the first line's leading space. The leading space of each further line
/// separates it from the previous one.
pub const fn sentence(lines: &'static str) -> &'static str {
    lines.split_at(1).1
}

/// Declaration of a key: its kind, and the conversion of its value to the typed field.
pub struct Declared<T> {
    pub kind: ValueKind,
    read: Read<T>,
}

/// Conversion of a value to a typed field, by the kind of value.
enum Read<T> {
    Text(fn(&str) -> T),
    Integer(fn(i64) -> T),
    Number(fn(f64) -> T),
    List(fn(&[String]) -> T),
    Secret(fn(Option<&Secret>) -> T),
    Table(fn(&BTreeMap<String, Entry>) -> T),
}

impl<T> Declared<T> {
    /// Returns the typed value of the key with this path.
    pub fn read(&self, values: &Values<'_>, path: &str) -> T {
        match (&self.read, values.get(path)) {
            (Read::Text(read), Setting::Text(text)) => read(text),
            (Read::Integer(read), Setting::Integer(number)) => read(*number),
            (Read::Number(read), Setting::Number(number)) => read(*number),
            (Read::List(read), Setting::List(items)) => read(items),
            (Read::Secret(read), Setting::Secret(secret)) => read(secret.as_ref()),
            (Read::Table(read), Setting::Table(names)) => read(names),
            (_, other) => unreachable!("{path} is declared as a {:?}, not as {other:?}", self.kind),
        }
    }
}

/// Declares a string that `check` allows.
pub const fn text<T>(
    default: &'static str,
    allowed: &'static str,
    check: fn(&str) -> bool,
    read: fn(&str) -> T,
) -> Declared<T> {
    Declared { kind: ValueKind::Text { default, allowed, check }, read: Read::Text(read) }
}

/// Declares a string that `check` allows and that may hold a password.
pub const fn address<T>(
    default: &'static str,
    allowed: &'static str,
    check: fn(&str) -> bool,
    read: fn(&str) -> T,
) -> Declared<T> {
    Declared { kind: ValueKind::Address { default, allowed, check }, read: Read::Text(read) }
}

/// Declares one of a few words; the first one is the default.
pub const fn choice<T>(choices: &'static [&'static str], read: fn(&str) -> T) -> Declared<T> {
    Declared { kind: ValueKind::Choice { default: choices[0], choices }, read: Read::Text(read) }
}

/// Declares a whole number within limits.
pub const fn integer<T>(default: i64, limits: RangeInclusive<i64>, read: fn(i64) -> T) -> Declared<T> {
    let kind = ValueKind::Integer { default, min: *limits.start(), max: *limits.end() };
    Declared { kind, read: Read::Integer(read) }
}

/// Declares a number within limits.
pub const fn number(default: f64, limits: RangeInclusive<f64>) -> Declared<f64> {
    let kind = ValueKind::Number { default, min: *limits.start(), max: *limits.end() };
    Declared { kind, read: Read::Number(|number| number) }
}

/// Declares a list of up to `items_max` strings, each allowed by `check`.
pub const fn list<T>(
    default: &'static [&'static str],
    items_max: usize,
    allowed: &'static str,
    check: fn(&str) -> bool,
    read: fn(&[String]) -> T,
) -> Declared<T> {
    Declared { kind: ValueKind::List { default, allowed, items_max, check }, read: Read::List(read) }
}

/// Declares a secret text.
pub const fn secret() -> Declared<Option<Secret>> {
    Declared { kind: ValueKind::Secret, read: Read::Secret(|secret| secret.cloned()) }
}

/// Declares a table whose names `check` allows, each with a text.
pub const fn table(
    allowed: &'static str,
    check: fn(&str) -> bool,
    is_secret: fn(&str) -> bool,
) -> Declared<BTreeMap<String, Secret>> {
    let read = |names: &BTreeMap<String, Entry>| {
        names.iter().map(|(name, entry)| (name.clone(), Secret::new(entry.text.reveal()))).collect()
    };
    Declared { kind: ValueKind::Table { allowed, check, is_secret }, read: Read::Table(read) }
}

/// Declares names, each with a text that anybody may see.
pub const fn texts(allowed: &'static str, check: fn(&str) -> bool) -> Declared<BTreeMap<String, String>> {
    let read = |names: &BTreeMap<String, Entry>| {
        names.iter().map(|(name, entry)| (name.clone(), entry.text.reveal().to_owned())).collect()
    };
    Declared { kind: ValueKind::Table { allowed, check, is_secret: |_| false }, read: Read::Table(read) }
}

/// Converts a whole number to a type that has room for the limits of its key.
pub fn whole<T: TryFrom<i64, Error: std::fmt::Debug>>(number: i64) -> T {
    T::try_from(number).expect("the limits of a key are those of its type")
}

/// Checked values of all keys.
pub struct Values<'a>(pub &'a [Effective]);

impl Values<'_> {
    /// Returns the value of the key with this path.
    pub fn get(&self, path: &str) -> &Setting {
        let entry = self.0.iter().find(|entry| entry.key.path == path);
        &entry.unwrap_or_else(|| unreachable!("{path} is not in the table of keys")).value
    }
}
