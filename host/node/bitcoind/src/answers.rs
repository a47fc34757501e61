//! The node's answers, as far as they are read.

use bitcoin::hex::FromHex;
use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, SignedAmount, TxOut, Txid};
use outrigger_service::chain::Coin;
use outrigger_values::FeeRate;
use outrigger_values::amount::parse_fixed_point;
use serde::{Deserialize, Deserializer};

/// The decimals of an amount in BTC.
const DECIMALS: u32 = 8;

/// Of getrpcinfo: what the node runs now.
#[derive(Deserialize)]
pub struct RpcInfoAnswer {
    active_commands: Vec<ActiveAnswer>,
}

#[derive(Deserialize)]
struct ActiveAnswer {
    method: String,
}

impl RpcInfoAnswer {
    /// Whether a call of the method is running.
    pub fn runs(&self, method: &str) -> bool {
        self.active_commands.iter().any(|active| active.method == method)
    }
}

/// `getblockchaininfo`.
#[derive(Deserialize, Clone, Debug)]
pub struct ChainAnswer {
    /// The network: main, test, testnet4, signet or regtest.
    pub chain: String,
    /// The height of the best block.
    pub blocks: u32,
    /// The height of the best header.
    pub headers: u32,
    /// Whether the node is still fetching the chain.
    #[serde(default)]
    pub initialblockdownload: bool,
    /// The bytes of its block files.
    #[serde(default)]
    pub size_on_disk: Option<u64>,
    /// The challenge of a signet, hexadecimal (29).
    #[serde(default)]
    pub signet_challenge: Option<Hex>,
    /// The lowest block from which on it has all, where it prunes.
    #[serde(default)]
    pub pruneheight: Option<u32>,
    /// What its operator has to know: a list, or a text that may be empty (before 28).
    #[serde(default)]
    pub warnings: serde_json::Value,
}

impl ChainAnswer {
    /// What the node's operator has to know.
    pub fn warnings(&self) -> Vec<String> {
        let texts = match &self.warnings {
            serde_json::Value::Array(texts) => texts.as_slice(),
            text => std::slice::from_ref(text),
        };
        texts.iter().filter_map(|text| text.as_str()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    }
}

/// `getchainstates`.
#[derive(Deserialize)]
pub struct StatesAnswer {
    /// The chain states: at most one that was validated from the genesis block, and at most one that began with a snapshot.
    pub chainstates: Vec<StateAnswer>,
}

/// A chain state of `getchainstates`.
#[derive(Deserialize)]
pub struct StateAnswer {
    /// The block of the snapshot from which the chain state was loaded.
    #[serde(default)]
    pub snapshot_blockhash: Option<BlockHash>,
    /// Whether the node has validated the blocks below the snapshot.
    #[serde(default)]
    pub validated: bool,
}

impl StatesAnswer {
    /// The block of a snapshot below which the node still validates blocks in the background.
    pub fn unvalidated(&self) -> Option<BlockHash> {
        self.chainstates.iter().filter(|state| !state.validated).find_map(|state| state.snapshot_blockhash)
    }
}

/// `getnetworkinfo`.
#[derive(Deserialize)]
pub struct NetworkAnswer {
    /// The node's version: 290400 for 29.4.
    version: u32,
}

impl NetworkAnswer {
    /// The first number of its release.
    pub fn release(&self) -> u32 {
        const PER_RELEASE: u32 = 10_000;
        self.version / PER_RELEASE
    }
}

/// `getblockchaininfo` since 29, and `getblocktemplate`, on a signet.
#[derive(Deserialize)]
pub struct ChallengeAnswer {
    /// The challenge.
    #[serde(default)]
    pub signet_challenge: Option<Hex>,
}

/// `getmempoolinfo`.
#[derive(Deserialize, Clone, PartialEq, Debug)]
pub struct MempoolAnswer {
    /// How many transactions it has.
    pub size: u64,
    /// The sum of their virtual sizes.
    pub bytes: u64,
    /// The memory they take.
    pub usage: u64,
    /// The sum of their fees, in BTC (0.21).
    #[serde(default)]
    pub total_fee: Btc,
    /// The limit of `usage`.
    pub maxmempool: u64,
    /// The least feerate, in BTC per 1000 virtual bytes.
    pub mempoolminfee: Btc,
    /// The least feerate that is relayed.
    pub minrelaytxfee: Btc,
    /// The feerate that a replacement adds (0.24).
    #[serde(default)]
    pub incrementalrelayfee: Option<Btc>,
    /// Transactions that no peer has asked for yet.
    #[serde(default)]
    pub unbroadcastcount: u64,
}

/// An amount, read from its decimal text without a float.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Btc(pub Amount);

impl Btc {
    /// As a feerate, of an answer in BTC per 1000 virtual bytes.
    pub fn feerate(self) -> FeeRate {
        FeeRate::from_sat_per_kvb(self.0.to_sat())
    }
}

impl<'de> Deserialize<'de> for Btc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        let satoshi = parse_fixed_point(&number.to_string(), DECIMALS).and_then(|value| u64::try_from(value).ok());
        satoshi.map(|satoshi| Self(Amount::from_sat(satoshi))).ok_or_else(|| serde::de::Error::custom("no amount"))
    }
}

/// Bytes in hexadecimal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hex(pub Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Vec::from_hex(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

/// A scriptPubKey.
#[derive(Deserialize, Clone, Debug)]
pub struct ScriptAnswer {
    /// Its bytes.
    pub hex: Hex,
}

