//! What `#[wire(…)]` says.

use syn::{Attribute, Error, LitStr, Path};

#[derive(Default)]
pub(crate) struct Said {
    /// `default = "…"`.
    pub(crate) default: Option<String>,
    pub(crate) place: Place,
}

/// How a field of a struct lies in the record.
#[derive(Default)]
pub(crate) enum Place {
    /// As a field.
    #[default]
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

impl Said {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self, Error> {
        let mut said = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("wire")) {
            attribute.parse_nested_meta(|meta| {
                let word = meta.path.get_ident().map(ToString::to_string);
                match word.as_deref() {
                    Some("default") => said.default = Some(meta.value()?.parse::<LitStr>()?.value()),
                    Some("flatten") => said.place = Place::Flattened,
                    Some("flatten_nullable") => said.place = Place::FlattenedNullable,
                    Some("fields") => said.place = Place::Fields(meta.value()?.parse()?),
                    Some("skip") => said.place = Place::Skipped,
                    _ => {
                        return Err(meta.error(
                            "there are `default`, `flatten`, `flatten_nullable`, `fields` and `skip`",
                        ));
                    }
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}
