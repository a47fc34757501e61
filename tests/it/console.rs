//! The page `/console` in Chromium. Its pictures are kept in the folder `console` of the target folder's `tmp`.

use std::path::Path;

use outrigger_tests::{Browser, Client, Host, HostOptions, bitcoind};
use serde_json::json;

use crate::users::with_user;

const WIDTHS: [u32; 3] = [360, 768, 1280];

/// The maximum size of the page with its parts, in bytes.
const MAX_BYTES: usize = 60_000;

fn get(client: &mut Client, path: &str) -> (u16, String) {
    let reply = client.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    (reply.status, reply.body)
}

#[test]
fn console_is_shown_if_only_this_machine_can_connect() {
    let host = Host::start();
    let mut client = host.client();
    let parts = ["/console", "/console/page.css", "/console/page.js"].map(|path| get(&mut client, path));
    assert!(parts.iter().all(|(status, _)| *status == 200), "{parts:?}");
    let bytes: usize = parts.iter().map(|(_, text)| text.len()).sum();
    assert!(bytes < MAX_BYTES, "{bytes}");
    let page = client.send("GET /console HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(page.header("content-security-policy").is_some_and(|policy| policy.starts_with("default-src 'none'")));
    // bitcoind answers 405 as well.
    assert_eq!(get(&mut client, "/").0, 405);
    assert_eq!(get(&mut client, "/console/").0, 404);
    // `reach::proxies` and `metrics` test the setting that turns the console on and off.
    let host = Host::start_with(HostOptions { listen: Some("0.0.0.0:0".to_owned()), ..HostOptions::default() });
    let local = ([127, 0, 0, 1], host.address.port()).into();
    assert_eq!(get(&mut host.client().at(local), "/console").0, 404);
}

/// Presses Tab until an element has the focus.
fn tab_to(browser: &mut Browser, selector: &str) {
    let found = (0..40).any(|_| {
        browser.press("Tab");
        browser.value(&format!("document.activeElement.matches('{selector}')")) == true
    });
    assert!(found, "the keyboard does not reach {selector}");
}

/// Signs in with the keyboard alone.
fn sign_in(browser: &mut Browser, user: &str, password: &str) {
    tab_to(browser, "[name=user]");
    browser.type_text(user);
    browser.press("Tab");
    browser.type_text(password);
    browser.press("Enter");
}

/// Signs in as the cookie's user.
fn sign_in_by_cookie(browser: &mut Browser, host: &Host) {
    let cookie = host.cookie();
    let (user, password) = cookie.split_once(':').unwrap();
    sign_in(browser, user, password);
}

#[test]
fn console_shows_the_host_and_makes_calls_at_three_widths_without_an_error() {
    let Some(mut browser) = Browser::start() else { return };
    let host = Host::start();
    let mut wallet = host.new_wallet("shop");
    host.new_wallet("");
    wallet.mine(101);
    browser.show(WIDTHS[0], "light");
    browser.open(&format!("http://{}/console", host.address));
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("console");
    std::fs::create_dir_all(&pictures).unwrap();
    browser.picture(&pictures.join("sign-in.png"));
    assert_eq!(browser.errors, [""; 0]);

    sign_in(&mut browser, "__cookie__", "wrong");
    browser.wait("document.querySelector('#sign-in .error').textContent.includes('refuses this user')");
    // Chromium itself logs the status 401.
    browser.errors.clear();
    browser.value("document.querySelector('#sign-in').reset()");
    sign_in_by_cookie(&mut browser, &host);
    browser.wait("document.querySelectorAll('#plugins tbody tr').length >= 7");
    browser.wait("document.querySelector('#wallets tbody').textContent.includes('shop')");
    browser.wait("document.querySelector('#state').textContent === 'regtest, height 101'");
    browser.wait("/Connections[1-9]/.test(document.querySelector('#node').textContent)");

    // Use the keyboard alone.
    tab_to(&mut browser, "[data-view=console]");
    browser.press("Enter");
    tab_to(&mut browser, "#method");
    browser.type_text("getblockhash");
    browser.wait("document.querySelector('#help').textContent.length > 20");
    tab_to(&mut browser, "#call select");
    tab_to(&mut browser, "#arguments input");
    browser.type_text("many");
    browser.press("Enter");
    browser.wait("document.querySelector('#call .error').textContent === 'height: number expected'");
    browser.value("document.querySelector('#arguments input').select()");
    browser.type_text("0");
    browser.press("Enter");
    let genesis = wallet.call("getblockhash", json!([0]));
    browser.wait(&format!("document.querySelector('#answer').textContent.includes({genesis})"));
    // The page shows amounts with all digits.
    browser.value("document.querySelector('#method').select()");
    browser.type_text("getbalance");
    browser.wait("document.querySelector('#call select').options.length === 3");
    browser.value("document.querySelector('#call select').value = '/wallet/'");
    browser.value("document.querySelector('#call button').click()");
    browser.wait("document.querySelector('#answer').textContent === '0.00000000'");
    tab_to(&mut browser, "#call select");
    browser.press("ArrowUp");
    browser.wait("document.querySelector('#call select').value === '/wallet/shop'");
    tab_to(&mut browser, "#call button");
    browser.press("Enter");
    browser.wait("document.querySelector('#answer').textContent === '50.00000000'");
    browser.value("document.querySelector('#method').select()");
    browser.type_text("getwalletinfo");
    browser.value("document.querySelector('#call button').click()");
    browser.wait("document.querySelector('#answer').textContent.includes('\"walletname\": \"shop\"')");

    for view in ["console", "overview"] {
        browser.value(&format!("document.querySelector('[data-view={view}]').click()"));
        for width in WIDTHS {
            for scheme in ["light", "dark"] {
                browser.show(width, scheme);
                let overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
                assert_eq!(browser.value(overflow), 0, "{view} at {width}");
                browser.picture(&pictures.join(format!("{view}-{width}-{scheme}.png")));
            }
        }
    }
    assert_eq!(browser.errors, [""; 0]);
}

#[test]
fn console_shows_a_user_no_more_than_the_users_list_allows() {
    let Some(mut browser) = Browser::start() else { return };
    let (host, _alice) = with_user("methods = [\"uptime\"]");
    host.new_wallet("shop");
    browser.open(&format!("http://{}/console", host.address));
    sign_in(&mut browser, "alice", "pass:word");
    browser.wait("document.querySelector('#state').textContent === 'Signed in'");
    let offered = "[...document.querySelectorAll('#methods option')].map(option => option.value).join()";
    assert_eq!(browser.value(offered), "rpc.discover,uptime");
    for table in ["wallets", "plugins", "calls"] {
        assert_eq!(browser.value(&format!("document.querySelector('#{table} tbody').textContent")), "none");
    }
    browser.value("document.querySelector('[data-view=console]').click()");
    browser.value("document.querySelector('#method').focus()");
    browser.type_text("stop");
    browser.value("document.querySelector('#call button').click()");
    browser.wait("document.querySelector('#call .error').textContent.startsWith('There is no such method')");
    assert_eq!(browser.errors, [""; 0]);
}

#[test]
fn console_shows_the_node_and_calls_its_methods() {
    if bitcoind::installed().is_none() {
        return;
    }
    let Some(mut browser) = Browser::start() else { return };
    let host = Host::start_with(HostOptions::in_front_of(&[]));
    browser.open(&format!("http://{}/console", host.address));
    sign_in_by_cookie(&mut browser, &host);
    browser.wait("document.querySelector('#node').textContent.includes('Height')");
    browser.wait("document.querySelector('#state').textContent === 'regtest, height 0'");
    browser.wait("/Blocks behind0Node latency[0-9]/.test(document.querySelector('#node').textContent)");
    browser.value("document.querySelector('[data-view=console]').click()");
    browser.value("document.querySelector('#method').focus()");
    browser.type_text("getblockhash");
    browser.value("document.querySelector('#arguments textarea').focus()");
    browser.type_text("0");
    browser.value("document.querySelector('#call button').click()");
    let genesis = host.client().call("getblockhash", json!([0]));
    browser.wait(&format!("document.querySelector('#answer').textContent.includes({genesis})"));
    assert_eq!(browser.errors, [""; 0]);
}
