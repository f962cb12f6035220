//! Doc comments as plain text for readers of a schema.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the doc comment of an item as one line, without the markup of links and code.
pub(crate) fn doc_of(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(named) if named.path.is_ident("doc") => match &named.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    });
    plain(&lines.collect::<Vec<_>>().join(" "))
}

/// Removes backquotes, writes `null` for `None`, and replaces a link by the last part of its path.
fn plain(text: &str) -> String {
    let mut told = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once("[`") {
        told += before;
        let (path, after) = link.split_once("`]").unwrap_or((link, ""));
        told += path.rsplit("::").next().unwrap_or(path);
        // The target of the link, if it has one.
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        rest = target.map_or(after, |(_, after)| after);
    }
    (told + rest).replace("`None`", "null").replace('`', "").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_code_are_words() {
        assert_eq!(
            plain("Recorded in [`Input::Started`], with `cpu:0`."),
            "Recorded in Started, with cpu:0."
        );
        assert_eq!(plain("By [`RunSlice`](super::Decision::RunSlice) (once)."), "By RunSlice (once).");
        assert_eq!(plain("`None`: not known."), "null: not known.");
    }
}
