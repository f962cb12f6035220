//! `#[derive(Wire)]`: a record lies in its Avro datum as its type is declared, and its schema says what the type's comments say, so that a
//! record is declared once.
//!
//! It must not know any record.

mod doc;

use proc_macro::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Field, Fields, Ident, LitStr, Variant, parse_macro_input};

use doc::doc_of;

/// Symbols, or branches, that take one byte on the wire.
const VARIANTS_MAX: usize = 64;

/// Implements `crate::wire::Wire`: a struct is a record of its fields in the order of their declaration, an enum without values an Avro
/// enum, and an enum of one value each a union, whose symbols and branches are numbered in the order of their declaration.
///
/// Fields with `#[later]`, which are a record's last, came with a later version of its schema. Such a record has the methods `put_earlier`
/// and `get_earlier` besides, which write and read what the earlier version has.
///
/// `#[wire(default = "JSON")]` on a field is what it is in records that were written without it; on an enum it is the variant that stands for
/// symbols that a reader does not know.
#[proc_macro_derive(Wire, attributes(later, wire))]
pub fn derive_wire(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    let name = &input.ident;
    let doc = doc_of(&input.attrs);
    let implemented = match &input.data {
        Data::Struct(data) => record(name, &doc, &data.fields),
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
    implemented.unwrap_or_else(|error| error.to_compile_error().into())
}

/// What `#[wire(default = "…")]` says.
fn default_of(attributes: &[Attribute]) -> Result<Option<String>, Error> {
    let mut default = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("wire")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("default") {
                return Err(meta.error("there is only `default`"));
            }
            default = Some(meta.value()?.parse::<LitStr>()?.value());
            Ok(())
        })?;
    }
    Ok(default)
}

/// `Some(…)` or `None` in the code that is made.
fn optional(text: Option<String>) -> proc_macro2::TokenStream {
    match text {
        Some(text) => quote! { Some(#text) },
        None => quote! { None },
    }
}

/// The name, the documentation and the content of a type, in the code that is made.
fn named(name: &Ident, doc: &str, content: &proc_macro2::TokenStream) -> proc_macro2::TokenStream {
    let text = name.to_string();
    quote! {
        const SHAPE: crate::shape::Shape = crate::shape::Shape::Named(&crate::shape::Named {
            name: #text,
            doc: #doc,
            content: #content,
        });
    }
}

fn record(name: &Ident, doc: &str, fields: &Fields) -> Result<TokenStream, Error> {
    let is_later = |field: &&Field| field.attrs.iter().any(|attribute| attribute.path().is_ident("later"));
    let ident = |field: &Field| {
        field.ident.clone().ok_or_else(|| Error::new(name.span(), "the fields of a record have names"))
    };
    let all = fields.iter().map(ident).collect::<Result<Vec<Ident>, Error>>()?;
    let shape = |field: &Field| {
        let (name, doc, kind) = (ident(field)?.to_string(), doc_of(&field.attrs), &field.ty);
        let default = optional(default_of(&field.attrs)?);
        Ok(quote! {
            crate::shape::FieldShape {
                name: #name,
                doc: #doc,
                shape: <#kind as crate::wire::Wire>::SHAPE,
                default: #default,
            }
        })
    };
    let shapes = fields.iter().map(shape).collect::<Result<Vec<_>, Error>>()?;
    let shape = named(name, doc, &quote! { crate::shape::Content::Record(&[#(#shapes),*]) });
    let later: Vec<Ident> = fields.iter().filter(is_later).filter_map(|field| field.ident.clone()).collect();
    let Some(earlier) = all.strip_suffix(&*later) else {
        return Err(Error::new(name.span(), "fields that came later are the last ones"));
    };
    let put = |fields: &[Ident]| quote! { #(crate::wire::Wire::put(&self.#fields, out);)* };
    let get = |fields: &[Ident]| quote! { #(#fields: crate::wire::Wire::get(cursor)?,)* };
    let (put_all, get_all) = (put(&all), get(&all));
    let of_earlier = (!later.is_empty()).then(|| {
        let (put_earlier, get_earlier) = (put(earlier), get(earlier));
        quote! {
            impl #name {
                /// Appends the fields of the earlier version.
                pub fn put_earlier(&self, out: &mut Vec<u8>) {
                    #put_earlier
                }

                /// Reads the fields of the earlier version; the others are empty.
                pub fn get_earlier(
                    cursor: &mut crate::cursor::Cursor<'_>,
                ) -> Result<Self, crate::error::DecodeError> {
                    Ok(Self { #get_earlier #(#later: Default::default(),)* })
                }
            }
        }
    });
    Ok(quote! {
        #of_earlier

        impl crate::wire::Wire for #name {
            #shape

            #[allow(unused_variables)]
            fn put(&self, out: &mut Vec<u8>) {
                #put_all
            }

            #[allow(unused_variables)]
            fn get(cursor: &mut crate::cursor::Cursor<'_>) -> Result<Self, crate::error::DecodeError> {
                Ok(Self { #get_all })
            }
        }
    }
    .into())
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
    let default = optional(default_of(attributes)?);
    let content = quote! { crate::shape::Content::Enum { variants: &[#(#told),*], default: #default } };
    let shape = named(name, doc, &content);
    Ok(quote! {
        impl crate::wire::Wire for #name {
            #shape

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
    }
    .into())
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
        impl crate::wire::Wire for #name {
            const SHAPE: crate::shape::Shape =
                crate::shape::Shape::Union(&[#(&<#types as crate::wire::Wire>::SHAPE),*]);

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
    .into()
}
