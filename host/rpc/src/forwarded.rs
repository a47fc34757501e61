//! The client behind trusted proxies: `Forwarded` (RFC 7239) and `X-Forwarded-For`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::header::{FORWARDED, HeaderName};
use http::{HeaderMap, HeaderValue};
use ipnet::IpNet;

use super::peers::{Access, Peer};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A trusted proxy's headers that do not name the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadForwarding {
    /// Both headers: either may come from the client.
    Both,
    /// An element without a readable address, before the client was found.
    Unreadable,
}

/// The client of a request from `peer`: the right-most address that is not trusted. The headers of a peer that is not
/// trusted are ignored.
pub(super) fn client_of(headers: &HeaderMap, peer: Peer, access: &Access) -> Result<Peer, BadForwarding> {
    if !access.trusts(peer) {
        return Ok(peer);
    }
    let values = |name| headers.get_all(name).iter().rev().map(|value| value.to_str().unwrap_or_default());
    let mut client = peer;
    match (headers.contains_key(FORWARDED), headers.contains_key(X_FORWARDED_FOR)) {
        (true, true) => return Err(BadForwarding::Both),
        (false, false) => {}
        (true, false) => {
            for value in values(FORWARDED) {
                let elements = split_unquoted(value, b',').ok_or(BadForwarding::Unreadable)?;
                for element in elements.into_iter().rev() {
                    client = node(for_of(element).ok_or(BadForwarding::Unreadable)?)?;
                    if !access.trusts(client) {
                        return Ok(client);
                    }
                }
            }
        }
        (false, true) => {
            for element in values(X_FORWARDED_FOR).flat_map(|value| value.rsplit(',')) {
                client = node(element.trim())?;
                if !access.trusts(client) {
                    return Ok(client);
                }
            }
        }
    }
    // All addresses are trusted: the left-most is the client.
    Ok(client)
}

/// For the fuzzer: the clients by a `Forwarded` and by an `X-Forwarded-For` with this value, from a trusted proxy on loopback.
pub fn read_forwarding(value: &[u8]) -> [Option<Peer>; 2] {
    let loopback = Peer::Ip(Ipv4Addr::LOCALHOST.into());
    let access = Access { trusted: vec![IpNet::from(IpAddr::from(Ipv4Addr::LOCALHOST))], ..Access::default() };
    [FORWARDED, X_FORWARDED_FOR].map(|name| {
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_bytes(value).ok()?)]);
        client_of(&headers, loopback, &access).ok()
    })
}

/// Splits at a separator outside of quoted strings; `None` if a quoted string does not end.
fn split_unquoted(text: &str, separator: u8) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if byte == separator && !is_quoted => {
                parts.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    (!is_quoted).then_some(parts)
}

/// The value of `for` in an element of `Forwarded`, without its quotes. An address needs no escape.
fn for_of(element: &str) -> Option<&str> {
    let mut values = split_unquoted(element, b';')?.into_iter().filter_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        name.trim().eq_ignore_ascii_case("for").then(|| value.trim())
    });
    let value = values.next()?;
    let unquoted = value.strip_prefix('"').map_or(Some(value), |value| value.strip_suffix('"'));
    unquoted.filter(|_| values.next().is_none())
}

/// An address, with or without a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:80`.
fn node(text: &str) -> Result<Peer, BadForwarding> {
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    let address = text.parse().ok().or_else(bracketed).or_else(with_port).ok_or(BadForwarding::Unreadable)?;
    Ok(Peer::Ip(address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Peer {
        Peer::Ip(text.parse().unwrap())
    }

    /// The client by these headers of a proxy at 10.0.0.1; 10.0.0.0/24 and fd00::/8 are trusted.
    fn of(headers: &[(HeaderName, &str)]) -> Result<String, BadForwarding> {
        let trusted = ["10.0.0.0/24", "fd00::/8"].map(|network| network.parse().unwrap()).to_vec();
        let access = Access { trusted, ..Access::default() };
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, HeaderValue::from_str(value).unwrap());
        }
        // The headers of untrusted peers are ignored.
        assert_eq!(client_of(&map, peer("10.0.1.1"), &access), Ok(peer("10.0.1.1")));
        assert_eq!(client_of(&map, Peer::Unix(0), &access), Ok(Peer::Unix(0)));
        client_of(&map, peer("10.0.0.1"), &access).map(|client| client.to_string())
    }

    #[test]
    fn client_is_the_right_most_address_that_is_not_trusted() {
        let cases = [
            (vec!["192.0.2.1"], "192.0.2.1"),
            (vec!["127.0.0.1, 192.0.2.1"], "192.0.2.1"),
            (vec!["198.51.100.7, 192.0.2.1,10.0.0.9"], "192.0.2.1"),
            (vec!["198.51.100.7", "192.0.2.1", "10.0.0.9, fd00::5"], "192.0.2.1"),
            (vec!["garbage, 192.0.2.1:4711"], "192.0.2.1"),
            (vec!["2001:db8::1"], "2001:db8::1"),
            (vec!["[2001:db8::1]:80"], "2001:db8::1"),
            (vec!["::ffff:192.0.2.1"], "192.0.2.1"),
            (vec!["10.0.0.7, 10.0.0.8"], "10.0.0.7"),
        ];
        for (values, client) in cases {
            let headers: Vec<_> = values.iter().map(|value| (X_FORWARDED_FOR, *value)).collect();
            assert_eq!(of(&headers).as_deref(), Ok(client), "{values:?}");
        }
        assert_eq!(of(&[]).as_deref(), Ok("10.0.0.1"), "the proxy's own request");
    }

    #[test]
    fn forwarded_is_read_as_rfc_7239_writes_it() {
        let cases = [
            ("for=192.0.2.43", "192.0.2.43"),
            ("For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"),
            ("for=192.0.2.43, for=198.51.100.17", "198.51.100.17"),
            ("for=_hidden, for=198.51.100.17;host=\"a,b;for=1.2.3.4\"", "198.51.100.17"),
            ("host=\"\\\"\";for=\"192.0.2.1:80\" , for=10.0.0.3", "192.0.2.1"),
        ];
        for (value, client) in cases {
            assert_eq!(of(&[(FORWARDED, value)]).as_deref(), Ok(client), "{value}");
        }
    }

    #[test]
    fn headers_that_name_no_client_are_refused() {
        let both = [(FORWARDED, "for=192.0.2.1"), (X_FORWARDED_FOR, "192.0.2.1")];
        assert_eq!(of(&both), Err(BadForwarding::Both));
        for value in
            ["", "unknown", "192.0.2.1, ", "192.0.2.1 192.0.2.2", "[192.0.2.1", "10.0.0.300", "192.0.2.1:99999"]
        {
            assert_eq!(of(&[(X_FORWARDED_FOR, value)]), Err(BadForwarding::Unreadable), "{value:?}");
        }
        for value in
            ["", "for", "for=unknown", "for=_x", "proto=http", "for=\"192.0.2.1", "for=192.0.2.1;for=192.0.2.2"]
        {
            assert_eq!(of(&[(FORWARDED, value)]), Err(BadForwarding::Unreadable), "{value:?}");
        }
    }
}
