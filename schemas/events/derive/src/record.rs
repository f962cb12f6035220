//! Structs as records: their fields in the order of their declaration.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Field, Fields, GenericParam, Generics, Ident, Lifetime, Type, parse_quote};

use crate::doc::doc_of;
use crate::said::{Layout, NOTHING, OF_FIELDS, OF_FLAT, Said};
use crate::{named, optional};

/// A field of a struct.
struct Member<'a> {
    name: &'a Ident,
    kind: &'a Type,
    doc: String,
    said: Said,
}

impl<'a> Member<'a> {
    fn of(record: &Ident, field: &'a Field) -> Result<Self, Error> {
        let Some(name) = &field.ident else {
            return Err(Error::new(record.span(), "the fields of a record have names"));
        };
        let (kind, said) = (&field.ty, Said::of(&field.attrs, OF_FIELDS)?);
        let refused = match said.place {
            Layout::Field => None,
            _ if said.default.is_some() => Some("only a field of the record has a default"),
            Layout::Skipped if said.since > 1 => Some("a skipped field has no version"),
            Layout::Fields(_) if !matches!(kind, Type::Array(_)) => Some("`fields` needs an array"),
            _ => None,
        };
        match refused {
            Some(why) => Err(Error::new(name.span(), why)),
            None => Ok(Self { name, kind, doc: doc_of(&field.attrs), said }),
        }
    }

