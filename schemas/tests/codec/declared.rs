//! The schema files are generated from the types of records.
//!
//! `WARPTAPE_UPDATE_SCHEMAS=1 cargo test -p warptape-schemas --test codec` writes them.

use std::collections::BTreeSet;
use std::path::Path;

use warptape_schemas::control::{Control, ControlResult};
use warptape_schemas::journal::JournalEntry;
use warptape_schemas::known;
use warptape_schemas::packed_tick_batch::PackedTickBatch;
use warptape_schemas::risk::{RiskRequest, RiskResult};
use warptape_schemas::shape::{Content, FieldShape, Member, Named, Shape, Shaped};
use warptape_schemas::signal::Signal;
use warptape_schemas::tick::Tick;
use warptape_schemas::tick_batch::{ScaledTickBatch, TickBatch};
use warptape_schemas::{DeadLetter, Feed, LateTick, Lifecycle, SetEventTime, Snapshot};

/// The declaration of each record's type.
const DECLARED: [Shape; known::CURRENT.len()] = [
    Tick::SHAPE,
    TickBatch::SHAPE,
    ScaledTickBatch::SHAPE,
    PackedTickBatch::SHAPE,
    Signal::SHAPE,
    JournalEntry::SHAPE,
    Snapshot::SHAPE,
    LateTick::SHAPE,
    DeadLetter::SHAPE,
    Lifecycle::SHAPE,
    RiskRequest::SHAPE,
    RiskResult::SHAPE,
    Feed::SHAPE,
    Control::SHAPE,
    ControlResult::SHAPE,
    SetEventTime::SHAPE,
];
/// Longest list that stays on one line, in characters.
const LINE_MAX: usize = 80;

#[test]
fn schemas_are_what_types_declare() {
    for (schema, shape) in known::CURRENT.into_iter().zip(DECLARED) {
        assert!(
            matches!(shape, Shape::Named(named) if named.name == schema.name),
            "{} is in its place",
            schema.name
        );
        let written = Writer::default().schema(shape);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("avro").join(format!("{}.avsc", schema.file));
        if std::env::var_os("WARPTAPE_UPDATE_SCHEMAS").is_some() {
            std::fs::write(&path, &written).expect("the file can be written");
        }
        let found = std::fs::read_to_string(&path).expect("the file can be read");
        assert!(
            found == written,
            "{} is not what {} declares: WARPTAPE_UPDATE_SCHEMAS=1 writes it",
            path.display(),
            schema.name
        );
    }
}

/// Writes Avro types. A named type is written in full at its first occurrence.
#[derive(Default)]
struct Writer {
    written: BTreeSet<&'static str>,
}

impl Writer {
    fn schema(mut self, shape: Shape) -> String {
        self.shape(shape, 0) + "\n"
    }

    fn shape(&mut self, shape: Shape, depth: usize) -> String {
        match shape {
            Shape::Boolean => quoted("boolean"),
            Shape::Int => quoted("int"),
            Shape::Long => quoted("long"),
            Shape::Double => quoted("double"),
            Shape::String => quoted("string"),
            Shape::Bytes => quoted("bytes"),
            Shape::Array(items) => {
                let items = self.shape(*items, depth + 1);
                object(&[("type", quoted("array")), ("items", items)], depth)
            }
            Shape::Map(values) => {
                let values = self.shape(*values, depth + 1);
                object(&[("type", quoted("map")), ("values", values)], depth)
            }
            Shape::Nullable(other) => {
                let other = self.shape(*other, depth + 1);
                list(&[quoted("null"), other], depth)
            }
            Shape::Union(branches) => {
                let branches: Vec<_> =
                    branches.iter().map(|branch| self.shape(**branch, depth + 1)).collect();
                list(&branches, depth)
            }
            Shape::Named(named) => self.named(named, depth),
        }
    }

