//! Structs as records: their fields one after the other, in the order of their declaration.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Field, Fields, Ident, Type};

use crate::doc::doc_of;
use crate::said::{Place, Said};
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

    /// What the schema says of it.
    fn shape(&self) -> Option<TokenStream> {
        let Self { kind, doc, said, .. } = self;
        let shape = quote! { <#kind as crate::shape::Shaped>::SHAPE };
        let (name, default) = (self.name.to_string(), optional(said.default.clone()));
        Some(match &said.place {
            Place::Field => quote! {
                crate::shape::Member::Field(crate::shape::FieldShape {
                    name: #name,
                    doc: #doc,
                    shape: #shape,
                    default: #default,
                })
            },
            Place::Flattened => quote! { crate::shape::Member::flattened(#shape) },
            Place::FlattenedNullable => quote! { crate::shape::Member::flattened_nullable(#shape) },
            Place::Fields(fields) => quote! { crate::shape::Member::Fields(&#fields) },
            Place::Skipped => return None,
        })
    }
}

fn members<'a>(name: &Ident, fields: &'a Fields) -> Result<Vec<Member<'a>>, Error> {
    fields.iter().map(|field| Member::of(name, field)).collect()
}

/// Implements `Shaped`.
pub(crate) fn shaped(input: &DeriveInput, fields: &Fields) -> Result<TokenStream, Error> {
    let name = &input.ident;
    let members = members(name, fields)?;
    let shapes = members.iter().filter_map(Member::shape);
    let shape =
        named(name, &doc_of(&input.attrs), &quote! { crate::shape::Content::Record(&[#(#shapes),*]) });
    let (parameters, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        impl #parameters crate::shape::Shaped for #name #arguments {
            #shape
        }
    })
}

/// Implements `Shaped` and `Wire`.
pub(crate) fn wire(input: &DeriveInput, fields: &Fields) -> Result<TokenStream, Error> {
    let (name, shaped) = (&input.ident, shaped(input, fields)?);
    let members = members(name, fields)?;
    let is_by_hand =
        |member: &Member<'_>| matches!(member.said.place, Place::FlattenedNullable | Place::Fields(_));
    if let Some(member) = members.iter().find(|member| is_by_hand(member)) {
        return Err(Error::new(
            member.name.span(),
            "only `Shaped` is made of this: bytes are written by hand",
        ));
    }
    let (skipped, members): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|member| matches!(member.said.place, Place::Skipped));
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
    let (parameters, arguments, _) = input.generics.split_for_impl();
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
        #shaped

        #of_earlier

        impl #parameters crate::wire::Wire for #name #arguments {
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
