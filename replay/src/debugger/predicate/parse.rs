//! Reads a condition. What is none is an error that says where.

use std::fmt;

use super::{Comparison, Expression, FIELDS, Field, Kind, OPERATORS, Operator, Predicate, Value};

/// Bytes of a condition.
const BYTES_MAX: usize = 4_096;
/// Parentheses and negations within each other.
const DEPTH_MAX: usize = 64;

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredicateError {
    /// The text.
    pub text: String,
    /// Number of the character that it is about, from 0: the number of characters where something is missing at the end.
    pub character: usize,
    /// What is wrong there, and what would be right.
    pub mistake: String,
}

impl fmt::Display for PredicateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, character, mistake } = self;
        write!(f, "character {}: {mistake}", character + 1)?;
        // A caret below a text of several lines would point at nothing.
        if text.chars().any(char::is_control) || text.len() > BYTES_MAX {
            return Ok(());
        }
        write!(f, "\n  {text}\n  {}^", " ".repeat(*character))
    }
}

impl std::error::Error for PredicateError {}

impl Predicate {
    /// Reads a condition. `parse_time` gives the nanoseconds since the epoch of a time in words.
    ///
    /// # Errors
    /// If the text is none, with the place and, for a field or a value, what there is.
    pub fn parse(text: &str, parse_time: &dyn Fn(&str) -> Option<i64>) -> Result<Self, PredicateError> {
        let error =
            |character: usize, mistake: String| PredicateError { text: text.to_owned(), character, mistake };
        if text.len() > BYTES_MAX {
            return Err(error(0, format!("a condition has {BYTES_MAX} bytes at most")));
        }
        let tokens = tokens(text).map_err(|(character, mistake)| error(character, mistake))?;
        let end = text.chars().count();
        let mut parser = Parser { tokens, next: 0, end, depth: 0, parse_time };
        let parsed = parser.any().and_then(|expression| match parser.peek() {
            None => Ok(Self { expression }),
            Some(token) => Err((parser.here(), format!("&& or || is expected before {token}"))),
        });
        parsed.map_err(|(character, mistake)| error(character, mistake))
    }
}

/// A place and what is wrong there.
type Mistake = (usize, String);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// A field or a value, and whether it stands in quotes.
    Word(String, bool),
    Operator(Operator),
    And,
    Or,
    Not,
    Open,
    Close,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word, _) => write!(f, "{word:?}"),
            Self::Operator(operator) => {
                let sign = OPERATORS.iter().rfind(|(_, known)| known == operator);
                f.write_str(sign.map_or("", |(sign, _)| sign))
            }
            Self::And => f.write_str("&&"),
            Self::Or => f.write_str("||"),
            Self::Not => f.write_str("!"),
            Self::Open => f.write_str("("),
            Self::Close => f.write_str(")"),
        }
    }
}

/// Whether a character may stand in a word without quotes.
pub(super) fn is_word(character: char) -> bool {
    !character.is_whitespace() && !character.is_control() && !"=!<>&|()\"\\".contains(character)
}

/// The tokens with the number of the character that each begins at.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    let characters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        if character.is_whitespace() {
            at += 1;
            continue;
        }
        let (token, length) = token_at(&characters[at..]).map_err(|mistake| (at, mistake))?;
        tokens.push((at, token));
        at += length;
    }
    Ok(tokens)
}

/// The token at the beginning of some characters, and how many of them it has.
fn token_at(rest: &[char]) -> Result<(Token, usize), String> {
    let begins = |sign: &str| sign.chars().eq(rest.iter().copied().take(sign.len()));
    if let Some((sign, operator)) = OPERATORS.iter().find(|(sign, _)| begins(sign)) {
        return Ok((Token::Operator(*operator), sign.len()));
    }
    for (sign, token) in [("&&", Token::And), ("||", Token::Or)] {
        if begins(sign) {
            return Ok((token, 2));
        }
    }
    match rest[0] {
        '!' => Ok((Token::Not, 1)),
        '(' => Ok((Token::Open, 1)),
        ')' => Ok((Token::Close, 1)),
        '"' => quoted(rest),
        '&' => Err("one & means nothing: write &&".to_owned()),
        '|' => Err("one | means nothing: write ||".to_owned()),
        character if !is_word(character) => {
            Err(format!("{character:?} cannot stand here without double quotes around it"))
        }
        _ => {
            let word: String = rest.iter().copied().take_while(|character| is_word(*character)).collect();
            let length = word.chars().count();
            Ok((Token::Word(word, false), length))
        }
    }
}

