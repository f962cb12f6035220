//! Parses conditions. An error names the place of the mistake.

use std::fmt;

use winnow::combinator::{alt, delimited, eof, not, preceded, repeat, separated, terminated};
use winnow::error::{ErrMode, ParserError};
use winnow::token::{none_of, one_of, take_while};
use winnow::{ModalResult, Parser};

use super::{Comparison, Expression, FIELDS, Field, FieldKind, OPERATORS, Operator, Predicate, Value};

/// Longest condition, in bytes.
const BYTES_MAX: usize = 4_096;
/// Deepest nesting of parentheses and negations.
const DEPTH_MAX: usize = 64;

/// The error for a text that is not a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredicateError {
    /// The text.
    pub text: String,
    /// Index of the character at the mistake, from 0; the number of characters if the end is missing.
    pub character: usize,
    /// Description of the mistake and of the correct form.
    pub mistake: String,
}

impl fmt::Display for PredicateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, character, mistake } = self;
        write!(f, "character {}: {mistake}", character + 1)?;
        // Below a text of several lines, a caret would not point at the place.
        if text.chars().any(char::is_control) || text.len() > BYTES_MAX {
            return Ok(());
        }
        write!(f, "\n  {text}\n  {}^", " ".repeat(*character))
    }
}

impl std::error::Error for PredicateError {}

impl Predicate {
    /// Parses a condition. `parse_time` converts a time in words to nanoseconds since the epoch.
    ///
    /// # Errors
    /// If the text is not a condition. The error names the place and, for a field or a value, the allowed ones.
    pub fn parse(text: &str, parse_time: &dyn Fn(&str) -> Option<i64>) -> Result<Self, PredicateError> {
        let error = |character, mistake| PredicateError { text: text.to_owned(), character, mistake };
        if text.len() > BYTES_MAX {
            return Err(error(0, format!("a condition may have at most {BYTES_MAX} bytes")));
        }
        let grammar = Grammar { text, parse_time };
        let mut rest = text;
        let parsed = grammar.whole(&mut rest).map_err(|failed| {
            // The text is complete, so the parser never asks for more input.
            let Mistake { left, words } = failed.into_inner().unwrap_or_else(|_| Mistake::from_input(&""));
            error(grammar.character(text.len() - left), words)
        });
        parsed.map(|expression| Self { expression })
    }
}

/// Description of the mistake, and the number of bytes from its place to the end of the text.
#[derive(Debug)]
struct Mistake {
    left: usize,
    words: String,
}

impl<'a> ParserError<&'a str> for Mistake {
    type Inner = Self;

    fn from_input(input: &&'a str) -> Self {
        Self { left: input.len(), words: String::new() }
    }

    fn into_inner(self) -> Result<Self, Self> {
        Ok(self)
    }
}

type Parsed<T> = ModalResult<T, Mistake>;

/// Ends parsing with a mistake at the beginning of the remaining text.
fn mistake<T>(rest: &str, words: String) -> Parsed<T> {
    Err(ErrMode::Cut(Mistake { left: rest.len(), words }))
}

/// True if a character may be in a word without quotes.
pub(super) fn is_word(character: char) -> bool {
    !character.is_whitespace() && !character.is_control() && !"=!<>&|()\"\\".contains(character)
}

fn blanks<'a>(input: &mut &'a str) -> Parsed<&'a str> {
    take_while(0.., char::is_whitespace).parse_next(input)
}

fn word<'a>(input: &mut &'a str) -> Parsed<&'a str> {
    take_while(1.., is_word).parse_next(input)
}

/// Parses a word in quotes.
fn quoted(input: &mut &str) -> Parsed<String> {
    let opened = *input;
    let character = alt((none_of(['"', '\\']), preceded('\\', one_of(['"', '\\']))));
    let word = preceded('"', repeat(0.., character)).parse_next(input)?;
    match input.chars().next() {
        Some('"') => '"'.value(word).parse_next(input),
        Some(_) => mistake(input, "in quotes, \\ may stand only before \" or \\".to_owned()),
        None => mistake(opened, "the closing quote is missing".to_owned()),
    }
}

/// Returns the sign, word or character at the beginning of a text, as an error describes it. Returns an error if it is
/// not allowed anywhere.
fn found(rest: &str) -> Result<String, String> {
    let signs = OPERATORS.map(|(sign, _)| sign).into_iter().chain(["&&", "||", "!", "(", ")"]);
    if let Some(sign) = signs.into_iter().find(|sign| rest.starts_with(sign)) {
        return Ok(sign.to_owned());
    }
    match rest.chars().next() {
        None => Ok(String::new()),
        Some('"') => Ok(quoted(&mut &*rest).map_or_else(|_| "\"".to_owned(), |word| format!("{word:?}"))),
        Some(one @ ('&' | '|')) => Err(format!("a single {one} has no meaning: write {one}{one}")),
        Some(one) if !is_word(one) => Err(format!("{one:?} needs double quotes around it here")),
        Some(_) => Ok(format!("{:?}", word(&mut &*rest).unwrap_or_default())),
    }
}

