//! Log lines for people: time, level, place, message. A notice has only its message.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::{Format, FormatFields, Full, Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent};
use tracing_subscriber::registry::LookupSpan;

use super::{NOTICE, WallClock};
use crate::printable::{printable, printable_line};

/// Formats fields in printable form. Colours come only from the rest of the line, which the program writes itself.
pub(super) fn fields() -> impl for<'writer> FormatFields<'writer> + Send + Sync + 'static {
    debug_fn(|writer, field, value| {
        let value = format!("{value:?}");
        match field.name() {
            "message" => write!(writer, "{}", printable_line(&value)),
            name => write!(writer, "{name}={}", printable_line(&value)),
        }
    })
    .delimited(" ")
}

/// Formats events.
pub(super) struct TextLines(Format<Full, WallClock>);

impl TextLines {
    pub(super) fn new() -> Self {
        Self(Format::default().with_timer(WallClock))
    }
}

impl<S, N> FormatEvent<S, N> for TextLines
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
        if event.metadata().target() != NOTICE {
            return self.0.format_event(context, writer, event);
        }
        let kind = match *event.metadata().level() {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        };
        let mut words = String::new();
        words_alone().format_fields(Writer::new(&mut words), event)?;
        writeln!(writer, "{kind}{}", printable(&words))
    }
}

/// Formats the message alone, without the fields, which repeat it for machines.
fn words_alone() -> impl for<'writer> FormatFields<'writer> {
    debug_fn(|writer, field, value| match field.name() {
        "message" => write!(writer, "{value:?}"),
        _ => Ok(()),
    })
}
