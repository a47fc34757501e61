//! Messages that are signed with a given key, as recorded from bitcoind.

use outrigger_sdk::testing::{StubHost, TestPlugin};
use serde_json::json;

use super::{MANIFEST, WIF};
use crate::SigningPlugin;

#[test]
fn signmessagewithprivkey_answers_as_recorded() {
    let plugin: TestPlugin<SigningPlugin> = StubHost::new().start(MANIFEST, json!({}));
    let uncompressed = "91avARGdfge8E4tZfYLoxeJ5sGBdNJQH4kvjJoQFacbgwmaKkrx";
    let signed = "Bi1zgUhc9Vx29ybrszSStIpQXDCHd5pSWObPGIilIzWA5nzHe1nlRbKWKKbmyfu4ZuLrgt8oTMpOypC40TwA14=";
    for (key, first) in [(WIF, "I"), (uncompressed, "H")] {
        let answer = plugin.call("signmessagewithprivkey", json!([key, "h\u{e9}llo\n"]));
        assert_eq!(answer, Ok(json!(format!("{first}{signed}"))));
    }
    // Neither is the key of another network one.
    for key in ["xx", "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"] {
        let error = plugin.call("signmessagewithprivkey", json!([key, "hello"])).unwrap_err();
        assert_eq!((error.code.0, &*error.message), (-5, "Invalid private key"));
    }
}
