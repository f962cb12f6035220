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
use said::Said;

/// Symbols, or branches, that take one byte on the wire.
const VARIANTS_MAX: usize = 64;

/// Implements `crate::shape::Shaped` and `crate::wire::Wire`: a struct is a record of its fields in the order of their declaration, an enum
/// without values an Avro enum, and an enum of one value each a union, whose symbols and branches are numbered in the order of their
/// declaration.
///
/// Fields with `#[later]`, which are a record's last, came with a later version of its schema. Such a record has the methods `put_earlier`
/// and `get_earlier` besides, which write and read what the earlier version has.
///
/// `#[wire(default = "JSON")]` on a field is what it is in records that were written without it; on an enum it is the variant that stands for
/// symbols that a reader does not know. A field with `#[wire(skip)]` is no field of the record, and has its type's default where one is read. In
/// place of a field with `#[wire(flatten)]`, whose type is a record, the record has the fields of that.
#[proc_macro_derive(Wire, attributes(later, wire))]
pub fn derive_wire(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let name = &input.ident;
    let doc = doc_of(&input.attrs);
    let implemented = match &input.data {
        Data::Struct(data) => record::wire(&input, &data.fields),
        Data::Enum(data) => {
            let variants: Vec<&Variant> = data.variants.iter().collect();
            match variants.len() {
                1..=VARIANTS_MAX if variants.iter().all(|variant| variant.fields.is_empty()) => {
                    symbols(name, &doc, &input.attrs, &variants)
                }
                1..=VARIANTS_MAX if variants.iter().all(|variant| is_branch(variant)) => {
                    Ok(branches(name, &variants))
                }
                _ => Err(Error::new(
                    name.span(),
                    format!("an enum has 1 to {VARIANTS_MAX} variants, all without a value or all with one"),
                )),
            }
        }
        Data::Union(_) => Err(Error::new(name.span(), "a record is a struct or an enum")),
    };
    implemented.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Implements `crate::shape::Shaped` alone, for a struct whose bytes are written and read by hand. What `#[derive(Wire)]` knows is known here,
/// and besides: in place of a field with `#[wire(flatten_nullable)]`, whose type is an optional record, the record has the fields of that, each
/// of which is null where there is none. In place of a field with `#[wire(fields = NAME)]` it has the fields that an array of this name
/// declares.
#[proc_macro_derive(Shaped, attributes(wire))]
pub fn derive_shaped(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let implemented = match &input.data {
        Data::Struct(data) => record::shaped(&input, &data.fields),
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
    let default = optional(Said::of(attributes)?.default);
    let content = quote! { crate::shape::Content::Enum { variants: &[#(#told),*], default: #default } };
    let shape = named(name, doc, &content);
    Ok(quote! {
        impl crate::shape::Shaped for #name {
            #shape
        }

        impl crate::wire::Wire for #name {
            fn put(&self, out: &mut Vec<u8>) {
                out.push(match self {
                    #(Self::#symbols => #bytes,)*
                });
            }

            fn get(cursor: &mut crate::cursor::Cursor<'_>) -> Result<Self, crate::error::DecodeError> {
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
    quote! {
        impl crate::shape::Shaped for #name {
            const SHAPE: crate::shape::Shape =
                crate::shape::Shape::Union(&[#(&<#types as crate::shape::Shaped>::SHAPE),*]);
        }

        impl crate::wire::Wire for #name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    #(Self::#branches(value) => {
                        out.push(#bytes);
                        crate::wire::Wire::put(value, out);
                    })*
                }
            }

            fn get(cursor: &mut crate::cursor::Cursor<'_>) -> Result<Self, crate::error::DecodeError> {
                match cursor.long()? {
                    #(#numbers => Ok(Self::#branches(crate::wire::Wire::get(cursor)?)),)*
                    _ => Err(cursor.malformed(#message)),
                }
            }
        }
    }
}
