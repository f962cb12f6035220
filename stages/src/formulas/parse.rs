//! Expressions: texts to trees.
//!
//! ```text
//!   or  >  and  >  not  >  comparison  >  + -  >  * /  >  - (sign)  >  number, name, call, ( … )
//! ```

/// Most bytes of an expression.
const TEXT_BYTES_MAX: usize = 1_024;
/// Most levels of nesting, so that no text exhausts the stack.
const DEPTH_MAX: usize = 64;

/// An expression, with the places of its parts in the text.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    Name { name: String, at: usize },
    Unary { operator: Unary, of: Box<Expression> },
    Binary { operator: Binary, of: Box<[Expression; 2]> },
    Call { name: String, at: usize, arguments: Vec<Expression> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Minus,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
    Unequal,
    Plus,
    Minus,
    Times,
    Over,
}

/// A mistake at a place of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The place, in bytes.
    pub(super) at: usize,
    /// The mistake and what is allowed, in words.
    pub(super) words: String,
}

impl Mistake {
    pub(super) fn new(at: usize, words: impl Into<String>) -> Self {
        Self { at, words: words.into() }
    }
}

impl Expression {
    /// Calls back for the name of each function, the inner ones first.
    pub(super) fn visit_calls(&self, call: &mut impl FnMut(&str)) {
        match self {
            Self::Number(_) | Self::Name { .. } => {}
            Self::Unary { of, .. } => of.visit_calls(call),
            Self::Binary { of, .. } => of.iter().for_each(|side| side.visit_calls(call)),
            Self::Call { name, arguments, .. } => {
                arguments.iter().for_each(|argument| argument.visit_calls(call));
                call(name);
            }
        }
    }

    /// Calls back for each name, in the order of the text.
    pub(super) fn visit_names(&self, call: &mut impl FnMut(&str)) {
        match self {
            Self::Number(_) => {}
            Self::Name { name, .. } => call(name),
            Self::Unary { of, .. } => of.visit_names(call),
            Self::Binary { of, .. } => of.iter().for_each(|side| side.visit_names(call)),
            Self::Call { arguments, .. } => arguments.iter().for_each(|argument| argument.visit_names(call)),
        }
    }
}

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Expression, Mistake> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Mistake::new(0, format!("an expression has at most {TEXT_BYTES_MAX} bytes")));
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expression = parser.level(0)?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(Mistake::new(
            parser.at,
            format!("{} is not expected here{}", parser.found(), parser.instead()),
        ));
    }
    Ok(expression)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// Operators between two operands, the weakest first. Longer ones come before their beginnings.
const LEVELS: [&[(&str, Binary)]; 5] = [
    &[("or", Binary::Or)],
    &[("and", Binary::And)],
    &[
        (">=", Binary::GreaterOrEqual),
        ("<=", Binary::LessOrEqual),
        ("==", Binary::Equal),
        ("!=", Binary::Unequal),
        (">", Binary::Greater),
        ("<", Binary::Less),
    ],
    &[("+", Binary::Plus), ("-", Binary::Minus)],
    &[("*", Binary::Times), ("/", Binary::Over)],
];
/// The level of comparisons, which do not chain. `not` stands before them.
const COMPARISONS: usize = 2;

