//! Text as HTML that is XML as well. Records hold what anybody has published: what a reader's eye or terminal would obey instead of
//! seeing it (controls, directions of text, what has no width) becomes its escape in JSON, as commands print it.

use std::fmt::{self, Write as _};

/// A page that is being written.
#[derive(Debug, Default)]
pub(super) struct Markup {
    html: String,
}

impl Markup {
    /// Adds HTML, in which no text of records may be.
    pub(super) fn raw(&mut self, html: &str) -> &mut Self {
        self.html.push_str(html);
        self
    }

    /// Adds numbers and other text of this program in HTML.
    pub(super) fn raw_fmt(&mut self, html: fmt::Arguments<'_>) -> &mut Self {
        self.html.write_fmt(html).expect("a string takes any text");
        self
    }

    /// Adds text, in which lines may end.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        text.chars().for_each(|character| self.character(character));
        self
    }

    /// Adds as much of a text as fits into so many bytes; whether all of it did.
    pub(super) fn text_within(&mut self, text: &str, bytes_max: usize) -> bool {
        let end = self.html.len() + bytes_max;
        for character in text.chars() {
            let before = self.html.len();
            self.character(character);
            if self.html.len() > end {
                self.html.truncate(before);
                return false;
            }
        }
        true
    }

    /// Adds an element with text in it: `<p class="note">text</p>`.
    pub(super) fn element(&mut self, tag: &str, class: &str, text: &str) -> &mut Self {
        self.open(tag, class).text(text).close(tag)
    }

    /// Begins an element.
    pub(super) fn open(&mut self, tag: &str, class: &str) -> &mut Self {
        self.raw("<").raw(tag);
        if !class.is_empty() {
            self.raw(" class=\"").raw(class).raw("\"");
        }
        self.raw(">")
    }

    /// Ends an element.
    pub(super) fn close(&mut self, tag: &str) -> &mut Self {
        self.raw("</").raw(tag).raw(">")
    }

    pub(super) fn into_html(self) -> String {
        self.html
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.html.len()
    }

    fn character(&mut self, character: char) {
        match character {
            '&' => self.html.push_str("&amp;"),
            '<' => self.html.push_str("&lt;"),
            '>' => self.html.push_str("&gt;"),
            '"' => self.html.push_str("&quot;"),
            '\'' => self.html.push_str("&#39;"),
            '\n' | ' '..='~' => self.html.push(character),
            // The standard library escapes what cannot be seen in its place.
            _ if !character.is_ascii() && character.escape_debug().len() == 1 => self.html.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(self.html, "\\u{unit:04x}").expect("a string takes any text");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup_or_be_obeyed() {
        let mut page = Markup::default();
        page.element("p", "note", "<b a='1'>\"&amp;\u{1b}[2J\u{202e}\u{200b}\u{e0041}\0 株 é");
        let expected = "<p class=\"note\">&lt;b a=&#39;1&#39;&gt;&quot;&amp;amp;\\u001b[2J\\u202e\\u200b\\udb40\\udc41\\u0000 株 é</p>";
        assert_eq!(page.into_html(), expected);
    }

    #[test]
    fn text_is_cut_between_characters() {
        let mut page = Markup::default();
        assert!(page.text_within("a<", 5) && !page.text_within("b<<", 6));
        assert_eq!(page.into_html(), "a&lt;b&lt;");
    }
}
