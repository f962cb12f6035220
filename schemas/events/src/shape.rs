//! What an `.avsc` says of a record: names, types, defaults and documentation, as the record's type declares them.
//!
//! `#[derive(Wire)]` makes it of a type with its documentation, so that a record is declared once; `warptape-schemas` writes the files of it
//! and resolves records with them.

/// A type that says what it is in a schema.
pub trait Shaped {
    /// Its Avro type.
    const SHAPE: Shape;
    /// The Avro type of many of them.
    const MANY: Shape = Shape::Array(&Self::SHAPE);
}

/// An Avro type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    /// `boolean`.
    Boolean,
    /// `int`.
    Int,
    /// `long`.
    Long,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `array` of what is given.
    Array(&'static Shape),
    /// `map` from names to what is given.
    Map(&'static Shape),
    /// A union of `null` and what is given.
    Nullable(&'static Shape),
    /// A union of records.
    Union(&'static [&'static Shape]),
    /// A type with a name.
    Named(&'static Named),
}

/// A type with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Named {
    /// Its name, in the namespace `warptape`.
    pub name: &'static str,
    /// What it is, as the comment of the type says it.
    pub doc: &'static str,
    /// What it is made of.
    pub content: Content,
}

/// What a type with a name is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// `record`.
    Record(&'static [Member]),
    /// `enum`, with the symbol that readers take for those that they do not know.
    Enum {
        /// The symbols as the variants of the type are named, such as `NotFramed`, each with what it means; empty where the type says it of all.
        variants: &'static [(&'static str, &'static str)],
        /// The variant in place of unknown ones.
        default: Option<&'static str>,
    },
    /// `fixed` of so many bytes.
    Fixed(usize),
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Member {
    /// One field.
    Field(FieldShape),
    /// The fields of another record, which is flattened here. It is always there, so that they have no defaults.
    Fields(&'static [Member]),
    /// Likewise, of a record that may be missing: then its fields are null, or what their own defaults say.
    NullableFields(&'static [Member]),
}

impl Member {
    /// The fields of a record, to stand in another.
    pub const fn flattened(record: Shape) -> Self {
        match record {
            Shape::Named(Named { content: Content::Record(members), .. }) => Self::Fields(members),
            _ => panic!("only records are flattened"),
        }
    }

    /// Likewise, of a record that may be missing.
    pub const fn flattened_nullable(record: Shape) -> Self {
        match record {
            Shape::Nullable(Shape::Named(Named { content: Content::Record(members), .. })) => {
                Self::NullableFields(members)
            }
            _ => panic!("only a record that may be missing is flattened so"),
        }
    }
}

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldShape {
    /// Its name.
    pub name: &'static str,
    /// What it is, as its comment says it.
    pub doc: &'static str,
    /// Its type.
    pub shape: Shape,
    /// What it is in records that were written without it, in JSON.
    pub default: Option<&'static str>,
}
