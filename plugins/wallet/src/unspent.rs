//! `listunspent`.

use std::collections::HashSet;

use bitcoin::{Amount, Network, ScriptBuf};
use outrigger_kit::services;
use outrigger_kit::spend::coins;
use outrigger_kit::spend::known::{redeem_script, witness_script};
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::methods::Json;
use outrigger_sdk::params::{Type, encode_hex, int32};
use outrigger_sdk::service::mempool::MempoolEntry;
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo, WalletCoin, WalletInfo};
use outrigger_sdk::standard::{ScriptKind, address, classify};
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde_json::{Map, Value, json};

use crate::transactions::parent_texts;
use crate::{WalletPlugin, arguments};

/// The default of `maxconf`.
const DEFAULT_MAX_DEPTH: i32 = 9_999_999;

/// The number of coins in one batch of lookups and output.
const COINS_PER_BATCH: usize = 1_000;

const UNLIMITED: Amount = Amount::MAX_MONEY;

#[derive(Debug)]
struct Filter {
    min_depth: i32,
    max_depth: i32,
    /// An empty set matches all scripts.
    scripts: HashSet<ScriptBuf>,
    include_unsafe: bool,
    options: Options,
}

/// The argument `query_options`.
#[derive(PartialEq, Eq, Debug)]
struct Options {
    minimum_amount: Amount,
    maximum_amount: Amount,
    /// The listing stops when its coins reach this sum, unless it is [`UNLIMITED`].
    minimum_sum_amount: Amount,
    /// The listing stops at this number of coins, unless it is 0.
    maximum_count: u64,
    include_immature_coinbase: bool,
}

impl Options {
    /// Checks in the order of bitcoind: types in byte order of the names, then unknown keys, then amounts.
    fn parse(object: &Map<String, Value>) -> Result<Self, RpcError> {
        const KNOWN: [(&str, Option<Type>); 5] = [
            ("include_immature_coinbase", Some(Type::Bool)),
            ("maximumAmount", None),
            ("maximumCount", Some(Type::Number)),
            ("minimumAmount", None),
            ("minimumSumAmount", None),
        ];
        typed::check_options(object, &KNOWN)?;
        let amount = |name: &str, default| object.get(name).map_or(Ok(default), amount::from_json);
        Ok(Self {
            minimum_amount: amount("minimumAmount", Amount::ZERO)?,
            maximum_amount: amount("maximumAmount", UNLIMITED)?,
            minimum_sum_amount: amount("minimumSumAmount", UNLIMITED)?,
            // As in bitcoind, a negative count means no limit.
            maximum_count: object.get("maximumCount").map_or(Ok(0_i64), typed::integer)?.try_into().unwrap_or(0),
            include_immature_coinbase: object.get("include_immature_coinbase").map_or(Ok(false), typed::flag)?,
        })
    }
}

impl Filter {
    fn matches(&self, coin: &WalletCoin, wallet: &WalletInfo) -> bool {
        let depth = i64::from(coins::depth(coin, &wallet.synced));
        coin.ownership != Ownership::None
            && coins::is_present(coin)
            && (self.options.include_immature_coinbase || !coins::is_immature(coin, &wallet.synced))
            && (self.include_unsafe || coin.trusted)
            && (i64::from(self.min_depth)..=i64::from(self.max_depth)).contains(&depth)
            && (self.options.minimum_amount..=self.options.maximum_amount).contains(&coin.value)
            && (self.scripts.is_empty() || self.scripts.contains(&coin.script))
    }

