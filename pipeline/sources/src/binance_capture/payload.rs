//! The payload of one message of a stream: an event, or an array of events.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

use super::message::{CaptureEvent, CaptureMessage, Fields};
use crate::capture::Scalar;

/// One message of a stream.
#[expect(clippy::large_enum_variant, reason = "nearly every payload is an event, and one lives at a time")]
pub(super) enum Payload<'a> {
    Event(Fields<'a>),
    Events(Events<'a>),
    /// A number, a text, true, false or null.
    Bare,
}

/// An array of events, such as those of `!miniTicker@arr`. None of these is a tick.
#[derive(Default)]
pub(super) struct Events<'a> {
    /// Name of the first event that has a name.
    name: Option<Cow<'a, str>>,
    event_time_ns_max: i64,
}

impl<'a> Events<'a> {
    pub(super) fn into_message(self) -> CaptureMessage<'a> {
        let name = match self.name {
            Some(name) => format!("array of {name}"),
            None => "array without events".to_owned(),
        };
        let event = CaptureEvent::Other(Cow::Owned(name));
        CaptureMessage { event_time_ns_max: self.event_time_ns_max, event }
    }

    fn add(&mut self, event: Payload<'a>) {
        let (name, event_time_ns) = match event {
            Payload::Event(fields) => {
                let time_ns = fields.event_time.optional_time_ns("E").unwrap_or(None);
                (if let Scalar::Text(name) = fields.e { Some(name) } else { None }, time_ns.unwrap_or(0))
            }
            Payload::Events(events) => (events.name, events.event_time_ns_max),
            Payload::Bare => (None, 0),
        };
        self.event_time_ns_max = self.event_time_ns_max.max(event_time_ns);
        self.name = self.name.take().or(name);
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Payload<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PayloadVisitor)
    }
}

struct PayloadVisitor;

impl<'de> Visitor<'de> for PayloadVisitor {
    type Value = Payload<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an event or an array of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Self::Value, A::Error> {
        Fields::deserialize(MapAccessDeserializer::new(entries)).map(Payload::Event)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut events = Events::default();
        while let Some(event) = items.next_element()? {
            events.add(event);
        }
        Ok(Payload::Events(events))
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Payload::Bare)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Payload::Bare)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Payload::Bare)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Payload::Bare)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Payload::Bare)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Payload::Bare)
    }
}
