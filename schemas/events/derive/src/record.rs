//! Structs as records: their fields one after the other, in the order of their declaration.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Field, Fields, Generics, Ident, Type};

use crate::doc::doc_of;
use crate::said::Said;
use crate::{named, optional};

/// A field of a struct.
struct Member<'a> {
    name: &'a Ident,
    kind: &'a Type,
    doc: String,
    is_later: bool,
    said: Said,
}

impl<'a> Member<'a> {
    fn of(record: &Ident, field: &'a Field) -> Result<Self, Error> {
        let Some(name) = &field.ident else {
            return Err(Error::new(record.span(), "the fields of a record have names"));
        };
        Ok(Self {
            name,
            kind: &field.ty,
            doc: doc_of(&field.attrs),
            is_later: field.attrs.iter().any(|attribute| attribute.path().is_ident("later")),
            said: Said::of(&field.attrs)?,
        })
    }

    fn shape(&self) -> TokenStream {
        let Self { kind, doc, said, .. } = self;
        if said.is_flattened {
            return quote! { crate::shape::Member::flattened(<#kind as crate::wire::Wire>::SHAPE) };
        }
        let (name, default) = (self.name.to_string(), optional(said.default.clone()));
        quote! {
            crate::shape::Member::Field(crate::shape::FieldShape {
                name: #name,
                doc: #doc,
                shape: <#kind as crate::wire::Wire>::SHAPE,
                default: #default,
            })
        }
    }
}

pub(crate) fn wire(
    name: &Ident,
    generics: &Generics,
    doc: &str,
    fields: &Fields,
) -> Result<TokenStream, Error> {
    let members = fields.iter().map(|field| Member::of(name, field)).collect::<Result<Vec<_>, Error>>()?;
    let (skipped, members): (Vec<_>, Vec<_>) = members.into_iter().partition(|member| member.said.is_skipped);
    let shapes = members.iter().map(Member::shape);
    let shape = named(name, doc, &quote! { crate::shape::Content::Record(&[#(#shapes),*]) });
    let (later, earlier): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.is_later);
    if members.iter().skip(earlier.len()).any(|member| !member.is_later) {
        return Err(Error::new(name.span(), "fields that came later are the last ones"));
    }
    let put = |members: &[&Member<'_>]| {
        let names = members.iter().map(|member| member.name);
        quote! { #(crate::wire::Wire::put(&self.#names, out);)* }
    };
    let get = |read: &[&Member<'_>], unread: &[&Member<'_>]| {
        let (read, unread) = (read.iter().map(|member| member.name), unread.iter().map(|member| member.name));
        quote! { Ok(Self { #(#read: crate::wire::Wire::get(cursor)?,)* #(#unread: Default::default(),)* }) }
    };
    let (all, skipped): (Vec<_>, Vec<_>) = (members.iter().collect(), skipped.iter().collect());
    let (parameters, arguments, _) = generics.split_for_impl();
    let of_earlier = (!later.is_empty()).then(|| {
        let put = put(&earlier);
        let get = get(&earlier, &[&later[..], &skipped].concat());
        quote! {
            impl #parameters #name #arguments {
                /// Appends the fields of the earlier version.
                pub fn put_earlier(&self, out: &mut Vec<u8>) {
                    #put
                }

                /// Reads the fields of the earlier version; the others are empty.
                pub fn get_earlier(
                    cursor: &mut crate::cursor::Cursor<'_>,
                ) -> Result<Self, crate::error::DecodeError> {
                    #get
                }
            }
        }
    });
    let (put, get) = (put(&all), get(&all, &skipped));
    Ok(quote! {
        #of_earlier

        impl #parameters crate::wire::Wire for #name #arguments {
            #shape

            #[allow(unused_variables)]
            fn put(&self, out: &mut Vec<u8>) {
                #put
            }

            #[allow(unused_variables)]
            fn get(cursor: &mut crate::cursor::Cursor<'_>) -> Result<Self, crate::error::DecodeError> {
                #get
            }
        }
    })
}