    /// Lists each matching coin, until `minimum_sum_amount` or `maximum_count` is reached.
    fn list(&self, listing: &mut Listing<'_>) -> Result<(), RpcError> {
        let (services, wallet) = (services(listing.call), listing.wallet);
        let locked = coins::locked(services)?;
        let (mut count, mut total) = (0_u64, Amount::ZERO);
        let first = match self.options.maximum_count {
            0 => coins::BATCH,
            count => u32::try_from(count).unwrap_or(coins::BATCH),
        };
        for page in coins::pages(services, self.max_depth <= 0, first) {
            let mut page = page?;
            // As in bitcoind, the coins of a transaction that replaces another or is replaced are not safe.
            let replacements = coins::replacements(services, &page)?;
            page.iter_mut().for_each(|coin| coin.trusted &= !replacements.contains(&coin.outpoint.txid));
            let unlocked = page.into_iter().filter(|coin| !locked.contains(&coin.outpoint));
            for coin in unlocked.filter(|coin| self.matches(coin, wallet)) {
                total = total.saturating_add(coin.value);
                count += 1;
                listing.add(coin)?;
                let enough = self.options.minimum_sum_amount != UNLIMITED && total >= self.options.minimum_sum_amount;
                let full = self.options.maximum_count > 0 && count >= self.options.maximum_count;
                if enough || full {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[methods(category = "Wallet")]
impl WalletPlugin {
    /// Lists coins.
    ///
    /// * `minconf` (default: 1) - The minimum number of confirmations.
    /// * `maxconf` (default: 9999999) - The maximum number of confirmations.
    /// * `addresses` (default: []) - Lists only the coins of these addresses.
    /// * `include_unsafe` - Whether to list unconfirmed coins from other senders.
    /// * `query_options` - Options, which a call by name can also give as arguments of their own:
    ///   * `minimumAmount` (amount; default: 0) - The minimum value of a coin in BTC.
    ///   * `maximumAmount` (amount; default: unlimited) - The maximum value of a coin in BTC.
    ///   * `maximumCount` (numeric; default: unlimited) - The maximum number of coins.
    ///   * `minimumSumAmount` (amount; default: unlimited) - The listing stops when its coins reach this sum, in BTC.
    ///   * `include_immature_coinbase` (boolean; default: false) - Whether to list immature coinbase outputs.
    ///
    /// # Result
    /// [{"txid": "...", "vout": n, "address": "...", "label": "...", "scriptPubKey": "...", "amount": n,
    /// "confirmations": n, ..., "spendable": true|false, "solvable": true|false, "desc": "...", "parent_descs":
    /// [...], "safe": true|false}, ...]    (json array) By outpoint; amounts in BTC.
    ///
    /// # Example
    /// 6 9999999 "[]" true '{"minimumAmount": 0.005}'
    #[method]
    fn listunspent(
        call: &Call<'_>,
        #[arg(kind = "numeric")] minconf: Option<&Value>,
        #[arg(kind = "numeric")] maxconf: Option<&Value>,
        addresses: Option<&[Value]>,
        #[arg(default = true)] include_unsafe: bool,
        query_options: Option<&Map<String, Value>>,
    ) -> Result<Json, RpcError> {
        let wallet = call.wallet()?;
        let network = call.network()?;
        let filter = Filter {
            min_depth: minconf.map_or(Ok(1), int32)?,
            max_depth: maxconf.map_or(Ok(DEFAULT_MAX_DEPTH), int32)?,
            scripts: addresses.map_or(Ok(HashSet::new()), |list| arguments::addresses(list, network))?,
            include_unsafe,
            options: Options::parse(query_options.unwrap_or(&Map::new()))?,
        };
        let mut listing = Listing { call, wallet: &wallet, network, coins: Vec::new(), out: vec![b'['] };
        filter.list(&mut listing)?;
        listing.write()?;
        listing.out.push(b']');
        Ok(Json(listing.out))
    }
}

/// Writes the answer as text, in batches. For a long answer, a `serde_json::Value` would need several times the memory.
struct Listing<'a> {
    call: &'a Call<'a>,
    wallet: &'a WalletInfo,
    network: Network,
    /// The batch to write next.
    coins: Vec<WalletCoin>,
    out: Vec<u8>,
}

impl Listing<'_> {
    fn add(&mut self, coin: WalletCoin) -> Result<(), RpcError> {
        self.coins.push(coin);
        if self.coins.len() < COINS_PER_BATCH { Ok(()) } else { self.write() }
    }

    /// Looks up the details of the batch, and writes it.
    fn write(&mut self) -> Result<(), RpcError> {
        let (call, coins) = (self.call, std::mem::take(&mut self.coins));
        let scripts = coins::scripts_of(services(call), &coins)?;
        let entries = coins::mempool_entries(services(call), &coins)?;
        let parents = parent_texts(call, &coins)?;
        let avoids_reuse = self.wallet.avoid_reuse;
        let spent_from = if avoids_reuse { Some(coins::spent_from(services(call), &coins)?) } else { None };
        for coin in &coins {
            let reused = spent_from.as_ref().map(|scripts| scripts.contains(&coin.script));
            let (script, mempool_entry) = (scripts.get(&coin.script), entries.get(&coin.outpoint.txid));
            let parents = parents.get(&coin.outpoint).map(Vec::as_slice).unwrap_or_default();
            let entry = self.entry(coin, script, mempool_entry, parents, reused);
            if self.out.len() > 1 {
                self.out.push(b',');
            }
            serde_json::to_writer(&mut self.out, &entry).map_err(|error| RpcError::internal(error.to_string()))?;
        }
        Ok(())
    }

    /// A coin with the results of its lookups: the texts of its descriptors, and whether the wallet has spent from its script (`None`
    /// without the flag `avoid_reuse`).
    fn entry(
        &self,
        coin: &WalletCoin,
        script: Option<&ScriptInfo>,
        mempool_entry: Option<&MempoolEntry>,
        parents: &[String],
        reused: Option<bool>,
    ) -> Value {
        let depth = coins::depth(coin, &self.wallet.synced);
        let solvable = script.is_some_and(|info| info.solvable);
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("txid", json!(coin.outpoint.txid));
        put("vout", json!(coin.outpoint.vout));
        if let Some(address) = address::from_script(&coin.script, self.network) {
            put("address", json!(address));
            if let Some(label) = &coin.label {
                put("label", json!(label));
            }
            for (key, script) in script.map(|info| scripts_behind(coin, info)).unwrap_or_default() {
                put(key, json!(encode_hex(script.as_bytes())));
            }
        }
        put("scriptPubKey", json!(encode_hex(coin.script.as_bytes())));
        put("amount", amount::to_json(coin.value));
        put("confirmations", json!(depth));
        if let Some(entry) = mempool_entry.filter(|_| depth == 0) {
            put("ancestorcount", json!(entry.ancestor_count));
            put("ancestorsize", json!(entry.ancestor_size));
            put("ancestorfees", json!(entry.ancestor_fees.to_sat()));
        }
        put("spendable", json!(coin.ownership == Ownership::Spendable));
        put("solvable", json!(solvable));
        if let Some(info) = script.filter(|info| solvable && !info.descriptor.is_empty()) {
            put("desc", json!(info.descriptor));
        }
        put("parent_descs", json!(parents));
        if let Some(reused) = reused {
            put("reused", json!(reused));
        }
        put("safe", json!(coin.trusted));
        Value::Object(object)
    }
}

/// The redeem script and the witness script of a coin, as far as the wallet has them.
fn scripts_behind<'a>(coin: &WalletCoin, info: &'a ScriptInfo) -> Vec<(&'static str, &'a ScriptBuf)> {
    let mut scripts = Vec::new();
    let mut script = &coin.script;
    if let ScriptKind::ScriptHash { hash } = classify(script)
        && let Some(redeem) = redeem_script(hash, &info.solving)
    {
        scripts.push(("redeemScript", redeem));
        script = redeem;
    }
    if let ScriptKind::WitnessV0ScriptHash { hash } = classify(script)
        && let Some(witness) = witness_script(hash, &info.solving)
    {
        scripts.push(("witnessScript", witness));
    }
    scripts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(options: Value) -> Result<Options, String> {
        Options::parse(options.as_object().unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn listunspent_query_options_are_checked_as_by_release_29() {
        let all = json!({"minimumAmount": "0.5", "maximumAmount": 2, "maximumCount": 3, "minimumSumAmount": 1,
            "include_immature_coinbase": true});
        let wanted = Options {
            minimum_amount: Amount::from_sat(50_000_000),
            maximum_amount: Amount::from_sat(200_000_000),
            minimum_sum_amount: Amount::from_sat(100_000_000),
            maximum_count: 3,
            include_immature_coinbase: true,
        };
        assert_eq!(parse(all), Ok(wanted));
        assert_eq!(parse(json!({"maximumCount": -1})), parse(json!({})));
        for (options, message) in [
            (json!({"nosuch": 1}), "Unexpected key nosuch"),
            (json!({"minimumAmount": -1}), "Amount out of range"),
            (json!({"minimumAmount": null}), "Amount is not a number or string"),
            (json!({"maximumCount": 1.5}), "JSON integer out of range"),
            (json!({"maximumCount": null}), "JSON value of type null is not of expected type number"),
            (
                json!({"maximumCount": "x", "nosuch": 1}),
                "JSON value of type string for field maximumCount is not of expected type number",
            ),
        ] {
            assert_eq!(parse(options.clone()), Err(message.to_owned()), "{options}");
        }
    }
}
