//! Files of the page. They are part of the binary and load nothing from elsewhere.

/// A file of the page.
pub(in super::super) struct Asset {
    pub(in super::super) path: &'static str,
    pub(in super::super) media: &'static str,
    pub(in super::super) bytes: &'static [u8],
}

/// Content security policy of the page: it may load only its own files and streams.
pub(in super::super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                           img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// All files; the first one is the page itself.
pub(in super::super) const ASSETS: [Asset; 15] = [
    Asset { path: "/", media: HTML, bytes: include_bytes!("page/index.html") },
    Asset { path: "/page.css", media: CSS, bytes: include_bytes!("page/page.css") },
    Asset { path: "/charts.js", media: JS, bytes: include_bytes!("page/charts.js") },
    Asset { path: "/endpoint.js", media: JS, bytes: include_bytes!("page/endpoint.js") },
    Asset { path: "/feeds.js", media: JS, bytes: include_bytes!("page/feeds.js") },
    Asset { path: "/market.js", media: JS, bytes: include_bytes!("page/market.js") },
    Asset { path: "/nodes.js", media: JS, bytes: include_bytes!("page/nodes.js") },
    Asset { path: "/page.js", media: JS, bytes: include_bytes!("page/page.js") },
    Asset { path: "/places.js", media: JS, bytes: include_bytes!("page/places.js") },
    Asset { path: "/state.js", media: JS, bytes: include_bytes!("page/state.js") },
    Asset { path: "/text.js", media: JS, bytes: include_bytes!("page/text.js") },
    Asset { path: "/why.js", media: JS, bytes: include_bytes!("page/why.js") },
    Asset { path: "/uplot.css", media: CSS, bytes: include_bytes!("page/uplot.css") },
    Asset { path: "/uplot.js", media: JS, bytes: include_bytes!("page/uplot.js") },
    Asset { path: "/UPLOT-LICENSE", media: TEXT, bytes: include_bytes!("page/UPLOT-LICENSE") },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the quoted names that follow each occurrence of a mark.
    fn named<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
        text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    #[test]
    fn every_file_that_the_page_names_is_served() {
        let mut files = 0;
        for asset in ASSETS.iter().filter(|asset| asset.media != TEXT) {
            let text = std::str::from_utf8(asset.bytes).expect("text");
            let mut names = named(text, "from \"./");
            if asset.media == HTML {
                names.extend(named(text, "src=\""));
                names.extend(named(text, "rel=\"stylesheet\" href=\""));
                names.extend(named(text, "rel=\"modulepreload\" href=\""));
            }
            for name in names {
                assert!(ASSETS.iter().any(|of| of.path[1..] == *name), "{} names {name}", asset.path);
                files += 1;
            }
        }
        assert!(files > 20, "only {files} names were found");
    }
}
