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
pub(in super::super) const ASSETS: [Asset; 14] = [
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
];
