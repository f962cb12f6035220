//! What `#[wire(…)]` says.

use syn::{Attribute, Error, LitStr};

#[derive(Default)]
pub(crate) struct Said {
    /// `default = "…"`.
    pub(crate) default: Option<String>,
    /// `flatten`.
    pub(crate) is_flattened: bool,
    /// `skip`.
    pub(crate) is_skipped: bool,
}

impl Said {
    pub(crate) fn of(attributes: &[Attribute]) -> Result<Self, Error> {
        let mut said = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("wire")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("default") {
                    said.default = Some(meta.value()?.parse::<LitStr>()?.value());
                } else if meta.path.is_ident("flatten") {
                    said.is_flattened = true;
                } else if meta.path.is_ident("skip") {
                    said.is_skipped = true;
                } else {
                    return Err(meta.error("there are `default`, `flatten` and `skip`"));
                }
                Ok(())
            })?;
        }
        Ok(said)
    }
}
