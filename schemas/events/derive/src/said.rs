//! What `#[wire(…)]` says.

use syn::{Attribute, Error, LitInt, LitStr, Path};

pub(crate) struct Said {
    /// `default = "…"`.
    pub(crate) default: Option<String>,
    /// `since = …`: the first version of the schema that has the field.
    pub(crate) since: u32,
    /// `check = …`: what is called with a record that was read.
    pub(crate) check: Option<Path>,
    pub(crate) place: Layout,
}

/// How a field of a struct lies in the record.
pub(crate) enum Layout {
    /// As a field.
    Field,
    /// `flatten`: as the fields of the record that its type is.
    Flattened,
    /// `flatten_nullable`: likewise, of an optional record.
    FlattenedNullable,
    /// `fields = …`: as fields that are declared elsewhere.
    Fields(Path),
    /// `skip`: not at all.
    Skipped,
}

/// What `#[wire(…)]` may say of a field.
pub(crate) const OF_FIELDS: &[&str] = &["default", "since", "flatten", "flatten_nullable", "fields", "skip"];
/// Of an enum.
pub(crate) const OF_ENUMS: &[&str] = &["default"];
/// Of a record that is flattened.
pub(crate) const OF_FLAT: &[&str] = &["check"];
/// Of everything else.
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
                        _ => Err(meta.error("a field lies in the record in one way")),
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
                    _ if words.is_empty() => return Err(meta.error("nothing may be said here")),
                    _ => return Err(meta.error(format!("what may be said here: {}", words.join(", ")))),
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}