/// `gettxout`.
#[derive(Deserialize, Clone, Debug)]
pub struct CoinAnswer {
    /// The tip as of which it is unspent.
    pub bestblock: BlockHash,
    /// How many blocks it has on it, its own included.
    pub confirmations: u32,
    /// Its value.
    pub value: Btc,
    /// Its script.
    #[serde(rename = "scriptPubKey")]
    pub script_pubkey: ScriptAnswer,
    /// Whether its transaction is a coinbase.
    pub coinbase: bool,
}

impl CoinAnswer {
    /// The coin, as of a tip at this height.
    pub fn coin(self, tip: u32) -> Coin {
        Coin {
            output: output(self.value, self.script_pubkey),
            height: tip.saturating_add(1).saturating_sub(self.confirmations),
            coinbase: self.coinbase,
        }
    }
}

fn output(value: Btc, script: ScriptAnswer) -> TxOut {
    TxOut { value: value.0, script_pubkey: ScriptBuf::from_bytes(script.hex.0) }
}

/// `getblock` with verbosity 3.
#[derive(Deserialize, Debug)]
pub struct BlockAnswer {
    /// Its transactions.
    pub tx: Vec<TransactionAnswer>,
}

/// A transaction of it.
#[derive(Deserialize, Debug)]
pub struct TransactionAnswer {
    /// Its inputs.
    pub vin: Vec<InputAnswer>,
}

/// An input of it.
#[derive(Deserialize, Debug)]
pub struct InputAnswer {
    /// What it spends; not of a coinbase, nor where the undo data is gone.
    #[serde(default)]
    pub prevout: Option<PrevoutAnswer>,
}

/// What an input spends.
#[derive(Deserialize, Debug)]
pub struct PrevoutAnswer {
    /// Whether it came of a coinbase.
    pub generated: bool,
    /// The height of its block.
    pub height: u32,
    /// Its value.
    pub value: Btc,
    /// Its script.
    #[serde(rename = "scriptPubKey")]
    pub script_pubkey: ScriptAnswer,
}

impl PrevoutAnswer {
    /// The coin that was spent.
    pub fn coin(self) -> Coin {
        Coin { output: output(self.value, self.script_pubkey), height: self.height, coinbase: self.generated }
    }
}

/// `getmempoolentry`.
#[derive(Deserialize, Clone, Debug)]
pub struct EntryAnswer {
    /// Its virtual size.
    pub vsize: u64,
    /// Its weight.
    #[serde(default)]
    pub weight: Option<u64>,
    /// When it came.
    pub time: u64,
    /// The tip's height when it came.
    pub height: u32,
    /// How many it descends from, itself included.
    pub ancestorcount: u64,
    /// Their virtual size.
    pub ancestorsize: u64,
    /// How many descend from it, itself included.
    pub descendantcount: u64,
    /// Their virtual size.
    pub descendantsize: u64,
    /// Its id with witness.
    pub wtxid: bitcoin::Wtxid,
    /// Its fees.
    pub fees: FeesAnswer,
    /// Whose outputs it spends.
    pub depends: Vec<Txid>,
    /// Which spend its outputs.
    #[serde(default)]
    pub spentby: Vec<Txid>,
    /// Whether it can be replaced.
    #[serde(rename = "bip125-replaceable", default)]
    pub replaceable: bool,
    /// Whether no peer has asked for it yet.
    #[serde(default)]
    pub unbroadcast: bool,
}

/// The fees of an entry, in BTC.
#[derive(Deserialize, Clone, Debug)]
pub struct FeesAnswer {
    /// Its own.
    pub base: Btc,
    /// Its own, with what prioritisetransaction added.
    pub modified: SignedBtc,
    /// Those of its ancestors.
    pub ancestor: SignedBtc,
    /// Those of its descendants.
    pub descendant: SignedBtc,
}

/// An amount that may be below 0.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SignedBtc(pub SignedAmount);

impl<'de> Deserialize<'de> for SignedBtc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        parse_fixed_point(&number.to_string(), DECIMALS)
            .map(SignedAmount::from_sat)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom("no amount"))
    }
}

/// `getchaintips`.
#[derive(Deserialize, Clone, Debug)]
pub struct TipAnswer {
    /// Its height.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
    /// The number of blocks from the best chain to it.
    pub branchlen: u32,
    /// How far it was checked.
    pub status: String,
}

/// `gettxspendingprevout`.
#[derive(Deserialize, Debug)]
pub struct SpenderAnswer {
    /// The spender, if there is one.
    #[serde(default)]
    pub spendingtxid: Option<Txid>,
}

/// `estimatesmartfee`.
#[derive(Deserialize, Debug)]
pub struct FeeAnswer {
    /// In BTC per 1000 virtual bytes.
    #[serde(default)]
    pub feerate: Option<Btc>,
    /// The blocks that it is for.
    #[serde(default)]
    pub blocks: u32,
}

/// `testmempoolaccept`, of one transaction.
#[derive(Deserialize, Debug)]
pub struct AcceptAnswer {
    /// Whether it would be accepted.
    #[serde(default)]
    pub allowed: bool,
    /// Its virtual size.
    #[serde(default)]
    pub vsize: Option<u64>,
    /// Its fees.
    #[serde(default)]
    pub fees: Option<BaseFee>,
    /// Why it is refused.
    #[serde(rename = "reject-reason", default)]
    pub reject_reason: Option<String>,
    /// More of it (29).
    #[serde(rename = "reject-details", default)]
    pub reject_details: Option<String>,
}

/// The fee of a transaction.
#[derive(Deserialize, Debug)]
pub struct BaseFee {
    /// In BTC.
    pub base: Btc,
}

/// The outpoint as the node's methods take it.
pub fn outpoint(outpoint: &OutPoint) -> serde_json::Value {
    serde_json::json!({"txid": outpoint.txid, "vout": outpoint.vout})
}