/// Skips blanks and runs a parser. If it fails, `words` makes the message from the text found there.
fn expected<'a, T>(
    mut parser: impl Parser<&'a str, T, ErrMode<Mistake>>,
    words: impl Fn(String) -> String,
) -> impl FnMut(&mut &'a str) -> Parsed<T> {
    move |input| {
        blanks(input)?;
        let here = *input;
        parser.parse_next(input).or_else(|error| match error {
            ErrMode::Backtrack(_) => mistake(here, found(here).map_or_else(|error| error, &words)),
            other => Err(other),
        })
    }
}

/// Parses one part, or several parts separated by a sign.
fn list<'a>(
    sign: &'static str,
    part: impl Parser<&'a str, Expression, ErrMode<Mistake>>,
    of: fn(Vec<Expression>) -> Expression,
) -> impl Parser<&'a str, Expression, ErrMode<Mistake>> {
    let parts = separated(1.., part, preceded(blanks, sign));
    parts.map(move |mut parts: Vec<_>| if parts.len() > 1 { of(parts) } else { parts.swap_remove(0) })
}

struct Grammar<'a> {
    text: &'a str,
    parse_time: &'a dyn Fn(&str) -> Option<i64>,
}

impl<'a> Grammar<'a> {
    /// Returns the index of the character at a byte.
    fn character(&self, byte: usize) -> usize {
        self.text[..byte].chars().count()
    }

    fn whole(&self, input: &mut &'a str) -> Parsed<Expression> {
        let end = expected(eof, |found| format!("expected && or || before {found}"));
        terminated(|input: &mut _| self.any(input, 0), end).parse_next(input)
    }

    /// Parses a condition inside `depth` parentheses and negations.
    fn any(&self, input: &mut &'a str, depth: usize) -> Parsed<Expression> {
        let all = list("&&", |input: &mut _| self.one(input, depth), Expression::All);
        list("||", all, Expression::Any).parse_next(input)
    }

    fn one(&self, input: &mut &'a str, depth: usize) -> Parsed<Expression> {
        blanks(input)?;
        if depth == DEPTH_MAX {
            return mistake(
                input,
                format!("parentheses and negations may be nested at most {DEPTH_MAX} deep"),
            );
        }
        let opened = self.character(self.text.len() - input.len()) + 1;
        let negated = preceded(('!', not('=')), |input: &mut _| self.one(input, depth + 1));
        let closed = expected(')', |_| format!("the ) is missing for the ( at character {opened}"));
        let group = delimited('(', |input: &mut _| self.any(input, depth + 1), closed);
        let comparison = |input: &mut _| self.comparison(input);
        alt((
            negated.map(|inner| Expression::Not(Box::new(inner))),
            group,
            comparison.map(Expression::Compare),
        ))
        .parse_next(input)
    }

    fn comparison(&self, input: &mut &'a str) -> Parsed<Comparison> {
        let name_at = *input;
        let missing = |found: String| match found.as_str() {
            "" => format!("expected a field: {}", names()),
            found => format!("expected a field instead of {found}: {}", names()),
        };
        let name = expected(word, missing).parse_next(input)?;
        let Some(field) = Field::named(name) else {
            return mistake(name_at, format!("there is no field {name:?}; the fields are {}", names()));
        };
        let signs = alt(OPERATORS.map(|(sign, operator)| sign.value(operator)));
        let missing = |_| format!("expected = != < <= > or >= after {name}");
        blanks(input)?;
        let operator_at = *input;
        let operator = expected(signs, missing).parse_next(input)?;
        let missing = |_| format!("expected a value to compare {name} with");
        blanks(input)?;
        let value_at = *input;
        let text = expected(alt((quoted, word.map(str::to_owned))), missing).parse_next(input)?;
        let value = self.value(field, &text).or_else(|words| mistake(value_at, words))?;
        let is_order = !matches!(operator, Operator::Equal | Operator::Unequal);
        if is_order && !matches!(value, Value::Number(_)) {
            let words = format!("{name} has no order: compare it with {text:?} only by = and !=");
            return mistake(operator_at, words);
        }
        Ok(Comparison { field, operator, text, value })
    }

    fn value(&self, field: Field, text: &str) -> Result<Value, String> {
        let name = field.name();
        match field.kind() {
            FieldKind::Number => number(text)
                .ok_or_else(|| format!("{name} is a whole number, not {text:?}"))
                .map(Value::Number),
            FieldKind::Time => {
                number(text).or_else(|| (self.parse_time)(text)).map(Value::Number).ok_or_else(|| {
                    format!(
                        "{name} is a time such as 2026-11-24T03:00:00Z, or ns since the epoch, not {text:?}"
                    )
                })
            }
            FieldKind::Lane => Ok(number(text).map_or_else(|| Value::Text(text.to_owned()), Value::Number)),
            FieldKind::Text => Ok(Value::Text(text.to_owned())),
            FieldKind::Word(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                Some(word) => Ok(Value::Text((*word).to_owned())),
                None => Err(format!("{name} is one of {}, not {text:?}", words.join(", "))),
            },
            FieldKind::Flag => match text.to_ascii_lowercase().as_str() {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => Err(format!("{name} is true or false, not {text:?}")),
            },
        }
    }
}

/// Parses an integer, whose digits may be separated by underscores.
fn number(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn names() -> String {
    FIELDS.map(|(_, name, _)| name).join(", ")
}
