//! Pages for browsers. They need no credentials, since they hold no data: they make calls as the user who signs in on them.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use super::envelope::reply::{self, Reply};

#[derive(Debug)]
pub struct Page {
    pub path: &'static str,
    pub content_type: &'static str,
    pub text: &'static str,
}

/// A page loads nothing from other servers, runs no inline script, and cannot be embedded in another page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 5] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    // A later version of the program has other pages.
    (CACHE_CONTROL, "no-cache"),
];

/// The answer to a GET of one of the pages.
pub(super) fn page(head: &Parts, pages: &'static [Page]) -> Option<Reply> {
    let path = head.uri.path_and_query().filter(|_| head.uri.authority().is_none() && head.method == Method::GET)?;
    let page = pages.iter().find(|page| page.path == path.as_str())?;
    let mut response = reply::text(StatusCode::OK, page.text);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Some(response)
}
