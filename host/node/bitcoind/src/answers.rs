//! The parts of the node's answers that the host reads.

use bitcoin::consensus::encode::{Decodable, VarInt};
use bitcoin::hex::FromHex;
use bitcoin::{Amount, BlockHash, OutPoint, ScriptBuf, SignedAmount, TxOut, Txid};
use outrigger_service::chain::Coin;
use outrigger_standard::release;
use outrigger_values::FeeRate;
use outrigger_values::amount::parse_fixed_point;
use serde::{Deserialize, Deserializer};

use super::error::OpenError;

/// The decimal places of an amount in BTC.
const DECIMALS: u32 = 8;

/// `getrpcinfo`.
#[derive(Deserialize)]
pub struct RpcInfoAnswer {
    active_commands: Vec<ActiveAnswer>,
}

#[derive(Deserialize)]
struct ActiveAnswer {
    method: String,
}

impl RpcInfoAnswer {
    pub fn runs(&self, method: &str) -> bool {
        self.active_commands.iter().any(|active| active.method == method)
    }
}

#[derive(Deserialize, Clone, Debug)]
pub struct ChainAnswer {
    /// main, test, testnet4, signet or regtest.
    pub chain: String,
    pub blocks: u32,
    pub headers: u32,
    #[serde(default)]
    pub initialblockdownload: bool,
    pub size_on_disk: Option<u64>,
    #[serde(default)]
    pub pruned: bool,
    /// In hex (since Bitcoin Core 29).
    pub signet_challenge: Option<Hex>,
    /// The height of the lowest block that a pruned node stores.
    pub pruneheight: Option<u32>,
    /// A list, or before Bitcoin Core 28 a text that may be empty.
    #[serde(default)]
    pub warnings: serde_json::Value,
}

impl ChainAnswer {
    pub fn warnings(&self) -> Vec<String> {
        let texts = match &self.warnings {
            serde_json::Value::Array(texts) => texts.as_slice(),
            text => std::slice::from_ref(text),
        };
        texts.iter().filter_map(|text| text.as_str()).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    }
}

#[derive(Deserialize)]
pub struct StatesAnswer {
    /// At most two: the chain validated from the genesis block, and one loaded from a snapshot of the unspent outputs.
    pub chainstates: Vec<StateAnswer>,
}

#[derive(Deserialize)]
pub struct StateAnswer {
    pub snapshot_blockhash: Option<BlockHash>,
    /// Whether the blocks up to the snapshot were validated.
    #[serde(default)]
    pub validated: bool,
}

impl StatesAnswer {
    /// The block of a snapshot that the node still validates in the background.
    pub fn unvalidated(&self) -> Option<BlockHash> {
        self.chainstates.iter().filter(|state| !state.validated).find_map(|state| state.snapshot_blockhash)
    }
}

/// `getnetworkinfo`.
#[derive(Deserialize)]
pub struct NetworkAnswer {
    /// 290400 for 29.4.
    version: u32,
}

impl NetworkAnswer {
    /// The major release. A build between two releases, such as 31.99, has the rules of the later one.
    pub fn release(&self) -> u32 {
        const PER_RELEASE: u32 = 10_000;
        const BEFORE_RELEASE: u32 = 9_900;
        let later = self.version % PER_RELEASE >= BEFORE_RELEASE;
        self.version / PER_RELEASE + u32::from(later)
    }

    /// Refuses a node that is too old for the host.
    pub fn check(&self) -> Result<(), OpenError> {
        let release = self.release();
        if release < release::FIRST { Err(OpenError::TooOld { release }) } else { Ok(()) }
    }
}

/// `getblockchaininfo` (since Bitcoin Core 29) and `getblocktemplate`, on a signet.
#[derive(Deserialize)]
pub struct ChallengeAnswer {
    pub signet_challenge: Option<Hex>,
}

#[derive(Deserialize, Clone, PartialEq, Debug)]
pub struct MempoolAnswer {
    pub size: u64,
    pub bytes: u64,
    /// In bytes.
    pub usage: u64,
    pub total_fee: Btc,
    /// The limit of `usage`.
    pub maxmempool: u64,
    /// Per 1000 virtual bytes.
    pub mempoolminfee: Btc,
    pub minrelaytxfee: Btc,
    /// Since 24.
    pub incrementalrelayfee: Option<Btc>,
    /// Transactions that no peer has requested yet.
    #[serde(default)]
    pub unbroadcastcount: u64,
    /// The maximum number of transactions in a cluster. Since 31.
    pub limitclustercount: Option<u64>,
    /// The maximum size of a cluster, in virtual bytes. Since 31.
    pub limitclustersize: Option<u64>,
}

/// An amount, parsed from its decimal text without a float.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Btc(pub Amount);

impl Btc {
    /// An amount per 1000 virtual bytes, as a feerate.
    pub fn feerate(self) -> FeeRate {
        FeeRate::from_sat_per_kvb(self.0.to_sat())
    }
}

