//! One JSON object per line: `time`, `level`, `target`, `message`, then `fields` and `spans` if there are any.
//!
//! Numbers and booleans keep their JSON type; everything else is text. Line breaks and terminal control sequences are
//! escaped.

use std::error::Error;
use std::fmt::{self, Write};

use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber, span};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{FormatFields, Writer};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::WallClock;
use crate::printable::printable_line;

/// Fields of a span or an event, as the members of a JSON object.
#[derive(Default)]
struct Members {
    message: String,
    /// JSON members, separated by commas.
    others: String,
}

impl Members {
    fn of(fields: impl RecordFields) -> Self {
        let mut members = Self::default();
        fields.record(&mut members);
        members
    }

    fn add(&mut self, field: &Field, value: Value) {
        if field.name() == "message" {
            self.message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            return;
        }
        let separator = if self.others.is_empty() { "" } else { "," };
        write!(self.others, "{separator}{}:{value}", Value::from(field.name()))
            .expect("a string takes any text");
    }
}

impl Visit for Members {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON cannot represent infinities and NaN.
        self.add(field, if value.is_finite() { json!(value) } else { json!(value.to_string()) });
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, json!(value));
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.add(field, i64::try_from(value).map_or_else(|_| json!(value.to_string()), Value::from));
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.add(field, u64::try_from(value).map_or_else(|_| json!(value.to_string()), Value::from));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, json!(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, json!(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add(field, json!(value.to_string()));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, json!(format!("{value:?}")));
    }
}

/// Formats the fields of a span as the members of a JSON object.
pub(super) struct JsonFields;

impl<'writer> FormatFields<'writer> for JsonFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        writer.write_str(&Members::of(fields).others)
    }

    fn add_fields(
        &self,
        current: &'writer mut FormattedFields<Self>,
        fields: &span::Record<'_>,
    ) -> fmt::Result {
        if !current.fields.is_empty() {
            current.fields.push(',');
        }
        self.format_fields(current.as_writer(), fields)
    }
}

/// Formats events.
pub(super) struct JsonLines;

impl<S, N> FormatEvent<S, N> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let Members { message, others } = Members::of(event);
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let mut line = "{\"time\":\"".to_owned();
        WallClock.format_time(&mut Writer::new(&mut line))?;
        write!(
            line,
            "\",\"level\":\"{level}\",\"target\":{},\"message\":{}",
            Value::from(target),
            Value::from(message)
        )?;
        if !others.is_empty() {
            write!(line, ",\"fields\":{{{others}}}")?;
        }
        let mut opening = ",\"spans\":[";
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            write!(line, "{opening}{{\"name\":{}", Value::from(span.name()))?;
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>()
                && !fields.fields.is_empty()
            {
                write!(line, ",\"fields\":{{{}}}", fields.fields)?;
            }
            line.push('}');
            opening = ",";
        }
        line.push_str(if opening == "," { "]}" } else { "}" });
        writeln!(writer, "{}", printable_line(&line))
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Output written so far.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Returns the lines logged by `work`.
    fn logged(work: impl FnOnce()) -> Vec<String> {
        let written = Written::default();
        let writer = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(JsonFields)
            .event_format(JsonLines)
            .finish();
        tracing::subscriber::with_default(subscriber, work);
        let bytes = written.0.lock().expect("nobody panics").clone();
        String::from_utf8(bytes).expect("UTF-8").lines().map(str::to_owned).collect()
    }

    #[test]
    fn values_keep_their_types_and_spans_their_fields() {
        let lines = logged(|| {
            let outer = tracing::debug_span!("restore", partition = 3, found = tracing::field::Empty);
            outer.record("found", true);
            let _outer = outer.entered();
            let _inner = tracing::debug_span!("read").entered();
            tracing::warn!(
                signed = -1i64,
                count = u64::MAX,
                ratio = 0.5,
                none = f64::NAN,
                wide = u128::MAX,
                milliseconds = 12u128,
                known = false,
                text = "a",
                debug = ?Some(1),
                "{} words",
                2
            );
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        let found: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&found["level"], &found["message"]), (&json!("WARN"), &json!("2 words")), "{line}");
        assert_eq!(found["target"], json!(module_path!()), "{line}");
        let time = found["time"].as_str().expect("a time");
        assert!(time.len() == 27 && &time[10..11] == "T" && time.ends_with('Z'), "{time}");
        let fields = json!({
            "signed": -1, "count": u64::MAX, "ratio": 0.5, "none": "NaN", "wide": u128::MAX.to_string(),
            "milliseconds": 12, "known": false, "text": "a", "debug": "Some(1)",
        });
        assert_eq!(found["fields"], fields, "{line}");
        let spans = json!([
            { "name": "restore", "fields": { "partition": 3, "found": true } },
            { "name": "read" },
        ]);
        assert_eq!(found["spans"], spans, "{line}");
    }

    #[test]
    fn what_strangers_wrote_stays_in_its_line_and_its_value() {
        let hostile = "\"}\n{\"level\":\"ERROR\"}\r\u{1b}[2J\u{202e}\u{2028}\u{85}\\\u{0}\u{1f600}";
        let lines = logged(|| {
            let _span = tracing::info_span!("commit", reason = hostile).entered();
            tracing::info!(text = hostile, shown = %hostile, "{hostile}");
        });
        let [line] = &lines[..] else { panic!("{lines:?}") };
        assert!(line.chars().all(|character| character != '\u{1b}' && character != '\u{202e}'), "{line}");
        let found: Value = serde_json::from_str(line).expect("JSON");
        let places = [
            &found["message"],
            &found["fields"]["text"],
            &found["fields"]["shown"],
            &found["spans"][0]["fields"]["reason"],
        ];
        assert!(places.iter().all(|place| place.as_str() == Some(hostile)), "{line}");
    }
}