    fn named(&mut self, named: &Named, depth: usize) -> String {
        if !self.written.insert(named.name) {
            return quoted(named.name);
        }
        let kind = match named.content {
            Content::Record(_) => "record",
            Content::Enum { .. } => "enum",
            Content::Fixed(_) => "fixed",
        };
        let mut members = vec![("type", quoted(kind)), ("name", quoted(named.name))];
        if depth == 0 {
            members.push(("namespace", quoted("warptape")));
        }
        members.push(("doc", quoted(&documented(named))));
        match named.content {
            Content::Record(fields) => {
                let fields: Vec<_> = flat(fields).iter().map(|field| self.field(field, depth + 2)).collect();
                members.push(("fields", list(&fields, depth + 1)));
            }
            Content::Enum { variants, default } => {
                let symbols: Vec<_> = variants.iter().map(|(variant, _)| quoted(&symbol(variant))).collect();
                members.push(("symbols", list(&symbols, depth + 1)));
                members.extend(default.map(|default| ("default", quoted(&symbol(default)))));
            }
            Content::Fixed(bytes) => members.push(("size", bytes.to_string())),
        }
        object(&members, depth)
    }

    fn field(&mut self, field: &FieldShape, depth: usize) -> String {
        let kind = self.shape(field.shape, depth + 1);
        let mut members = vec![("name", quoted(field.name)), ("type", kind)];
        members.extend(field.default.map(|default| ("default", default.to_owned())));
        members.push(("doc", quoted(field.doc)));
        object(&members, depth)
    }
}

/// Returns the fields of a record, with those of flattened records in their places.
fn flat(members: &'static [Member]) -> Vec<FieldShape> {
    let fields = |member: &Member| match *member {
        Member::Field(field) => vec![field],
        Member::Fields(members) => {
            flat(members).into_iter().map(|field| FieldShape { default: None, ..field }).collect()
        }
        Member::NullableFields(members) => flat(members).into_iter().map(nullable).collect(),
    };
    members.iter().flat_map(fields).collect()
}

/// Returns a field of an optional record: nullable, unless it has its own default.
fn nullable(field: FieldShape) -> FieldShape {
    let shape = match (field.default, field.shape) {
        (Some(_), _) => return field,
        (None, shape @ Shape::Nullable(_)) => shape,
        (None, other) => Shape::Nullable(Box::leak(Box::new(other))),
    };
    FieldShape { shape, default: Some("null"), ..field }
}

/// Returns the documentation of a type, with that of an enum's variants.
fn documented(named: &Named) -> String {
    let mut doc = named.doc.to_owned();
    if let Content::Enum { variants, .. } = named.content {
        for (variant, told) in variants.iter().filter(|(_, told)| !told.is_empty()) {
            doc += &format!(" {}: {told}", symbol(variant));
        }
    }
    doc
}

/// Returns `NOT_FRAMED` for `NotFramed`.
fn symbol(variant: &str) -> String {
    let mut symbol = String::new();
    for letter in variant.chars() {
        if letter.is_uppercase() && !symbol.is_empty() {
            symbol.push('_');
        }
        symbol.extend(letter.to_uppercase());
    }
    symbol
}

fn quoted(text: &str) -> String {
    assert!(!text.is_empty(), "a type or a field without a comment");
    serde_json::Value::from(text).to_string()
}

fn object(members: &[(&str, String)], depth: usize) -> String {
    let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    let line = members.join(", ");
    match members.iter().any(|member| member.starts_with("\"doc\"") || member.contains('\n')) {
        false => format!("{{{line}}}"),
        true => lines('{', &members, '}', depth),
    }
}

fn list(items: &[String], depth: usize) -> String {
    let line = items.join(", ");
    match line.len() <= LINE_MAX && !line.contains('\n') {
        true => format!("[{line}]"),
        false => lines('[', items, ']', depth),
    }
}

fn lines(open: char, items: &[String], close: char, depth: usize) -> String {
    let indent = "  ".repeat(depth);
    let items: Vec<_> = items.iter().map(|item| format!("{indent}  {item}")).collect();
    format!("{open}\n{}\n{indent}{close}", items.join(",\n"))
}
