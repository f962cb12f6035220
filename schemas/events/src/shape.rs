//! The content of an `.avsc` file: names, types, defaults and documentation, as declared by the record's type.
//!
//! `#[derive(Wire)]` derives it from a type and its doc comments, so that a record is declared once. `warptape-schemas`
//! writes the files from it, and resolves records with them.

/// A type with an Avro schema.
pub trait Shaped {
    /// The type's Avro type.
    const SHAPE: Shape;
    /// The Avro type of a list of such values.
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
    /// Name of the type, in the namespace `warptape`.
    pub name: &'static str,
    /// Documentation of the type, from its doc comment.
    pub doc: &'static str,
    /// Content of the type.
    pub content: Content,
}

/// The content of a named type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Content {
    /// `record`.
    Record(&'static [Member]),
    /// `enum`.
    Enum {
        /// Names of the type's variants, such as `NotFramed`, each with its documentation, which is empty if the type's
        /// own documentation covers the variant.
        variants: &'static [(&'static str, &'static str)],
        /// The variant that readers use for an unknown symbol; `None` if unknown symbols are errors.
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
    /// The fields of another record, flattened into this one. The other record is always present, so they have no
    /// defaults.
    Fields(&'static [Member]),
    /// The fields of an optional record, flattened into this one. If that record is missing, they are null or have
    /// their own defaults.
    NullableFields(&'static [Member]),
}

impl Member {
    /// Returns the fields of a record, for flattening it into another.
    pub const fn flattened(record: Shape) -> Self {
        match record {
            Shape::Named(Named { content: Content::Record(members), .. }) => Self::Fields(members),
            _ => panic!("only records are flattened"),
        }
    }

    /// Returns the fields of an optional record, for flattening it into another.
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
    /// Name of the field.
    pub name: &'static str,
    /// Documentation of the field, from its doc comment.
    pub doc: &'static str,
    /// Type of the field.
    pub shape: Shape,
    /// Value of the field in records written without it, as JSON; `None` if it has no default.
    pub default: Option<&'static str>,
}