/// A word in quotes.
fn quoted(rest: &[char]) -> Result<(Token, usize), String> {
    let (mut word, mut at) = (String::new(), 1);
    loop {
        match (rest.get(at), rest.get(at + 1)) {
            (Some('"'), _) => return Ok((Token::Word(word, true), at + 1)),
            (Some('\\'), Some(&escaped @ ('"' | '\\'))) => {
                word.push(escaped);
                at += 2;
            }
            (Some('\\'), _) => return Err("in quotes, \\ stands before \" or \\ alone".to_owned()),
            (Some(&character), _) => {
                word.push(character);
                at += 1;
            }
            (None, _) => return Err("the closing quote is missing".to_owned()),
        }
    }
}

struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    next: usize,
    /// Number of characters of the text.
    end: usize,
    depth: usize,
    parse_time: &'a dyn Fn(&str) -> Option<i64>,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// Number of the character that the next token begins at.
    fn here(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_next = self.peek() == Some(token);
        self.next += usize::from(is_next);
        is_next
    }

    fn any(&mut self) -> Result<Expression, Mistake> {
        self.list(&Token::Or, Self::all, Expression::Any)
    }

    fn all(&mut self) -> Result<Expression, Mistake> {
        self.list(&Token::And, Self::one, Expression::All)
    }

    fn list(
        &mut self,
        between: &Token,
        part: fn(&mut Self) -> Result<Expression, Mistake>,
        of: fn(Vec<Expression>) -> Expression,
    ) -> Result<Expression, Mistake> {
        let first = part(self)?;
        let mut parts = vec![first];
        while self.take(between) {
            parts.push(part(self)?);
        }
        if parts.len() > 1 {
            return Ok(of(parts));
        }
        Ok(parts.swap_remove(0))
    }

    fn one(&mut self) -> Result<Expression, Mistake> {
        if self.depth == DEPTH_MAX {
            return Err((
                self.here(),
                format!("{DEPTH_MAX} parentheses and negations may be within each other"),
            ));
        }
        let begin = self.here();
        if self.take(&Token::Not) {
            self.depth += 1;
            let inner = self.one()?;
            self.depth -= 1;
            return Ok(Expression::Not(Box::new(inner)));
        }
        if self.take(&Token::Open) {
            self.depth += 1;
            let inner = self.any()?;
            self.depth -= 1;
            if !self.take(&Token::Close) {
                let opened = format!("the ) is missing for the ( at character {}", begin + 1);
                return Err((self.here(), opened));
            }
            return Ok(inner);
        }
        self.comparison().map(Expression::Compare)
    }

    fn comparison(&mut self) -> Result<Comparison, Mistake> {
        let at = self.here();
        let name = match self.peek() {
            Some(Token::Word(word, false)) => word.clone(),
            Some(other) => return Err((at, format!("a field is expected, and not {other}: {}", names()))),
            None => return Err((at, format!("a field is expected: {}", names()))),
        };
        let field = Field::named(&name)
            .ok_or_else(|| (at, format!("there is no field {name:?}: there are {}", names())))?;
        self.next += 1;
        let operator_at = self.here();
        let operator = match self.peek() {
            Some(Token::Operator(operator)) => *operator,
            _ => return Err((operator_at, format!("= != < <= > or >= is expected behind {name}"))),
        };
        self.next += 1;
        let at = self.here();
        let text = match self.peek() {
            Some(Token::Word(word, _)) => word.clone(),
            _ => return Err((at, format!("a value is expected that {name} is compared with"))),
        };
        self.next += 1;
        let value = self.value(field, &text).map_err(|mistake| (at, mistake))?;
        let is_order = !matches!(operator, Operator::Equal | Operator::Unequal);
        if is_order && !matches!(value, Value::Number(_)) {
            let words = format!("{name} has no order for {text:?}: only = and != compare it");
            return Err((operator_at, words));
        }
        Ok(Comparison { field, operator, text, value })
    }

    fn value(&self, field: Field, text: &str) -> Result<Value, String> {
        let name = field.name();
        match field.kind() {
            Kind::Number => {
                number(text).ok_or_else(|| format!("{name} is a whole number, and not {text:?}")).map(Value::Number)
            }
            Kind::Time => number(text).or_else(|| (self.parse_time)(text)).map(Value::Number).ok_or_else(|| {
                format!("{name} is a time such as 2026-11-24T03:00:00Z, or ns since the epoch, and not {text:?}")
            }),
            Kind::Lane => Ok(number(text).map_or_else(|| Value::Text(text.to_owned()), Value::Number)),
            Kind::Text => Ok(Value::Text(text.to_owned())),
            Kind::Word(words) => match words.iter().find(|word| word.eq_ignore_ascii_case(text)) {
                Some(word) => Ok(Value::Text((*word).to_owned())),
                None => Err(format!("{name} is one of {}, and not {text:?}", words.join(", "))),
            },
            Kind::Flag => match text.to_ascii_lowercase().as_str() {
                "true" => Ok(Value::Flag(true)),
                "false" => Ok(Value::Flag(false)),
                _ => Err(format!("{name} is true or false, and not {text:?}")),
            },
        }
    }
}

/// A whole number; underscores may part its digits.
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
