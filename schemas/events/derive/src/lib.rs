//! `#[derive(Wire)]` derives a record's Avro encoding from its type's declaration, and its schema from that and the
//! type's doc comments. So a record is declared once.
//!
//! The crate must not know any record.

mod doc;
mod record;
mod said;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, Variant, parse_macro_input};

use doc::doc_of;
use said::{NOTHING, OF_ENUMS, Said};

/// Greatest number of symbols or branches, each of which takes one byte on the wire.
const VARIANTS_MAX: usize = 64;

/// Implements `crate::shape::Shaped` and `crate::wire::Wire`. A struct is a record of its fields in the order of their
/// declaration. An enum without values is an Avro enum. An enum whose variants have one value each is a union, with the
/// names of its kinds in `NAMES` and `name`. Symbols and branches are numbered in the order of their declaration. A
/// struct with a lifetime borrows from the datum.
///
/// A field with `#[wire(since = N)]` came with version `N` of its schema, or of the schema of the outer record; such
/// fields are the last. `put_version` and `get_version` write and read the fields of a version, in nested records too.
///
/// `#[wire(default = "JSON")]` on a field is its value in records written without it, and must be the type's `Default`.
/// On an enum, it is the variant that a reader uses for unknown symbols. A field with `#[wire(skip)]` is not part of
/// the record, and is read as its type's default. A field with `#[wire(flatten)]` has a record as its type; the fields
/// of the record's newest version replace it. A field with `#[wire(flatten_nullable)]` has an optional record as its
/// type, which derives `Flat`. The fields that replace it are those of this record's version, and null if it is
/// missing. A field with `#[wire(fields = NAME)]` is an array; the array of declarations `NAME`, of the same length,
/// gives the fields that replace it.
#[proc_macro_derive(Wire, attributes(wire))]
pub fn derive_wire(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let name = &input.ident;
    let doc = doc_of(&input.attrs);
    let implemented = match &input.data {
        Data::Struct(data) => record::wire(&input, &data.fields),
        Data::Enum(data) => {
            let variants: Vec<&Variant> = data.variants.iter().collect();
            let said = variants.iter().try_for_each(|variant| Said::of(&variant.attrs, NOTHING).map(|_| ()));
            said.and_then(|()| match variants.len() {
                1..=VARIANTS_MAX if variants.iter().all(|variant| variant.fields.is_empty()) => {
                    symbols(name, &doc, &input.attrs, &variants)
                }
                1..=VARIANTS_MAX if variants.iter().all(|variant| is_branch(variant)) => {
                    Said::of(&input.attrs, NOTHING).map(|_| branches(name, &variants))
                }
                _ => Err(Error::new(
                    name.span(),
                    format!("an enum has 1 to {VARIANTS_MAX} variants, all without a value or all with one"),
                )),
            })
        }
        Data::Union(_) => Err(Error::new(name.span(), "a record is a struct or an enum")),
    };
    implemented.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Implements `crate::shape::Shaped` and `crate::wire::Flat` for a struct that is flattened in another record and may
/// be missing there.
///
/// Each field of the first version is nullable in the other record, and null if the struct is missing. At least one of
/// them shows that the struct is present: it is neither an `Option` nor, with `#[wire(fields = NAME)]`, an array of
/// them. A field with `#[wire(since = N)]`, where `N` is a version of the outer record's schema, keeps its own type.
/// Its default must be the type's `Default`, which is its value if the struct is missing. `flatten`, `flatten_nullable`
/// and `skip` are refused. `#[wire(check = PATH)]` on the struct names a function that checks each value that is read,
/// and returns an error text.
#[proc_macro_derive(Flat, attributes(wire))]
pub fn derive_flat(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = match &input.data {
        Data::Struct(data) => record::flat(&input, &data.fields),
        _ => Err(Error::new(input.ident.span(), "a record is a struct")),
    };
    implemented.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Returns the code `Some(…)` or `None`.
fn optional(text: Option<String>) -> TokenStream {
    match text {
        Some(text) => quote! { Some(#text) },
        None => quote! { None },
    }
}

/// Returns the code of a named type: its name, documentation and content.
fn named(name: &Ident, doc: &str, content: &TokenStream) -> TokenStream {
    let text = name.to_string();
    quote! {
        const SHAPE: crate::shape::Shape = crate::shape::Shape::Named(&crate::shape::Named {
            name: #text,
            doc: #doc,
            content: #content,
        });
    }
}

fn symbols(
    name: &Ident,
    doc: &str,
    attributes: &[Attribute],
    variants: &[&Variant],
) -> Result<TokenStream, Error> {
    let symbols: Vec<&Ident> = variants.iter().map(|variant| &variant.ident).collect();
    let (bytes, numbers) = ((0..symbols.len() as u8).map(|number| number << 1), 0..symbols.len() as i64);
    let message = format!("no such symbol of {name}");
    let told = variants.iter().map(|variant| {
        let (name, doc) = (variant.ident.to_string(), doc_of(&variant.attrs));
        quote! { (#name, #doc) }
    });
    let default = optional(Said::of(attributes, OF_ENUMS)?.default);
    let content = quote! { crate::shape::Content::Enum { variants: &[#(#told),*], default: #default } };
    let shape = named(name, doc, &content);
    Ok(quote! {
        impl crate::shape::Shaped for #name {
            #shape
        }

        impl<'datum> crate::wire::Wire<'datum> for #name {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self {
                    #(Self::#symbols => #bytes,)*
                });
            }

            fn get(cursor: &mut crate::cursor::Cursor<'datum>) -> Result<Self, crate::error::DecodeError> {
                match cursor.long()? {
                    #(#numbers => Ok(Self::#symbols),)*
                    _ => Err(cursor.malformed(#message)),
                }
            }
        }
    })
}

fn is_branch(variant: &Variant) -> bool {
    matches!(&variant.fields, Fields::Unnamed(fields) if fields.unnamed.len() == 1)
}

fn branches(name: &Ident, variants: &[&Variant]) -> TokenStream {
    let branches: Vec<&Ident> = variants.iter().map(|variant| &variant.ident).collect();
    let (bytes, numbers) = ((0..branches.len() as u8).map(|number| number << 1), 0..branches.len() as i64);
    let message = format!("no such branch of {name}");
    let types = variants.iter().flat_map(|variant| variant.fields.iter().map(|field| &field.ty));
    let names: Vec<String> = branches.iter().map(|branch| branch.to_string()).collect();
    quote! {
        impl #name {
            /// Names of the kinds, in the order of their declaration.
            pub const NAMES: &'static [&'static str] = &[#(#names),*];

            /// Returns the name of its kind.
            pub fn name(&self) -> &'static str {
                match self {
                    #(Self::#branches(_) => #names,)*
                }
            }
        }

        impl crate::shape::Shaped for #name {
            const SHAPE: crate::shape::Shape =
                crate::shape::Shape::Union(&[#(&<#types as crate::shape::Shaped>::SHAPE),*]);
        }

        impl<'datum> crate::wire::Wire<'datum> for #name {
            fn put(&self, out: &mut Vec<u8>) {
                Self::put_version(self, crate::wire::NEWEST, out);
            }

            fn get(cursor: &mut crate::cursor::Cursor<'datum>) -> Result<Self, crate::error::DecodeError> {
                Self::get_version(cursor, crate::wire::NEWEST)
            }

            fn put_version(&self, version: u32, out: &mut Vec<u8>) {
                match self {
                    #(Self::#branches(value) => {
                        out.push(#bytes);
                        crate::wire::Wire::put_version(value, version, out);
                    })*
                }
            }

            fn get_version(
                cursor: &mut crate::cursor::Cursor<'datum>,
                version: u32,
            ) -> Result<Self, crate::error::DecodeError> {
                match cursor.long()? {
                    #(#numbers => Ok(Self::#branches(crate::wire::Wire::get_version(cursor, version)?)),)*
                    _ => Err(cursor.malformed(#message)),
                }
            }
        }
    }
}
