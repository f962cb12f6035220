//! Tests of the language: a printed condition parses to the same condition, and an error names the place.

use proptest::prelude::*;

use super::*;

/// Other tests cover the parsing of times, so one time is enough here.
fn time(text: &str) -> Option<i64> {
    (text == "1970-01-01T00:00:02Z").then_some(2_000_000_000)
}

fn parse(text: &str) -> Result<Predicate, PredicateError> {
    Predicate::parse(text, &time)
}

#[track_caller]
fn refused(text: &str, character: usize, mistake: &str) {
    let error = parse(text).expect_err("it is no condition");
    assert!(error.mistake.contains(mistake), "{mistake:?} is missing in {error}");
    assert_eq!(error.character, character, "{error}");
}

#[test]
fn what_is_no_condition_is_told_with_its_place() {
    refused("", 0, "expected a field: sequence, at, input");
    refused("lane", 4, "expected = != < <= > or >= after lane");
    refused("lane=", 5, "expected a value");
    refused("lane=1 &&", 9, "expected a field");
    refused("lane=1 & queue>5", 7, "write &&");
    refused("lanes=1", 0, "there is no field \"lanes\"; the fields are sequence, at");
    refused("queue>many", 6, "queue is a whole number, not \"many\"");
    refused("queue>99999999999999999999", 6, "a whole number");
    refused("at>yesterday", 3, "a time such as");
    refused("lane>cuda:1", 4, "lane has no order");
    refused("decision=Placed", 9, "decision is one of Place, Dispatch");
    refused("input=arrived || paused=yes", 24, "true or false");
    refused("(lane=1 && (queue>1)", 20, "the ) is missing for the ( at character 1");
    refused("lane=1)", 6, "expected && or || before )");
    refused("é=1", 0, "there is no field \"é\"");
    refused("reason=\"x", 7, "the closing quote is missing");
    refused(r#"reason="a\b""#, 9, "in quotes, \\ may stand only before");
    refused("reason=a\\b", 8, "double quotes");
    refused(&"(".repeat(100), 64, "at most 64 deep");
    refused(&" ".repeat(5_000), 0, "4096 bytes");
    let shown = parse("lane=1 && colour=red").unwrap_err().to_string();
    assert!(shown.ends_with("\n  lane=1 && colour=red\n            ^"), "{shown}");
}

#[test]
fn conditions_are_printed_as_they_are_read() {
    for (text, printed) in [
        ("lane = cuda:1&&queue>1_000", "lane=cuda:1 && queue>1_000"),
        ("(batch==7)", "batch=7"),
        ("a", ""),
        (
            "!(lane=0||lane=1) && at >= 1970-01-01T00:00:02Z",
            "!(lane=0 || lane=1) && at>=1970-01-01T00:00:02Z",
        ),
        ("lane=0 || lane=1 && queue<-1", "lane=0 || (lane=1 && queue<-1)"),
        (r#"reason = "it \"broke\" \\ here""#, r#"reason="it \"broke\" \\ here""#),
        ("!!paused=true", "!!paused=true"),
    ] {
        match parse(text) {
            Ok(predicate) => assert_eq!(predicate.to_string(), printed),
            Err(error) => assert!(printed.is_empty(), "{error}"),
        }
    }
}

fn comparison() -> impl Strategy<Value = Expression> {
    let value = |field: Field| match field.kind() {
        FieldKind::Number => any::<i64>().prop_map(|number| number.to_string()).boxed(),
        FieldKind::Time => Just("1970-01-01T00:00:02Z".to_owned()).boxed(),
        FieldKind::Text => any::<String>().boxed(),
        FieldKind::Lane => "[a-z0-9:#]{1,8}".boxed(),
        FieldKind::Word(words) => proptest::sample::select(words).prop_map(str::to_owned).boxed(),
        FieldKind::Flag => any::<bool>().prop_map(|flag| flag.to_string()).boxed(),
    };
    let fields = FIELDS.map(|(field, ..)| field).to_vec();
    (proptest::sample::select(fields), any::<bool>()).prop_flat_map(move |(field, is_equal)| {
        value(field).prop_filter_map("it fits", move |text| {
            let operator = if is_equal { "=" } else { "!=" };
            let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
            let read = parse(&format!("{}{operator}\"{quoted}\"", field.name())).ok()?;
            Some(read.expression)
        })
    })
}

fn expression() -> impl Strategy<Value = Expression> {
    comparison().prop_recursive(4, 24, 3, |inner| {
        let list = || proptest::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            inner.clone().prop_map(|inner| Expression::Not(Box::new(inner))),
            list().prop_map(Expression::All),
            list().prop_map(Expression::Any),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(expression in expression()) {
        let predicate = Predicate { expression };
        let text = predicate.to_string();
        prop_assume!(text.len() <= 4_096);
        prop_assert_eq!(parse(&text), Ok(predicate), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        if let Err(error) = parse(&text) {
            prop_assert!(error.character <= text.chars().count());
        }
    }

    #[test]
    fn any_signs_are_read_or_refused(text in r#"([!()=<>&|"\\ ]|lane|queue|paused|true|cuda:1|-?[0-9]+|é|&&|\|\|){0,40}"#) {
        match parse(&text) {
            Ok(predicate) => prop_assert_eq!(parse(&predicate.to_string()), Ok(predicate)),
            Err(error) => prop_assert!(error.character <= text.chars().count()),
        }
    }
}