impl<'de> Deserialize<'de> for Btc {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        SignedBtc::deserialize(deserializer)?.0.to_unsigned().map(Self).map_err(serde::de::Error::custom)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hex(pub Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        Vec::from_hex(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

#[derive(Deserialize, Clone, Debug)]
pub struct ScriptAnswer {
    pub hex: Hex,
}

#[derive(Deserialize, Clone, Debug)]
pub struct CoinAnswer {
    /// The best block at the time of the answer.
    pub bestblock: BlockHash,
    /// Includes the coin's own block.
    pub confirmations: u32,
    pub value: Btc,
    #[serde(rename = "scriptPubKey")]
    pub script_pubkey: ScriptAnswer,
    pub coinbase: bool,
}

impl CoinAnswer {
    /// `tip` is the height of `bestblock`.
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

#[derive(Deserialize, Debug)]
pub struct BlockAnswer {
    pub tx: Vec<TransactionAnswer>,
}

#[derive(Deserialize, Debug)]
pub struct TransactionAnswer {
    pub vin: Vec<InputAnswer>,
}

#[derive(Deserialize, Debug)]
pub struct InputAnswer {
    /// The spent output; absent for a coinbase, and without undo data.
    pub prevout: Option<PrevoutAnswer>,
}

#[derive(Deserialize, Debug)]
pub struct PrevoutAnswer {
    pub generated: bool,
    pub height: u32,
    pub value: Btc,
    #[serde(rename = "scriptPubKey")]
    pub script_pubkey: ScriptAnswer,
}

impl PrevoutAnswer {
    pub fn coin(self) -> Coin {
        Coin { output: output(self.value, self.script_pubkey), height: self.height, coinbase: self.generated }
    }
}

/// Parses `/rest/spenttxouts`: the outputs that each transaction of a block spends; `None` if malformed.
pub fn read_spent(mut bytes: &[u8]) -> Option<Vec<Vec<TxOut>>> {
    let mut transactions = Vec::new();
    // The counts are not trusted, so no memory is reserved for them.
    for _ in 0..VarInt::consensus_decode(&mut bytes).ok()?.0 {
        let count = VarInt::consensus_decode(&mut bytes).ok()?.0;
        transactions.push((0..count).map(|_| TxOut::consensus_decode(&mut bytes).ok()).collect::<Option<_>>()?);
    }
    bytes.is_empty().then_some(transactions)
}

/// `getmempoolentry`.
#[derive(Deserialize, Clone, Debug)]
pub struct EntryAnswer {
    pub vsize: u64,
    pub weight: Option<u64>,
    pub time: u64,
    /// The tip's height at entry.
    pub height: u32,
    /// Itself included.
    pub ancestorcount: u64,
    /// In virtual bytes.
    pub ancestorsize: u64,
    /// Itself included.
    pub descendantcount: u64,
    /// In virtual bytes.
    pub descendantsize: u64,
    pub wtxid: bitcoin::Wtxid,
    pub fees: FeesAnswer,
    pub depends: Vec<Txid>,
    #[serde(default)]
    pub spentby: Vec<Txid>,
    /// Before 32.
    #[serde(rename = "bip125-replaceable")]
    pub replaceable: Option<bool>,
    /// Whether no peer has requested it yet.
    #[serde(default)]
    pub unbroadcast: bool,
}

#[derive(Deserialize, Clone, Debug)]
pub struct FeesAnswer {
    pub base: Btc,
    /// With the delta of prioritisetransaction.
    pub modified: SignedBtc,
    pub ancestor: SignedBtc,
    pub descendant: SignedBtc,
}

/// An amount that may be negative.
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
    pub height: u32,
    pub hash: BlockHash,
    /// The number of blocks after the fork.
    pub branchlen: u32,
    pub status: String,
}

#[derive(Deserialize, Debug)]
pub struct SpenderAnswer {
    pub spendingtxid: Option<Txid>,
}

#[derive(Deserialize, Debug)]
pub struct FeeAnswer {
    /// Per 1000 virtual bytes.
    pub feerate: Option<Btc>,
    /// The confirmation target, in blocks.
    #[serde(default)]
    pub blocks: u32,
}

/// `testmempoolaccept`, for one transaction.
#[derive(Deserialize, Debug)]
pub struct AcceptAnswer {
    #[serde(default)]
    pub allowed: bool,
    pub vsize: Option<u64>,
    pub fees: Option<BaseFee>,
    #[serde(rename = "reject-reason")]
    pub reject_reason: Option<String>,
    /// Since 29.
    #[serde(rename = "reject-details")]
    pub reject_details: Option<String>,
}

#[derive(Deserialize, Debug)]
pub struct BaseFee {
    pub base: Btc,
}

/// An outpoint as a parameter of the node's methods.
pub fn outpoint(outpoint: &OutPoint) -> serde_json::Value {
    serde_json::json!({"txid": outpoint.txid, "vout": outpoint.vout})
}
