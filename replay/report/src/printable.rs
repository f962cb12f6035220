//! Text for people. Anybody may publish records, and some characters act on a terminal or page instead of being shown.
//! Examples are characters that move the cursor, set a title, reverse the direction of text or have no width. Each of
//! these becomes its JSON escape, such as `\u001b`, so that JSON stays JSON with the same values.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Makes text printable, keeping its line breaks.
pub fn printable(text: &str) -> Cow<'_, str> {
    escape(text, |character| character != '\n' && !is_shown(character))
}

/// Makes text printable on one line.
pub fn printable_line(text: &str) -> Cow<'_, str> {
    escape(text, |character| !is_shown(character))
}

/// True if a character is visible and takes a place of its own. The standard library escapes all others, and quotes.
fn is_shown(character: char) -> bool {
    matches!(character, ' '..='~') || (!character.is_ascii() && character.escape_debug().len() == 1)
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_escaped(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(escaped, "\\u{unit:04x}").expect("a string takes any text");
            }
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Control characters of C0 and C1, DEL, direction marks, characters without width, line separators, and
    /// noncharacters.
    const OBEYED: &str = "\0\u{7}\u{8}\t\r\u{1b}\u{7f}\u{80}\u{9b}\u{9d}\u{ad}\u{61c}\u{180e}\u{200b}\u{200c}\u{200d}\u{200e}\
                          \u{200f}\u{2028}\u{2029}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2060}\u{2061}\u{2066}\u{2067}\
                          \u{2068}\u{2069}\u{feff}\u{fff9}\u{301}\u{e0001}\u{e0041}";

    #[test]
    fn what_is_obeyed_is_escaped() {
        for character in OBEYED.chars() {
            let text = printable(&character.to_string()).into_owned();
            assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}");
            let json: String = serde_json::from_str(&format!("\"{text}\"")).expect("it is JSON");
            assert_eq!(json, character.to_string(), "JSON means the same");
        }
        assert_eq!(printable("a\u{1b}[2J\u{202e}b"), "a\\u001b[2J\\u202eb");
        assert_eq!(printable("\u{e0041}"), "\\udb40\\udc41");
    }

    #[test]
    fn other_text_stays() {
        for text in ["", "BINANCE:BTCUSDT \"quoted\" 'x' C:\\~", "×4 · ± – é ß 株 Ω 🚀"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
        }
        assert_eq!((printable("a\nb").as_ref(), printable_line("a\nb").as_ref()), ("a\nb", "a\\u000ab"));
    }
}
