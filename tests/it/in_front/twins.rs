//! A wallet of the host and one of the node with the same keys, which get the same calls.

use outrigger_tests::bitcoind::{twin, twin_named};
use outrigger_tests::{Client, Host};
use serde_json::{Value, json};

use super::{ADDRESS, start};

/// A wallet of the host, and a wallet of the node with the same keys.
pub struct Wallets {
    pub host: Host,
    pub ours: Client,
    pub theirs: Client,
}

impl Wallets {
    /// None, with a notice, if there is no bitcoind here.
    pub fn start() -> Option<Self> {
        start(&["-fallbackfee=0.0001"]).map(Self::of)
    }

    pub fn of(host: Host) -> Self {
        let mut ours = host.new_wallet("w");
        let theirs = twin(host.node_client(), &mut ours);
        Self { host, ours, theirs }
    }

    /// Replaces the wallets by new ones with new keys.
    pub fn renew(&mut self, name: &str) {
        self.ours = self.host.new_wallet(name);
        self.theirs = twin_named(&mut self.host.node_client(), &mut self.ours, name);
    }

    /// Replaces the wallets by new ones made with these arguments after the name.
    pub fn make(&mut self, name: &str, arguments: &[Value]) {
        let arguments = [&[json!(name)], arguments].concat();
        self.check("createwallet", json!(arguments)).unwrap();
        self.choose(name);
    }

    /// Replaces the wallets by other ones, which exist on both sides.
    pub fn choose(&mut self, name: &str) {
        self.ours = self.host.client().wallet(name);
        self.theirs = self.host.node_client().wallet(name);
    }

    /// Mines coins of 50 BTC to an address of both wallets until they are mature. Returns the address.
    pub fn fund(&mut self, coins: u32) -> String {
        let mine = self.address("", "bech32");
        self.mine(coins, &mine);
        self.mine(100, ADDRESS);
        mine
    }

    /// Calls `ask` with each wallet once it has followed its node.
    pub fn each<T>(&mut self, ask: impl Fn(&mut Client) -> T) -> [T; 2] {
        [&mut self.ours, &mut self.theirs].map(|wallet| {
            wallet.call("syncwithvalidationinterfacequeue", json!([]));
            ask(wallet)
        })
    }

    /// Checks that both wallets refuse the call with the same code and message, or both answer it.
    #[track_caller]
    pub fn check_refusal(&mut self, method: &str, params: Value) {
        let [ours, theirs] = self.ask(method, &params).map(|answer| answer.map(drop));
        assert_eq!(ours, theirs, "{method} {params}");
    }

    /// The answers of both. Transaction ids are sorted, since bitcoind returns them in no fixed order.
    pub fn ask(&mut self, method: &str, params: &Value) -> [Result<Value, (i64, String)>; 2] {
        self.host.node_client().call("syncwithvalidationinterfacequeue", json!([]));
        [&mut self.ours, &mut self.theirs].map(|wallet| {
            let answer = wallet.try_call(method, params.clone());
            answer.map(sorted).map_err(|error| (error.code, error.message))
        })
    }

    /// Checks that both wallets answer the same, and returns the answer.
    #[track_caller]
    pub fn check(&mut self, method: &str, params: Value) -> Result<Value, (i64, String)> {
        let [ours, theirs] = self.ask(method, &params);
        let text = |answer: &Result<Value, _>| answer.as_ref().map(Value::to_string).map_err(Clone::clone);
        assert_eq!(text(&ours), text(&theirs), "{method} {params}");
        ours
    }

    pub fn address(&mut self, label: &str, kind: &str) -> String {
        let address = self.check("getnewaddress", json!([label, kind])).unwrap();
        address.as_str().unwrap().to_owned()
    }

    pub fn mine(&mut self, count: u32, address: &str) {
        self.host.client().call("generatetoaddress", json!([count, address]));
    }
}

fn sorted(mut answer: Value) -> Value {
    for entry in answer.as_array_mut().into_iter().flatten() {
        if let Some(txids) = entry.get_mut("txids").and_then(Value::as_array_mut) {
            txids.sort_by_key(Value::to_string);
        }
    }
    answer
}
