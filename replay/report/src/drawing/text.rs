//! Text in markup: maud escapes markup characters, and this module escapes characters that act on a display instead of
//! being shown.

use maud::{Markup, PreEscaped, Render as _};

use crate::printable;

/// Escapes characters in markup that act on a display instead of being shown.
pub fn shown(markup: Markup) -> String {
    printable(&markup.0).into_owned()
}

/// Returns as much of a text as fits into `bytes_max` bytes of markup, followed by `…` if it was cut.
pub fn cut(text: &str, bytes_max: usize) -> Markup {
    let mut markup = String::new();
    for character in text.chars() {
        let before = markup.len();
        printable(character.encode_utf8(&mut [0; 4])).render_to(&mut markup);
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
            shown(html! { p title=(text) { (text) } }),
            format!("<p title=\"{expected}\">{expected}</p>")
        );
        assert_eq!(shown(cut(text, 1_000)), expected);
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!([cut("a<", 5), cut("b<<", 6), cut("\0", 5)].map(shown), ["a&lt;", "b&lt;…", "…"]);
    }
}
