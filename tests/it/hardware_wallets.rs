//! The sessions of `config/hardware-wallets.md`: the host watches, and devices sign PSBTs by their key origins.

use std::str::FromStr;

use bitcoin::NetworkKind;
use bitcoin::bip32::{DerivationPath, Xpriv, Xpub};
use bitcoin::secp256k1::Secp256k1;
use outrigger_tests::{Client, Host, NOBODY};
use serde_json::{Value, json};

/// A hardware wallet with its master key.
struct Device(Xpriv);

impl Device {
    fn new(seed: u8) -> Self {
        Self(Xpriv::new_master(NetworkKind::Test, &[seed; 32]).unwrap())
    }

    /// An account's key with its origin: public, and private as on the device.
    fn account(&self, path: &str) -> [String; 2] {
        let secp = Secp256k1::new();
        let private = self.0.derive_priv(&secp, &DerivationPath::from_str(path).unwrap()).unwrap();
        let origin = format!("[{}/{}]", self.0.fingerprint(&secp), path.replace('\'', "h"));
        [format!("{origin}{}", Xpub::from_priv(&secp, &private)), format!("{origin}{private}")]
    }
}

/// A descriptor's receiving and change branch.
fn both(descriptor: &str) -> [String; 2] {
    [descriptor.replace("/*", "/0/*"), descriptor.replace("/*", "/1/*")]
}

fn watching(client: &mut Client, name: &str, descriptor: &str) -> Client {
    let mut wallet = client.create_wallet(name, json!({"disable_private_keys": true, "blank": true}));
    let [receiving, change] = both(descriptor).map(|text| client.with_checksum(&text));
    wallet.import(&json!([
        {"desc": receiving, "timestamp": 0, "active": true},
        {"desc": change, "timestamp": 0, "active": true, "internal": true},
    ]));
    let types = [("wpkh", "bech32"), ("wsh", "bech32"), ("tr", "bech32m")];
    let kind = types.iter().find(|(form, _)| descriptor.starts_with(form)).unwrap().1;
    let address = wallet.call("getnewaddress", json!(["", kind]));
    client.call("generatetoaddress", json!([1, address]));
    client.call("generatetoaddress", json!([100, NOBODY]));
    wallet
}

fn fund(wallet: &mut Client) -> Value {
    let params = json!({"outputs": [{NOBODY: 0.5}], "options": {"fee_rate": 2, "lockUnspents": true}});
    let funded = wallet.call("walletcreatefundedpsbt", params);
    assert_eq!(wallet.call("listlockunspent", json!([])).as_array().unwrap().len(), 1);
    funded["psbt"].clone()
}

/// The PSBT after a device with these descriptors has signed it.
fn sign(client: &mut Client, psbt: &Value, descriptor: &str) -> Value {
    let descriptors = both(descriptor).map(|text| json!({"desc": client.with_checksum(&text), "range": 10}));
    client.call("descriptorprocesspsbt", json!([psbt, descriptors]))["psbt"].clone()
}

fn send(client: &mut Client, wallet: &mut Client, psbt: &Value) {
    let last = client.call("finalizepsbt", json!([psbt]));
    assert_eq!(last["complete"], json!(true), "{last}");
    let txid = client.call("sendrawtransaction", json!([last["hex"]]));
    client.call("generatetoaddress", json!([1, NOBODY]));
    let sent = wallet.call("gettransaction", json!([txid]));
    assert_eq!((sent["confirmations"].as_u64(), sent["amount"].as_f64()), (Some(1), Some(-0.5)), "{sent}");
    assert_eq!(wallet.call("listlockunspent", json!([])), json!([]));
}

#[test]
fn walletcreatefundedpsbt_of_devices_is_signed_by_their_origins() {
    let host = Host::start();
    let client = &mut host.client();
    for (name, path, form) in [("segwit", "84'/1'/0'", "wpkh(KEY/*)"), ("taproot", "86'/1'/0'", "tr(KEY/*)")] {
        let [public, private] = Device::new(1).account(path);
        let mut wallet = watching(client, name, &form.replace("KEY", &public));
        let psbt = fund(&mut wallet);
        let signed = sign(client, &psbt, &form.replace("KEY", &private));
        send(client, &mut wallet, &signed);
    }
    // Any two of the three sign, and their PSBTs are combined.
    let keys = [2, 3, 4].map(|seed| Device::new(seed).account("48'/1'/0'/2'"));
    let descriptor = |of: &dyn Fn(usize) -> usize| {
        let keys: Vec<String> = (0..keys.len()).map(|at| format!("{}/*", keys[at][of(at)])).collect();
        format!("wsh(sortedmulti(2,{}))", keys.join(","))
    };
    let mut wallet = watching(client, "vault", &descriptor(&|_| 0));
    let psbt = fund(&mut wallet);
    let signed = |client: &mut Client, device: usize| sign(client, &psbt, &descriptor(&|at| usize::from(at == device)));
    let [first, third] = [0, 2].map(|device| signed(client, device));
    let alone = client.call("finalizepsbt", json!([first]));
    assert_eq!(alone["complete"], json!(false));
    let missing = client.call("analyzepsbt", json!([first]));
    assert_eq!(missing["next"], json!("signer"), "{missing}");
    let combined = client.call("combinepsbt", json!([[third, first]]));
    send(client, &mut wallet, &combined);
}