impl Parser<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// The next character, for a message.
    fn found(&self) -> String {
        self.rest().chars().next().map_or_else(|| "the end".to_owned(), |next| format!("`{next}`"))
    }

    /// Advice on the next character if other languages have it as an operator; empty if there is none.
    fn instead(&self) -> &'static str {
        match self.rest().chars().next() {
            Some('&') => ": write `and`",
            Some('|') => ": write `or`",
            Some('!') => ": write `not`, or `!=`",
            Some('=') => ": write `==`",
            Some('^') => ": multiply in place of powers",
            _ => "",
        }
    }

    /// Takes a word or sign if it is next. A word must not go on.
    fn take(&mut self, sign: &str) -> bool {
        self.skip_blanks();
        let goes_on = || {
            self.rest()[sign.len()..].starts_with(|next: char| next == '_' || next.is_ascii_alphanumeric())
        };
        let is_next = self.rest().starts_with(sign)
            && !(sign.ends_with(|last: char| last.is_ascii_alphabetic()) && goes_on());
        if is_next {
            self.at += sign.len();
        }
        is_next
    }

    fn level(&mut self, level: usize) -> Result<Expression, Mistake> {
        let Some(operators) = LEVELS.get(level) else { return self.sign() };
        if level == COMPARISONS && self.take("not") {
            let of = Box::new(self.nested(|parser| parser.level(COMPARISONS))?);
            return Ok(Expression::Unary { operator: Unary::Not, of });
        }
        let mut left = self.level(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) {
            let right = self.level(level + 1)?;
            left = Expression::Binary { operator: *operator, of: Box::new([left, right]) };
            if level == COMPARISONS {
                break;
            }
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Expression, Mistake> {
        if self.take("-") {
            let of = Box::new(self.nested(Self::sign)?);
            return Ok(Expression::Unary { operator: Unary::Minus, of });
        }
        self.operand()
    }

    fn nested(
        &mut self,
        part: impl FnOnce(&mut Self) -> Result<Expression, Mistake>,
    ) -> Result<Expression, Mistake> {
        if self.depth == DEPTH_MAX {
            return Err(Mistake::new(self.at, format!("an expression has at most {DEPTH_MAX} levels")));
        }
        self.depth += 1;
        let expression = part(self)?;
        self.depth -= 1;
        Ok(expression)
    }

    fn operand(&mut self) -> Result<Expression, Mistake> {
        self.skip_blanks();
        let at = self.at;
        if self.take("(") {
            let within = self.nested(|parser| parser.level(0))?;
            self.expect(")")?;
            return Ok(within);
        }
        let is_in_number = |next: char| next.is_ascii_digit() || next == '.';
        if self.rest().starts_with(is_in_number) {
            return self.number();
        }
        let end = self.rest().find(|next: char| next != '_' && !next.is_ascii_alphanumeric());
        let name = &self.rest()[..end.unwrap_or(self.rest().len())];
        if name.is_empty() || ["and", "or", "not"].contains(&name) {
            return Err(Mistake::new(at, format!("{} is not a number, a name or a call", self.found())));
        }
        let name = name.to_owned();
        self.at += name.len();
        if !self.take("(") {
            return Ok(Expression::Name { name, at });
        }
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.nested(|parser| parser.level(0))?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        Ok(Expression::Call { name, at, arguments })
    }

    fn number(&mut self) -> Result<Expression, Mistake> {
        let at = self.at;
        let text = self.rest();
        let digits = text.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(text.len());
        let mut end = digits;
        if let Some(exponent) = text[digits..].strip_prefix(['e', 'E']) {
            let sign = usize::from(exponent.starts_with(['+', '-']));
            let length = exponent[sign..].bytes().take_while(u8::is_ascii_digit).count();
            if length > 0 {
                end = digits + 1 + sign + length;
            }
        }
        let number: f64 = text[..end].parse().map_err(|_| {
            Mistake::new(at, format!("`{}` is not a number such as 0.5 or 1e-3", &text[..end]))
        })?;
        if !number.is_finite() {
            return Err(Mistake::new(at, format!("{} is too large", &text[..end])));
        }
        self.at += end;
        Ok(Expression::Number(number))
    }

    fn expect(&mut self, sign: &str) -> Result<(), Mistake> {
        if self.take(sign) {
            return Ok(());
        }
        Err(Mistake::new(self.at, format!("{} is found instead of `{sign}`", self.found())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(expression: &Expression) -> String {
        match expression {
            Expression::Number(number) => number.to_string(),
            Expression::Name { name, .. } => name.clone(),
            Expression::Unary { operator: Unary::Minus, of } => format!("(- {})", shown(of)),
            Expression::Unary { operator: Unary::Not, of } => format!("(not {})", shown(of)),
            Expression::Binary { operator, of } => {
                let (sign, _) =
                    LEVELS.iter().flat_map(|level| *level).find(|(_, other)| other == operator).unwrap();
                format!("({sign} {} {})", shown(&of[0]), shown(&of[1]))
            }
            Expression::Call { name, arguments, .. } => {
                format!("({name} {})", arguments.iter().map(shown).collect::<Vec<_>>().join(" "))
            }
        }
    }

    #[test]
    fn operators_bind_as_in_mathematics() {
        for (text, tree) in [
            ("a - b - c", "(- (- a b) c)"),
            ("a + b * -c / 2", "(+ a (/ (* b (- c)) 2))"),
            ("a > 1 and not b < 2 or c", "(or (and (> a 1) (not (< b 2))) c)"),
            ("zscore((ask - bid) / mid, 50)", "(zscore (/ (- ask bid) mid) 50)"),
            ("f()", "(f )"),
            ("1e-3*android", "(* 0.001 android)"),
            ("a>=b", "(>= a b)"),
        ] {
            assert_eq!(shown(&parse(text).unwrap()), tree, "{text}");
        }
    }

    #[test]
    fn mistakes_have_their_place() {
        for (text, at, words) in [
            ("", 0, "the end is not a number, a name or a call"),
            ("a +", 3, "the end is not a number, a name or a call"),
            ("a b", 2, "`b` is not expected here"),
            ("1 < 2 < 3", 6, "`<` is not expected here"),
            ("mean(a, 5", 9, "the end is found instead of `)`"),
            ("a && b", 2, "`&` is not expected here: write `and`"),
            ("a = b", 2, "`=` is not expected here: write `==`"),
            ("1.2.3", 0, "`1.2.3` is not a number such as 0.5 or 1e-3"),
            ("1e999", 0, "1e999 is too large"),
            ("é", 0, "`é` is not a number, a name or a call"),
        ] {
            assert_eq!(parse(text), Err(Mistake::new(at, words)), "{text}");
        }
        let deep = "(".repeat(500);
        assert!(parse(&deep).unwrap_err().words.contains("at most 64 levels"));
        assert!(parse(&"-".repeat(500)).unwrap_err().words.contains("at most 64 levels"));
        assert!(parse(&"not ".repeat(200)).unwrap_err().words.contains("at most 64 levels"));
        assert!(parse(&"1".repeat(2_000)).unwrap_err().words.contains("at most 1024 bytes"));
    }
}
