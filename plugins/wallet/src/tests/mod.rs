//! The methods against a host in memory. Answers are compared as the bytes that a client gets, so that the order of keys and
//! the decimals of amounts count.

mod accounts;
mod addresses;
mod encryption;
mod keys;
mod locks;
mod manage;
mod many;
mod reuse;
mod sending;
mod unspent;
mod upkeep;

use bitcoin::hashes::Hash;
use bitcoin::{Amount, OutPoint, PubkeyHash, ScriptBuf, TxOut, Txid, WPubkeyHash};
use outrigger_sdk::service::Chain;
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::Coin;
use outrigger_sdk::service::wallet::{
    DescriptorInfo, KeyOrigin, Ownership, ScriptInfo, SolvingData, TxState, WalletCoin, WalletInfo, WalletOutput,
    WalletTransaction,
};
use outrigger_sdk::testing::{KnownTransaction, StubHost, TestPlugin, WalletState};
use outrigger_sdk::wire::Secret;
use outrigger_sdk::{FeeRate, RpcError};
use secp256k1::{PublicKey, Secp256k1, SecretKey};
use serde_json::{Value, json};

use crate::WalletPlugin;

const MANIFEST: &str = include_str!("../../manifest.json");

/// The chain's height in these tests.
const HEIGHT: u32 = 200;

/// A host with a wallet `w` that stands at [`HEIGHT`], and the plugin.
struct Fixture {
    host: StubHost,
    plugin: TestPlugin<WalletPlugin>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_fallback(1000)
    }

    /// With a feerate of payments that name none, in satoshi per 1000 virtual bytes; 0: none.
    fn with_fallback(satoshi: u64) -> Self {
        let host = StubHost::new();
        for _ in 0..HEIGHT {
            host.chain.mine(Vec::new());
        }
        let tip = host.chain.tip(Scope::NONE).unwrap();
        host.wallet.set(Some(WalletState::new("w", tip.hash, tip.height, tip.time)));
        let plugin = host.start::<WalletPlugin>(MANIFEST, json!({}));
        let test = Self { host, plugin };
        let fallback = Some(FeeRate::from_sat_per_kvb(satoshi)).filter(|feerate| *feerate > FeeRate::ZERO);
        test.wallet(|state| state.spending.fallback_feerate = fallback);
        test
    }

    fn wallet<T>(&self, body: impl FnOnce(&mut WalletState) -> T) -> T {
        self.host.wallet.with(body).unwrap()
    }

    fn info(&self, body: impl FnOnce(&mut WalletInfo)) {
        self.wallet(|state| body(&mut state.info));
    }

    fn call(&self, method: &str, arguments: Value) -> Result<Value, RpcError> {
        self.plugin.call(method, arguments)
    }

    /// The answer is this text.
    #[track_caller]
    fn check(&self, method: &str, arguments: Value, expect: &str) {
        assert_eq!(self.plugin.call_json(method, arguments).as_deref(), Ok(expect), "{method}");
    }

    /// The answer is this error.
    #[track_caller]
    fn refuse(&self, method: &str, arguments: Value, code: i32, message: &str) {
        let error = self.call(method, arguments.clone()).expect_err("an error");
        assert_eq!((error.code.0, error.message.as_str()), (code, message), "{method} {arguments}");
    }

    /// Gives the wallet a key, and gives the script that it has in this form.
    fn own(&self, key: &TestKey, form: Form) -> ScriptBuf {
        let script = key.script(form);
        let info = key.info(form);
        self.wallet(|state| {
            state.keys.push(key.secret);
            state.scripts.insert(script.clone(), info);
        });
        script
    }

    /// Gives the wallet a confirmed coin that others paid, and the chain the same coin.
    fn fund(&self, script: &ScriptBuf, value: u64, height: u32) -> OutPoint {
        self.add(WalletCoin { state: confirmed(height), ..coin(script, value, self.coins()) })
    }

    fn meet(&self, transaction: WalletTransaction) {
        let known = KnownTransaction { transaction, unsettled: None, raw: Vec::new() };
        self.wallet(|state| state.transactions.push(known));
    }

    fn coins(&self) -> u32 {
        self.wallet(|state| u32::try_from(state.coins.len()).unwrap())
    }

    fn add(&self, coin: WalletCoin) -> OutPoint {
        let outpoint = coin.outpoint;
        let output = TxOut { value: coin.value, script_pubkey: coin.script.clone() };
        if let TxState::Confirmed { height, .. } = coin.state {
            self.host.chain.add_coin(outpoint, Coin { output, height, coinbase: coin.coinbase });
        }
        self.wallet(|state| state.coins.push(coin));
        outpoint
    }
}

