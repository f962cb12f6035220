//! Text in markup. Records hold what anybody has published: maud escapes what would be markup, and what a reader's eye or terminal would
//! obey instead of seeing it (controls, directions of text, what has no width) becomes its escape in JSON, as commands print it.

use std::fmt::Write as _;

use maud::{Markup, PreEscaped, Render as _};

/// Markup without any character that is obeyed instead of seen.
pub fn printable(markup: Markup) -> String {
    let mut shown = String::with_capacity(markup.0.len());
    markup.0.chars().for_each(|character| show(character, &mut shown));
    shown
}

fn show(character: char, shown: &mut String) {
    match character {
        '\n' | ' '..='~' => shown.push(character),
        // The standard library escapes what cannot be seen in its place.
        _ if !character.is_ascii() && character.escape_debug().len() == 1 => shown.push(character),
        _ => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(shown, "\\u{unit:04x}").expect("a string takes any text");
            }
        }
    }
}

/// As much of a text as fits into so many bytes of markup, and `…` if that is not all of it.
pub fn cut(text: &str, bytes_max: usize) -> Markup {
    let mut markup = String::new();
    for character in text.chars() {
        let before = markup.len();
        let mut shown = String::new();
        show(character, &mut shown);
        shown.render_to(&mut markup);
        if markup.len() > bytes_max {
            markup.truncate(before);
            markup.push('…');
            break;
        }
    }
    PreEscaped(markup)
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn text_cannot_become_markup_or_be_obeyed() {
        let text = "<b a='1'>\"&amp;\u{1b}[2J\u{202e}\u{200b}\u{e0041}\0 株 é";
        let expected = "&lt;b a='1'&gt;&quot;&amp;amp;\\u001b[2J\\u202e\\u200b\\udb40\\udc41\\u0000 株 é";
        assert_eq!(
            printable(html! { p title=(text) { (text) } }),
            format!("<p title=\"{expected}\">{expected}</p>")
        );
        assert_eq!(printable(cut(text, 1_000)), expected);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!([cut("a<", 5), cut("b<<", 6), cut("\0", 5)].map(printable), ["a&lt;", "b&lt;…", "…"]);
    }
}
