//! The attribute `#[wire(…)]`.

use syn::{Attribute, Error, LitInt, LitStr, Path};

pub(crate) struct Said {
    /// `default = "…"`: the default, in JSON or as a variant.
    pub(crate) default: Option<String>,
    /// `since = …`: the first version of the schema with the field.
    pub(crate) since: u32,
    /// `check = …`: the function that is called with each record that is read.
    pub(crate) check: Option<Path>,
    pub(crate) place: Layout,
}

/// The layout of a struct's field in the record.
pub(crate) enum Layout {
    /// A field of the record.
    Field,
    /// `flatten`: the fields of the record that is the field's type.
    Flattened,
    /// `flatten_nullable`: the fields of the optional record that is the field's type.
    FlattenedNullable,
    /// `fields = …`: one field for each item of an array, declared elsewhere.
    Fields(Path),
    /// `skip`: no field.
    Skipped,
}

/// Words that `#[wire(…)]` allows on a field.
pub(crate) const OF_FIELDS: &[&str] = &["default", "since", "flatten", "flatten_nullable", "fields", "skip"];
/// Words that it allows on an enum.
pub(crate) const OF_ENUMS: &[&str] = &["default"];
/// Words that it allows on a flattened record.
pub(crate) const OF_FLAT: &[&str] = &["check"];
/// No words: the attribute is not allowed.
pub(crate) const NOTHING: &[&str] = &[];

impl Said {
    pub(crate) fn of(attributes: &[Attribute], words: &[&str]) -> Result<Self, Error> {
        let mut said = Self { default: None, since: 1, check: None, place: Layout::Field };
        let mut places = 0;
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("wire")) {
            attribute.parse_nested_meta(|meta| {
                let word = meta.path.get_ident().map(ToString::to_string);
                let word = word.filter(|word| words.contains(&word.as_str()));
                let place = match word.as_deref() {
                    Some("flatten") => Some(Layout::Flattened),
                    Some("flatten_nullable") => Some(Layout::FlattenedNullable),
                    Some("fields") => Some(Layout::Fields(meta.value()?.parse()?)),
                    Some("skip") => Some(Layout::Skipped),
                    _ => None,
                };
                if let Some(place) = place {
                    said.place = place;
                    places += 1;
                    return match places {
                        1 => Ok(()),
                        _ => Err(meta.error("a field has one of flatten, flatten_nullable, fields, skip")),
                    };
                }
                match word.as_deref() {
                    Some("default") => said.default = Some(meta.value()?.parse::<LitStr>()?.value()),
                    Some("since") => {
                        said.since = meta.value()?.parse::<LitInt>()?.base10_parse()?;
                        if said.since < 2 {
                            return Err(meta.error("a later version is 2 or more"));
                        }
                    }
                    Some("check") => said.check = Some(meta.value()?.parse()?),
                    _ if words.is_empty() => return Err(meta.error("`wire` allows no word here")),
                    _ => return Err(meta.error(format!("`wire` allows here: {}", words.join(", ")))),
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}