fn confirmed(height: u32) -> TxState {
    TxState::Confirmed { block: Hash::all_zeros(), height, index: 1, time: 0 }
}

/// An output of a value in satoshi.
fn output(value: u64, script: &ScriptBuf) -> TxOut {
    TxOut { value: Amount::from_sat(value), script_pubkey: script.clone() }
}

/// A trusted coin of ours; the number makes its transaction's id.
fn coin(script: &ScriptBuf, value: u64, number: u32) -> WalletCoin {
    let mut id = [0; 32];
    id[..4].copy_from_slice(&(number + 1).to_be_bytes());
    WalletCoin {
        outpoint: OutPoint::new(Txid::from_byte_array(id), 0),
        value: Amount::from_sat(value),
        script: script.clone(),
        state: confirmed(100),
        coinbase: false,
        ownership: Ownership::Spendable,
        change: false,
        label: None,
        trusted: true,
        from_us: false,
    }
}

/// The wallet's confirmed transaction of an id: what it spends, and whom of the wallet it pays.
fn transaction(txid: Txid, inputs: Vec<OutPoint>, script: &ScriptBuf) -> WalletTransaction {
    let output = WalletOutput {
        value: Amount::ONE_SAT,
        script: script.clone(),
        ownership: Ownership::Spendable,
        change: false,
        label: None,
        descriptors: Vec::new(),
    };
    WalletTransaction {
        contested: false,
        txid,
        wtxid: Hash::all_zeros(),
        state: confirmed(100),
        order_position: 0,
        time: 0,
        time_received: 0,
        coinbase: false,
        signals: true,
        lock_time: 0,
        total_output: Amount::ZERO,
        debit_spendable: Amount::ZERO,
        debit_watch_only: Amount::ZERO,
        metadata: Vec::new(),
        inputs,
        outputs: vec![output],
    }
}

/// The form of a key's script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Pkh,
    ShWpkh,
    Wpkh,
    Tr,
}

const FORMS: [Form; 4] = [Form::Pkh, Form::ShWpkh, Form::Wpkh, Form::Tr];

/// A key of these tests.
struct TestKey {
    secret: SecretKey,
    public: PublicKey,
}

impl TestKey {
    fn new(number: u8) -> Self {
        let secret = SecretKey::from_slice(&[number; 32]).unwrap();
        Self { secret, public: secret.public_key(&Secp256k1::new()) }
    }

    fn script(&self, form: Form) -> ScriptBuf {
        let key = self.public.serialize();
        let wpkh = ScriptBuf::new_p2wpkh(&WPubkeyHash::hash(&key));
        match form {
            Form::Pkh => ScriptBuf::new_p2pkh(&PubkeyHash::hash(&key)),
            Form::ShWpkh => wpkh.to_p2sh(),
            Form::Wpkh => wpkh,
            Form::Tr => ScriptBuf::new_p2tr(&Secp256k1::new(), self.public.x_only_public_key().0, None),
        }
    }

    fn info(&self, form: Form) -> ScriptInfo {
        let taproot = outrigger_sdk::service::wallet::TaprootData {
            internal_key: self.public.x_only_public_key().0.serialize(),
            merkle_root: None,
            leaves: Vec::new(),
        };
        let scripts = if form == Form::ShWpkh { vec![self.script(Form::Wpkh)] } else { Vec::new() };
        let public_keys = if form == Form::Tr { Vec::new() } else { vec![self.public.serialize().to_vec().into()] };
        ScriptInfo {
            ownership: Ownership::Spendable,
            solvable: true,
            label: None,
            change: false,
            internal: false,
            timestamp: 1_700_000_000,
            descriptor: "desc#checksum".into(),
            parents: vec!["parent#checksum".into()],
            solving: SolvingData { scripts, public_keys, taproot: (form == Form::Tr).then_some(taproot) },
            origins: vec![KeyOrigin {
                public_key: self.public.serialize().to_vec().into(),
                fingerprint: [0xde, 0x78, 0xd9, 0x33],
                path: "m/84h/1h/0h/0/1".into(),
            }],
        }
    }
}

fn descriptor(text: &str, internal: Option<bool>) -> DescriptorInfo {
    DescriptorInfo {
        text: Secret::new(text.into()),
        timestamp: 7,
        active: internal.is_some(),
        internal,
        range: internal.map(|_| (0, 999)),
        next_index: 3,
    }
}

fn address(script: &ScriptBuf) -> String {
    outrigger_sdk::standard::address::from_script(script, bitcoin::Network::Regtest).unwrap()
}
