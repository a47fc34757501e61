//! The proxy configurations of `config/proxies.md`, run by their programs.

use std::io::BufReader;

use outrigger_tests::proxy::{Proxy, certified_folder, connect_from};
use outrigger_tests::{HostOptions, exchange};

use super::proxies::{Proxied, guess};
use super::{request, request_of, websocket_call};
use crate::kills::setting;

/// Checks that a proxy serves each kind of call, and names its clients.
fn serve(proxy: &Proxy, proxied: &mut Proxied) {
    let cookie = proxied.host.cookie();
    let mut kept = proxy.connect(5).unwrap();
    for _ in 0..3 {
        let reply = exchange(&mut kept, &request(&cookie)).unwrap();
        assert!(reply.status == 200 && reply.body.contains("result"), "{reply:?}");
    }
    // A client's own headers cannot name another client.
    for headers in ["", "X-Forwarded-For: 127.0.0.77\r\n", "Forwarded: for=127.0.0.77\r\n"] {
        let call = proxied.audited(headers);
        assert_eq!(exchange(&mut kept, &call).unwrap().status, 200, "{headers}");
        assert_eq!(proxied.last_peer(), "127.0.0.5", "{headers}");
    }
    // `.ci/long` waits for 70 seconds, since the proxies' default timeouts are 30 to 60 seconds.
    let wait = setting("OUTRIGGER_PROXY_WAIT", 1) * 1000;
    let poll = format!(r#"{{"method":"waitfornewblock","params":[{wait}]}}"#);
    let reply = exchange(&mut kept, &request_of(&cookie, "", &poll)).unwrap();
    assert!(reply.status == 200 && reply.body.contains("height"), "{reply:?}");
    let long = format!(r#"{{"method":"uptime","id":"{}"}}"#, "x".repeat(4 << 20));
    assert_eq!(exchange(&mut kept, &request_of(&cookie, "", &long)).unwrap().status, 200, "a long body");
    websocket_call(&mut proxy.connect(5).unwrap(), &cookie);
    let bad = || connect_from(6, proxy.port);
    let good = || assert_eq!(exchange(&mut proxy.connect(5).unwrap(), &request(&cookie)).unwrap().status, 200);
    let status = |stream, request: &str| {
        let stream = proxy.authority.connect(stream, None).unwrap();
        exchange(&mut BufReader::new(stream), request).unwrap().status
    };
    guess(bad, good, "", status);
}

#[test]
fn proxies_of_the_page_serve_each_client_by_its_address() {
    let mut proxied = Proxied::start(HostOptions::default());
    for word in ["nginx", "haproxy", "caddy"] {
        // Shown if the test fails.
        println!("{word}");
        if let Some(proxy) = Proxy::start(word, &proxied.host, certified_folder()) {
            serve(&proxy, &mut proxied);
        }
    }
}

#[test]
fn haproxy_of_the_page_passes_tls_on_by_the_proxy_protocol() {
    let (folder, authority) = certified_folder();
    let path = folder.path().display();
    let tls = format!("[rpc.tls]\ncertificate = \"{path}/fullchain.pem\"\nkey = \"{path}/key.pem\"\n");
    let options = HostOptions::with_groups(&tls);
    let mut proxied = Proxied::start(options);
    if let Some(proxy) = Proxy::start("haproxy-tcp", &proxied.host, (folder, authority)) {
        serve(&proxy, &mut proxied);
    }
}
