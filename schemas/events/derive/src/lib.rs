//! `#[derive(Wire)]`: a record lies in its Avro datum as its type is declared, and its schema says what the type's comments say, so that a
//! record is declared once.
//!
//! It must not know any record.

mod doc;
mod record;
mod said;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Ident, Variant, parse_macro_input};

use doc::doc_of;
use said::{NOTHING, OF_ENUMS, Said};

/// Symbols, or branches, that take one byte on the wire.
const VARIANTS_MAX: usize = 64;

/// Implements `crate::shape::Shaped` and `crate::wire::Wire`: a struct is a record of its fields in the order of their declaration, an enum
/// without values an Avro enum, and an enum whose variants have one value each a union, whose kinds `NAMES` and `name` tell; symbols and branches
/// are numbered in the order of their declaration. A struct with a lifetime borrows from the datum that it is read from.
///
/// Fields with `#[wire(since = N)]`, which are a record's last, came with version `N` of its schema, or of the schema of the record that it is a
/// part of: `put_version` and `get_version` write and read what a version has, down to the last part.
///
/// `#[wire(default = "JSON")]` on a field is what it is in records that were written without it, and is what `Default` gives for its type; on an
/// enum it is the variant that stands for symbols that a reader does not know. A field with `#[wire(skip)]` is no field of the record, and has
/// its type's default where one is read. In place of a field with `#[wire(flatten)]`, whose type is a record, the record has the fields of the
/// newest version of that; in place of one with `#[wire(flatten_nullable)]`, whose type is an optional record that derives `Flat`, those that
/// the version of this record has, null where there is none. In place of a field with `#[wire(fields = NAME)]`, whose type is an array, it
/// has the fields that an array of this name declares, which is as long.
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

/// Implements `crate::shape::Shaped` and `crate::wire::Flat`, for a struct that is flattened in another record, where it may be missing.
///
/// Each field of the first version is nullable there, and null where the struct is missing; at least one of these is neither an `Option` nor, with
/// `#[wire(fields = NAME)]`, an array of such, which may be null in a struct that is there as well. Fields with `#[wire(since = N)]`, where `N` is
/// a version of the other record's schema, have a default, lie there with their own type, and are what `Default` gives where the struct is missing.
/// `flatten`, `flatten_nullable` and `skip` are refused. `#[wire(check = PATH)]` on the struct names a function that is called with each one that
/// is read, and says in an error what is wrong with it.
#[proc_macro_derive(Flat, attributes(wire))]
pub fn derive_flat(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = match &input.data {
        Data::Struct(data) => record::flat(&input, &data.fields),
        _ => Err(Error::new(input.ident.span(), "a record is a struct")),
    };
    implemented.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// `Some(…)` or `None` in the code that is made.
fn optional(text: Option<String>) -> TokenStream {
    match text {
        Some(text) => quote! { Some(#text) },
        None => quote! { None },
    }
}

/// The name, the documentation and the content of a type, in the code that is made.
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

            /// The name of its kind.
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
