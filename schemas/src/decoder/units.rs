//! Units of times in writer schemas: only nanoseconds are accepted. A number of milliseconds, read as nanoseconds,
//! would be a time in 1970.

use apache_avro::Schema;

use crate::error::SchemaError;
use crate::long_field::LongField;

/// Refuses a tick schema with another unit in one of the published fields.
pub(super) fn check(schema: &Schema) -> Result<(), SchemaError> {
    let Schema::Record(record) = schema else { return Ok(()) };
    let ours = |name: &str| LongField::named(name).is_some() || LongField::scaled_named(name).is_some();
    for field in record.fields.iter().filter(|field| ours(&field.name)) {
        if let Some(unit) = other_unit(&field.schema, field.name.ends_with("_time_ns")) {
            let name = &field.name;
            let detail = if name.ends_with("_time_ns") {
                format!("{name} is {unit}, and has to be in nanoseconds: write timestamp-nanos or long")
            } else {
                format!("{name} is {unit}, and no time: write long")
            };
            return Err(SchemaError::Unresolvable { name: crate::known::TICK.name, detail });
        }
    }
    Ok(())
}

/// Returns the unit that a field has instead of nanoseconds, within its array or union; `None` if it has none.
fn other_unit(schema: &Schema, is_time: bool) -> Option<&'static str> {
    match schema {
        Schema::Array(array) => other_unit(&array.items, is_time),
        Schema::Union(union) => union.variants().iter().find_map(|branch| other_unit(branch, is_time)),
        Schema::TimestampNanos if is_time => None,
        Schema::TimestampNanos => Some("timestamp-nanos"),
        Schema::TimestampMillis => Some("timestamp-millis"),
        Schema::TimestampMicros => Some("timestamp-micros"),
        Schema::LocalTimestampMillis => Some("local-timestamp-millis"),
        Schema::LocalTimestampMicros => Some("local-timestamp-micros"),
        Schema::LocalTimestampNanos => Some("local-timestamp-nanos"),
        Schema::TimeMillis => Some("time-millis"),
        Schema::TimeMicros => Some("time-micros"),
        Schema::Date => Some("date"),
        _ => None,
    }
}