    /// Returns the code of the field's part in the schema; `None` for a skipped field.
    fn shape(&self) -> Option<TokenStream> {
        let Self { kind, doc, said, .. } = self;
        let shape = quote! { <#kind as crate::shape::Shaped>::SHAPE };
        let (name, default) = (self.name.to_string(), optional(said.default.clone()));
        Some(match &said.place {
            Layout::Field => quote! {
                crate::shape::Member::Field(crate::shape::FieldShape {
                    name: #name,
                    doc: #doc,
                    shape: #shape,
                    default: #default,
                })
            },
            Layout::Flattened => quote! { crate::shape::Member::flattened(#shape) },
            Layout::FlattenedNullable => quote! { crate::shape::Member::flattened_nullable(#shape) },
            Layout::Fields(fields) => quote! { crate::shape::Member::Fields(&#fields) },
            Layout::Skipped => return None,
        })
    }

    /// True if the field is allowed in a flattened record: it has no default in the first version, and has one in later
    /// versions.
    fn may_be_flat(&self) -> bool {
        match self.said.place {
            Layout::Field => (self.said.since == 1) == self.said.default.is_none(),
            Layout::Fields(_) => {
                self.said.since == 1 && matches!(self.kind, Type::Array(array) if is_option(&array.elem))
            }
            Layout::Flattened | Layout::FlattenedNullable | Layout::Skipped => false,
        }
    }

    /// Returns the code that checks the array's length against the declared fields; `None` for other fields.
    fn has_length(&self) -> Option<TokenStream> {
        let (Layout::Fields(fields), Type::Array(array)) = (&self.said.place, self.kind) else { return None };
        let length = &array.len;
        Some(quote! { const _: () = assert!(#fields.len() == #length); })
    }

    /// True if the field shows that a flattened record is present: it is never null in a present record, and has no
    /// default.
    fn is_given(&self) -> bool {
        matches!(self.said.place, Layout::Field) && self.said.default.is_none() && !is_option(self.kind)
    }

    /// Returns the code that appends the field of `record`, a reference.
    fn put(&self, record: &TokenStream) -> TokenStream {
        let name = self.name;
        match self.said.place {
            Layout::Field => quote! { crate::wire::Wire::put_version(&#record.#name, version, out); },
            Layout::Flattened => quote! { crate::wire::Wire::put(&#record.#name, out); },
            Layout::FlattenedNullable => {
                quote! { crate::wire::Flat::put_flat(#record.#name.as_ref(), version, out); }
            }
            Layout::Fields(_) => quote! { crate::wire::put_each(&#record.#name, out); },
            Layout::Skipped => quote! {},
        }
    }

    /// Returns the expression that reads the field.
    fn get(&self) -> TokenStream {
        let kind = self.kind;
        let get = match self.said.place {
            Layout::Field => quote! { crate::wire::Wire::get_version(cursor, version)? },
            Layout::Flattened => quote! { crate::wire::Wire::get(cursor)? },
            Layout::FlattenedNullable => quote! { crate::wire::Flat::get_flat(cursor, version)? },
            Layout::Fields(_) => quote! {{
                let mut fields = <#kind as Default>::default();
                crate::wire::get_each(cursor, &mut fields)?;
                fields
            }},
            Layout::Skipped => return quote! { Default::default() },
        };
        match self.said.since {
            1 => get,
            since => quote! { if version >= #since { #get } else { Default::default() } },
        }
    }

    /// Returns `statement`, to be executed only if the written version has the field.
    fn if_written(&self, statement: &TokenStream) -> TokenStream {
        match self.said.since {
            1 => quote! { #statement },
            since => quote! { if version >= #since { #statement } },
        }
    }
}

/// True if a type is written as an `Option`.
fn is_option(kind: &Type) -> bool {
    match kind {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "Option"),
        _ => false,
    }
}

/// Returns the fields of a struct. Fields of later versions must be the last ones.
fn members<'a>(name: &Ident, fields: &'a Fields) -> Result<Vec<Member<'a>>, Error> {
    let members = fields.iter().map(|field| Member::of(name, field)).collect::<Result<Vec<_>, _>>()?;
    if !members.is_sorted_by_key(|member| member.said.since) {
        return Err(Error::new(name.span(), "fields of later versions must be the last ones"));
    }
    Ok(members)
}

/// Implements `Shaped`.
fn shaped(input: &DeriveInput, members: &[Member<'_>]) -> TokenStream {
    let name = &input.ident;
    let shapes = members.iter().filter_map(Member::shape);
    let shape =
        named(name, &doc_of(&input.attrs), &quote! { crate::shape::Content::Record(&[#(#shapes),*]) });
    let (parameters, arguments, _) = input.generics.split_for_impl();
    let lengths = members.iter().filter_map(Member::has_length);
    quote! {
        #(#lengths)*

        impl #parameters crate::shape::Shaped for #name #arguments {
            #shape
        }
    }
}

/// Returns the lifetime of the datum, and the parameters of an implementation. The lifetime is the type's own, if it
/// has one.
fn datum(generics: &Generics) -> (Lifetime, Generics) {
    let mut parameters = generics.clone();
    if let Some(own) = generics.lifetimes().next() {
        return (own.lifetime.clone(), parameters);
    }
    let datum: Lifetime = parse_quote!('datum);
    parameters.params.insert(0, GenericParam::Lifetime(parse_quote!(#datum)));
    (datum, parameters)
}

/// Implements `Shaped` and `Wire`.
pub(crate) fn wire(input: &DeriveInput, fields: &Fields) -> Result<TokenStream, Error> {
    let name = &input.ident;
    Said::of(&input.attrs, NOTHING)?;
    let members = members(name, fields)?;
    let shaped = shaped(input, &members);
    let puts = members.iter().map(|member| member.if_written(&member.put(&quote! { self })));
    let put = quote! { #(#puts)* };
    let (names, gets) = (members.iter().map(|member| member.name), members.iter().map(Member::get));
    let get = quote! { Ok(Self { #(#names: #gets,)* }) };
    let (datum, parameters) = datum(&input.generics);
    let (parameters, ..) = parameters.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        #shaped

        impl #parameters crate::wire::Wire<#datum> for #name #arguments {
            fn put(&self, out: &mut Vec<u8>) {
                Self::put_version(self, crate::wire::NEWEST, out);
            }

            fn get(cursor: &mut crate::cursor::Cursor<#datum>) -> Result<Self, crate::error::DecodeError> {
                Self::get_version(cursor, crate::wire::NEWEST)
            }

            #[allow(unused_variables)]
            fn put_version(&self, version: u32, out: &mut Vec<u8>) {
                #put
            }

            #[allow(unused_variables)]
            fn get_version(
                cursor: &mut crate::cursor::Cursor<#datum>,
                version: u32,
            ) -> Result<Self, crate::error::DecodeError> {
                #get
            }
        }
    })
}

/// Implements `Shaped` and `Flat`.
pub(crate) fn flat(input: &DeriveInput, fields: &Fields) -> Result<TokenStream, Error> {
    let name = &input.ident;
    let members = members(name, fields)?;
    if let Some(member) = members.iter().find(|member| !member.may_be_flat()) {
        return Err(Error::new(member.name.span(), "a flattened record cannot have this field"));
    }
    let shaped = shaped(input, &members);
    let record = quote! { record };
    let put = members.iter().map(|member| {
        let field = member.name;
        let put = match member.is_given() {
            true => quote! { crate::wire::Wire::put_some(&record.#field, out); },
            false => member.put(&record),
        };
        member.if_written(&put)
    });
    // If the record is missing, fields of the first version are null, and their nulls are written together; later
    // fields have their defaults.
    let (first, later): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.said.since == 1);
    let nulls = first.iter().map(|member| match &member.said.place {
        Layout::Fields(fields) => quote! { #fields.len() },
        _ => quote! { 1 },
    });
    let put_defaults = later.iter().map(|member| {
        let kind = member.kind;
        member.if_written(&quote! { crate::wire::Wire::put(&<#kind as Default>::default(), out); })
    });
    let names: Vec<_> = members.iter().map(|member| member.name).collect();
    let get = members.iter().map(|member| {
        let (name, kind, get) = (member.name, member.kind, member.get());
        match member.is_given() {
            true => quote! { let #name: Option<#kind> = #get; },
            false => quote! { let #name: #kind = #get; },
        }
    });
    let (given, others): (Vec<_>, Vec<_>) = members.iter().partition(|member| member.is_given());
    let given: Vec<_> = given.iter().map(|member| member.name).collect();
    if given.is_empty() {
        return Err(Error::new(
            name.span(),
            "a flattened record needs a field that is never null and has no default",
        ));
    }
    let (other_names, other_kinds) =
        (others.iter().map(|member| member.name), others.iter().map(|member| member.kind));
    let nones = given.iter().map(|_| quote! { None });
    let message = format!("a part of {name} is null, and another is not");
    let check = Said::of(&input.attrs, OF_FLAT)?
        .check
        .map(|check| quote! { #check(&record).map_err(|what| cursor.malformed(what))?; });
    let (datum, parameters) = datum(&input.generics);
    let (parameters, ..) = parameters.split_for_impl();
    let (_, arguments, _) = input.generics.split_for_impl();
    Ok(quote! {
        #shaped

        impl #parameters crate::wire::Flat<#datum> for #name #arguments {
            #[allow(unused_variables)]
            fn put_flat(record: Option<&Self>, version: u32, out: &mut Vec<u8>) {
                match record {
                    Some(record) => {
                        #(#put)*
                    }
                    None => {
                        out.extend_from_slice(&[crate::wire::NULL; 0 #(+ #nulls)*]);
                        #(#put_defaults)*
                    }
                }
            }

            #[allow(unused_variables)]
            fn get_flat(
                cursor: &mut crate::cursor::Cursor<#datum>,
                version: u32,
            ) -> Result<Option<Self>, crate::error::DecodeError> {
                #(#get)*
                match (#(#given,)*) {
                    (#(Some(#given),)*) => {
                        let record = Self { #(#names,)* };
                        #check
                        Ok(Some(record))
                    }
                    (#(#nones,)*) if true #(&& #other_names == <#other_kinds as Default>::default())* => Ok(None),
                    _ => Err(cursor.malformed(#message)),
                }
            }
        }
    })
}
