//! Files of the page. They are part of the binary and ask nobody else for anything.

/// A file of the page.
pub(in super::super) struct Asset {
    pub(in super::super) path: &'static str,
    pub(in super::super) media: &'static str,
    pub(in super::super) bytes: &'static [u8],
}

/// Content security policy of the page: nothing but its own files and streams.
pub(in super::super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                           img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

/// Every file; the first one is the page itself.
pub(in super::super) const ASSETS: [Asset; 5] = [
    Asset { path: "/", media: HTML, bytes: include_bytes!("page/index.html") },
    Asset { path: "/page.css", media: CSS, bytes: include_bytes!("page/page.css") },
    Asset { path: "/page.js", media: JS, bytes: include_bytes!("page/page.js") },
    Asset { path: "/uplot.css", media: CSS, bytes: include_bytes!("page/uplot.css") },
    Asset { path: "/uplot.js", media: JS, bytes: include_bytes!("page/uplot.js") },
];
