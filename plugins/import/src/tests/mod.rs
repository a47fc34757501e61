//! The plugin on an in-memory host: the results of requests, and the imports that reach the wallet.

mod calls;
mod descriptors;
mod keys;
mod pruned_funds;
mod rescans;
mod single;

use outrigger_kit::descriptor::checksum;
use outrigger_sdk::service::events::Event;
use outrigger_sdk::service::wallet::{DescriptorImport, Import, ImportOutcome, KeysImport};
use outrigger_sdk::testing::{StubHost, TestPlugin, WalletState};
use serde_json::{Value, json};

use crate::ImportPlugin;

/// The generator of the curve, public key of the private key 1.
const K: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
const K_WIF: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87JcbXMTcA";
/// The P2PKH script of [`K`].
const K_PKH: &str = "76a914751e76e8199196d454941c45d1b3a323f1433bd688ac";
/// The P2WPKH script of [`K`].
const K_WPKH: &str = "0014751e76e8199196d454941c45d1b3a323f1433bd6";
const K2: &str = "02c6047f9441ed7d6d3045406e95c07cd85c778e4b8cef3ca7abac09b95c709ee5";
const K2_WIF: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
const TPUB: &str =
    "tpubDC5FSnBiZDMmhiuCmWAYsLwgLYrrT9rAqvTySfuCCrgsWz8wxMXUS9Tb9iVMvcRbvFcAHGkMD5Kx8koh4GquNGNTfohfk7pgjhaPCdXpoba";
const TPRV: &str =
    "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";

const TIP_TIME: u32 = 1_600_000_000;
const MEDIAN_TIME: u32 = TIP_TIME - 3000;

struct Harness {
    host: StubHost,
    plugin: TestPlugin<ImportPlugin>,
}

impl Harness {
    fn new() -> Self {
        let host = StubHost::new();
        let tip = host.chain.mine(vec![]);
        let mut wallet = WalletState::new("w", tip, 1, TIP_TIME);
        wallet.info.synced.median_time = MEDIAN_TIME;
        host.wallet.set(Some(wallet));
        let plugin = host.start::<ImportPlugin>(json!({}));
        Self { host, plugin }
    }

    fn watch_only() -> Self {
        let harness = Self::new();
        harness.wallet(|wallet| wallet.info.private_keys_enabled = false);
        harness
    }

    fn wallet<T>(&self, body: impl FnOnce(&mut WalletState) -> T) -> T {
        self.host.wallet.with(body).unwrap()
    }

    fn answers(&self, outcomes: impl IntoIterator<Item = ImportOutcome>) {
        self.wallet(|wallet| wallet.outcomes.extend(outcomes));
    }

    #[track_caller]
    fn refused(&self, method: &str, arguments: Value, code: i32, message: &str) {
        self.plugin.refuses(method, &[(arguments, code, message)]);
        assert_eq!(self.wallet(|wallet| wallet.rescan), None, "no reservation is left");
    }

    /// Calls importmulti with one request and no rescan. Returns the element of the result as text.
    fn multi(&self, mut request: Value) -> String {
        if request.get("timestamp").is_none() {
            request["timestamp"] = json!(5);
        }
        let json = self.plugin.call_json("importmulti", json!([[request], {"rescan": false}])).unwrap();
        json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap().to_owned()
    }

    /// Calls importdescriptors with one request and completes its rescan. Returns the element of the result as text.
    fn descriptor(&self, mut request: Value) -> String {
        if request.get("timestamp").is_none() {
            request["timestamp"] = json!(5);
        }
        let call = self.plugin.begin("importdescriptors", json!([[request]]));
        self.finish_rescan(outrigger_sdk::service::events::RescanOutcome::Complete);
        let json = call.json().unwrap().unwrap();
        json.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap().to_owned()
    }

    fn finish_rescan(&self, outcome: outrigger_sdk::service::events::RescanOutcome) {
        let running = self.wallet(|wallet| wallet.rescan.take());
        if let Some((rescan, Some(_))) = running {
            let wallet = "w".to_owned();
            let (last_height, widened) = (None, false);
            self.plugin.tell(Event::RescanFinished { wallet, rescan, outcome, last_height, widened });
        }
    }

    /// The last import that reached the wallet.
    fn stored(&self) -> Import {
        self.wallet(|wallet| wallet.imports.last().cloned()).expect("something was stored")
    }

    fn stored_keys(&self) -> KeysImport {
        let Import::Keys { mut parts } = self.stored() else { panic!("keys") };
        parts.pop().expect("an import of keys has a part")
    }

    fn stored_descriptor(&self) -> DescriptorImport {
        let Import::Descriptor { descriptor } = self.stored() else { panic!("a descriptor") };
        descriptor
    }

    fn stored_count(&self) -> usize {
        self.wallet(|wallet| wallet.imports.len())
    }
}

fn with_checksum(payload: &str) -> String {
    format!("{payload}#{}", checksum(payload).unwrap())
}

fn success(warnings: &[&str]) -> String {
    element(None, warnings)
}

fn failure(code: i32, message: &str, warnings: &[&str]) -> String {
    element(Some((code, message)), warnings)
}

fn element(error: Option<(i32, &str)>, warnings: &[&str]) -> String {
    let mut text = format!("{{\"success\":{}", error.is_none());
    if let Some((code, message)) = error {
        text += &format!(",\"error\":{{\"code\":{code},\"message\":{}}}", json!(message));
    }
    if !warnings.is_empty() {
        text += &format!(",\"warnings\":{}", json!(warnings));
    }
    text + "}"
}

const MISSING: &str = "Some private keys are missing, outputs will be considered watchonly. If this is intentional, specify the watchonly flag.";
const COMPLETE: &str = "All private keys are provided, outputs will be considered spendable. If this is intentional, do not specify the watchonly flag.";
const IRRELEVANT: &str = "Ignoring irrelevant private key.";
const MALFORMED: &str = "Missing required fields";
