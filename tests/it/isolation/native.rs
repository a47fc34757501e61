//! Libraries in other languages, and libraries that use system libraries, run unchanged in the sandbox.

use outrigger_tests::{CPlugin, Host, cpp_plugin, linked_c_plugin};
use serde_json::{Value, json};

use super::has_sandbox;

/// The code that C and C++ share: an instance that holds its host, and the plugin's table.
const FRAME: &str = r#"
#include <stdlib.h>
#include "outrigger.h"
OUTRIGGER_MANIFEST(0, "{\"id\": \"native\", \"version\": \"1.0.0\", \"summary\": \"Answers.\","
    " \"restartable\": true, \"methods\": [{\"name\": \"native\", \"category\": \"Native\", \"help\": \"Answers.\"}]}");

typedef struct { const outrigger_host_t *host; } native;
static void *create(void) { return calloc(1, sizeof(native)); }
static int32_t init(void *self, const outrigger_host_t *host, outrigger_bytes_t options, outrigger_owned_bytes_t *error)
{
    ((native *)self)->host = host;
    (void)options, (void)error;
    return OUTRIGGER_STATUS_OK;
}
static int32_t start(void *self, outrigger_owned_bytes_t *error) { (void)self, (void)error; return OUTRIGGER_STATUS_OK; }
static int32_t answer(const native *plugin, const outrigger_call_t *frame, const char *text)
{
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_print(&json, "\"%s\"", text);
    outrigger_reply_written(plugin->host, frame->token, &json);
    return OUTRIGGER_STATUS_OK;
}
"#;

const TABLE: &str = r"
    OUTRIGGER_PLUGIN_HEAD(0), create, init, start, call, NULL, NULL, NULL, NULL, free,
};
";

/// Uses exceptions, strings, streams, locales and threads of the C++ library.
const CPP: &str = r#"
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
static int32_t call(void *self, const outrigger_call_t *frame)
{
    std::ostringstream text;
    try {
        std::vector<std::thread> threads;
        std::vector<int> squares(4);
        for (int at = 0; at < 4; at++) {
            threads.emplace_back([at, &squares] { squares[at] = at * at; });
        }
        for (auto &thread : threads) {
            thread.join();
        }
        for (int square : squares) {
            text << square << ' ';
        }
        std::stoi("none");
    } catch (const std::invalid_argument &) {
        text << "caught";
    }
    return answer((const native *)self, frame, text.str().c_str());
}
extern "C" const outrigger_plugin_t outrigger_plugin = {
"#;

/// Uses random bytes, a digest, and a TLS context, for which the library reads its configuration and certificate lists.
const SSL: &str = r#"
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
static int32_t call(void *self, const outrigger_call_t *frame)
{
    unsigned char random[32], digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    int fine = context && RAND_bytes(random, sizeof random) == 1;
    fine = fine && EVP_Digest("abc", 3, digest, &length, EVP_sha256(), NULL) == 1 && length == 32;
    char text[65] = "failed";
    for (unsigned int at = 0; fine && at < length; at++) {
        snprintf(text + 2 * at, 3, "%02x", digest[at]);
    }
    SSL_CTX_free(context);
    return answer((const native *)self, frame, text);
}
const outrigger_plugin_t outrigger_plugin = {
"#;

/// The plugin's answer in the sandbox, and the sandbox's refusals meanwhile.
fn answered(plugin: &CPlugin) -> (Value, Value) {
    let host = Host::start_with(plugin.options("", "isolated = true\n"));
    let mut client = host.client();
    let answers: Vec<Value> = (0..3).map(|_| client.call("native", json!([]))).collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    let told = client.call("listplugins", json!([]))[0].clone();
    assert_eq!((&told["isolated"], &told["crashes"]), (&json!(true), &json!(0)), "{told}");
    (answers[0].clone(), told["denied"].clone())
}

#[test]
fn native_plugin_in_cpp_runs_in_the_sandbox() {
    if !has_sandbox() {
        return;
    }
    let (answer, denied) = answered(&cpp_plugin(&[FRAME, CPP, TABLE].concat()));
    assert_eq!(answer, json!("0 1 4 9 caught"));
    assert_eq!(denied["count"], json!(0), "{denied}");
}

#[test]
fn native_plugin_with_libssl_runs_in_the_sandbox() {
    if !has_sandbox() {
        return;
    }
    let plugin = match linked_c_plugin(&[FRAME, "#include <stdio.h>\n", SSL, TABLE].concat(), &["-lssl", "-lcrypto"]) {
        Ok(plugin) => plugin,
        Err(said) if said.contains("openssl/") || said.contains("-lssl") => {
            outrigger_tests::skip_unprivileged("this system has no libssl to link with");
            return;
        }
        Err(said) => panic!("{said}"),
    };
    let (answer, denied) = answered(&plugin);
    assert_eq!(answer, json!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    // The library looks for its configuration, and works without it.
    let kinds: Vec<_> = denied["by_kind"].as_object().unwrap().keys().collect();
    assert!(kinds.is_empty() || kinds == ["open"], "{denied}");
}
