//! The content of an `.avsc` file: names, types, defaults and documentation, as declared by the record's type.
//!
//! `#[derive(Wire)]` makes it from a type with its doc comments, so that a record is declared once. `warptape-schemas`
//! writes the files from it, and resolves records with them.

/// A type with an Avro schema.
pub trait Shaped {
    /// Its Avro type.
    const SHAPE: Shape;
    /// The Avro type of a list of them.
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
    /// `array` of items of this type.
    Array(&'static Shape),
    /// `map` from names to values of this type.
    Map(&'static Shape),
    /// A union of `null` and this type.
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
    /// Its documentation, from the type's doc comment.
    pub doc: &'static str,
    /// Its content.
    pub content: Content,
}

/// The content of a named type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// `record`.
    Record(&'static [Member]),
    /// `enum`.
    Enum {
        /// Names of the type's variants, such as `NotFramed`, each with its documentation; empty if the type's
        /// documentation covers them.
        variants: &'static [(&'static str, &'static str)],
        /// The variant that readers take for an unknown symbol; `None` if unknown symbols are errors.
        default: Option<&'static str>,
    },
    /// `fixed`, with its number of bytes.
    Fixed(usize),
}

/// A part of a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Member {
    /// One field.
    Field(FieldShape),
    /// The fields of another record, flattened here. The other record is always present, so they have no defaults.
    Fields(&'static [Member]),
    /// The fields of an optional record, flattened here. If it is missing, they are null or have their own defaults.
    NullableFields(&'static [Member]),
}

impl Member {
    /// Returns the fields of a record, to flatten it in another.
    pub const fn flattened(record: Shape) -> Self {
        match record {
            Shape::Named(Named { content: Content::Record(members), .. }) => Self::Fields(members),
            _ => panic!("only records are flattened"),
        }
    }

    /// Returns the fields of an optional record, to flatten it in another.
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
    /// Its documentation, from the field's doc comment.
    pub doc: &'static str,
    /// Its type.
    pub shape: Shape,
    /// Its value in records written without it, as JSON; `None` without a default.
    pub default: Option<&'static str>,
}
