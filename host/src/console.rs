//! The page `/console`: an overview of the host, and a form for calls.

use outrigger_rpc::Page;

pub static PAGES: [Page; 3] = [
    Page { path: "/console", content_type: "text/html; charset=utf-8", text: include_str!("console/page.html") },
    Page { path: "/console/page.css", content_type: "text/css; charset=utf-8", text: include_str!("console/page.css") },
    Page {
        path: "/console/page.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("console/page.js"),
    },
];
