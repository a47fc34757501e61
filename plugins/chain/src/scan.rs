//! What pays to the scripts of descriptors: among the unspent outputs (`scantxoutset`), and in which blocks (`scanblocks`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bitcoin::{Amount, OutPoint, Script, ScriptBuf};
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::descriptor::{Checksum, DerivedKeys, Descriptor, ExpandError};
use outrigger_sdk::params::{self, encode_hex};
use outrigger_sdk::service::chain::{BlockRef, FoundCoin, UnspentOutput};
use outrigger_sdk::wire::Encoded;
use outrigger_sdk::{Reply, parallel};
use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::filters::{BASIC, Connected};
use crate::{Context, Outcome, args};

/// The most outputs that the host looks at before the scan may end: some hundredths of a second's work.
const BATCH: u32 = 1 << 16;
/// The indexes of a descriptor that are derived at a time.
const CHUNK: u32 = 1 << 16;
/// The indexes that are worth a thread.
const INDEXES_PER_BATCH: usize = 16;
/// The outputs to show that are worth a thread.
const COINS_PER_BATCH: usize = 64;
/// The indexes of a ranged descriptor that are looked for where none are given.
const DEFAULT_RANGE: (u32, u32) = (0, 1000);

/// The one scan of a kind that may be going on.
#[derive(Default)]
pub struct Scan {
    running: AtomicBool,
    aborted: AtomicBool,
    /// How far it is, in percent.
    progress: AtomicU32,
    /// The block that it is at.
    height: AtomicU32,
}

/// A scan that is going on. Dropping it ends it.
struct Running<'a>(&'a Scan);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::SeqCst);
    }
}

impl Scan {
    fn begin(&self) -> Result<Running<'_>, ChainError> {
        if self.running.swap(true, Ordering::SeqCst) {
            return Err(ChainError::ScanInProgress);
        }
        self.aborted.store(false, Ordering::SeqCst);
        self.progress.store(0, Ordering::Relaxed);
        Ok(Running(self))
    }

    /// Whether a scan was going on, which ends now.
    pub fn abort(&self) -> bool {
        let running = self.running.load(Ordering::SeqCst);
        self.aborted.store(running, Ordering::SeqCst);
        running
    }

    /// Answers an action other than `start`; none for that one.
    fn answer(&self, context: &Context<'_>, with_height: bool) -> Result<Option<Value>, ChainError> {
        match args::text(context.params.get(0))? {
            "status" if !self.running.load(Ordering::SeqCst) => Ok(Some(Value::Null)),
            "status" => {
                let mut object = Map::new();
                object.insert("progress".into(), json!(self.progress.load(Ordering::Relaxed)));
                if with_height {
                    object.insert("current_height".into(), json!(self.height.load(Ordering::Relaxed)));
                }
                Ok(Some(Value::Object(object)))
            }
            "abort" => Ok(Some(json!(self.abort()))),
            "start" => Ok(None),
            action => Err(ChainError::ScanAction(action.to_owned())),
        }
    }

    fn goes_on(&self, reply: &Reply) -> bool {
        !self.aborted.load(Ordering::SeqCst) && reply.is_wanted()
    }
}

/// A script to look for: what it is of a descriptor, which is told of those that are found.
struct Needle {
    /// The place of its descriptor.
    descriptor: usize,
    keys: DerivedKeys,
    /// Its place among the scripts of these keys.
    place: usize,
}

/// Scripts to look for, and where they come from.
#[derive(Default)]
pub struct Needles {
    descriptors: Vec<Descriptor>,
    scripts: HashMap<ScriptBuf, Needle>,
}

impl Needles {
    /// The scripts of an array of descriptors, each a text or an object with a range.
    pub fn of(context: &Context<'_>, objects: &Value) -> Result<Self, ChainError> {
        let mut needles = Self::default();
        for object in args::array(objects)? {
            let (text, range) = match object {
                Value::String(text) => (text.as_str(), DEFAULT_RANGE),
                Value::Object(object) => {
                    let given = |name: &str| object.get(name).filter(|value| !value.is_null());
                    let text = args::text(given("desc").ok_or(ChainError::NoScanDescriptor)?)?;
                    (text, given("range").map_or(Ok(DEFAULT_RANGE), params::descriptor_range)?)
                }
                _ => return Err(ChainError::ScanObject),
            };
            let descriptors = Descriptor::parse(text, context.network()?, Checksum::Optional);
            let descriptors = descriptors.map_err(|error| ChainError::Descriptor(error.to_string()))?;
            let ranged = descriptors.first().is_some_and(Descriptor::is_ranged);
            for descriptor in descriptors {
                let added = needles.add(descriptor, if ranged { range } else { (0, 0) });
                added.map_err(|_| ChainError::NeedsPrivateKeys(text.to_owned()))?;
            }
        }
        Ok(needles)
    }

    /// Adds the scripts of a descriptor at a range of indexes.
    fn add(&mut self, descriptor: Descriptor, (begin, end): (u32, u32)) -> Result<(), ExpandError> {
        let at = |index: u32| {
            let keys = descriptor.derive(index)?;
            Ok((descriptor.scripts(&keys)?, keys))
        };
        for first in (begin..=end).step_by(CHUNK as usize) {
            let chunk = (first..=end.min(first.saturating_add(CHUNK - 1))).collect();
            for derived in parallel::map(chunk, INDEXES_PER_BATCH, at) {
                let (scripts, keys) = derived?;
                for (place, script) in scripts.into_iter().enumerate() {
                    let needle = || Needle { descriptor: self.descriptors.len(), keys: keys.clone(), place };
                    self.scripts.entry(script).or_insert_with(needle);
                }
            }
        }
        self.descriptors.push(descriptor);
        Ok(())
    }

    /// Whether a script is looked for.
    pub fn has(&self, script: &Script) -> bool {
        self.scripts.contains_key(script)
    }

    /// The descriptor of a script that is looked for, short of everything but it.
    fn definite(&self, script: &Script) -> Option<String> {
        let needle = self.scripts.get(script)?;
        self.descriptors.get(needle.descriptor)?.definite(&needle.keys, needle.place).ok()?
    }
}

pub fn scan_tx_out_set(context: &Context<'_>, reply: &Reply) -> Outcome {
    let scan = &context.plugin.coin_scan;
    if let Some(answer) = scan.answer(context, false)? {
        return Ok(answer);
    }
    let _running = scan.begin()?;
    let needles = Needles::of(context, context.params.given(1).ok_or(ChainError::NoScanObjects)?)?;
    let scripts: Vec<ScriptBuf> = needles.scripts.keys().cloned().collect();
    let tip = context.host.chain.tip(context.scope)?;
    let (mut found, mut count, mut last) = (Vec::new(), 0_u64, None::<OutPoint>);
    let complete = loop {
        let search = context.host.chain.find_coins(context.scope, Encoded::new(&scripts), last, BATCH)?;
        let Some(end) = search.last else { break true };
        last = Some(end);
        scan.progress.store(share_before(&end), Ordering::Relaxed);
        count += u64::from(search.searched);
        found.extend(search.found);
        if !scan.goes_on(reply) {
            break false;
        }
    };
    let values = found.iter().map(|found| found.output.coin.output.value);
    let total = values.fold(Amount::ZERO, |sum, value| sum.saturating_add(value));
    let show = |found: FoundCoin| show_coin(&needles, tip.height, &found);
    let unspents = parallel::map(found, COINS_PER_BATCH, show);
    Ok(json!({
        "success": complete,
        "txouts": count,
        "height": tip.height,
        "bestblock": tip.hash,
        "unspents": unspents,
        "total_amount": amount::to_json(total),
    }))
}

/// Which share of all outputs is before this one, in percent: they are sorted by the ids of their transactions.
fn share_before(outpoint: &OutPoint) -> u32 {
    let [high, low, ..] = *AsRef::<[u8; 32]>::as_ref(&outpoint.txid);
    (u32::from(u16::from_be_bytes([high, low])) * 100 + 0x8000) >> u16::BITS
}

fn show_coin(needles: &Needles, best: u32, found: &FoundCoin) -> Value {
    let UnspentOutput { outpoint, coin } = &found.output;
    let script = &coin.output.script_pubkey;
    json!({
        "txid": outpoint.txid,
        "vout": outpoint.vout,
        "scriptPubKey": encode_hex(script.as_bytes()),
        "desc": needles.definite(script),
        "amount": amount::to_json(coin.output.value),
        "coinbase": coin.coinbase,
        "height": coin.height,
        "blockhash": found.block,
        "confirmations": i64::from(best) - i64::from(coin.height) + 1,
    })
}

pub fn scan_blocks(context: &Context<'_>, reply: &Reply) -> Outcome {
    let scan = &context.plugin.block_scan;
    if let Some(answer) = scan.answer(context, true)? {
        return Ok(answer);
    }
    let _running = scan.begin()?;
    if context.params.given(4).map(args::text).transpose()?.is_some_and(|name| name != BASIC) {
        return Err(ChainError::FilterType);
    }
    if let Some(options) = context.params.given(5) {
        // The scripts of a block are compared, and not its filter, so that there are no false positives to look for.
        args::object(options)?.get("filter_false_positives").map(args::flag).transpose()?;
    }
    let tip = context.host.chain.tip(context.scope)?.height;
    let height = |index: usize, default: u32| -> Result<Option<u32>, ChainError> {
        let height: i32 = context.params.given(index).map_or(Ok(default as i32), args::integer)?;
        Ok(u32::try_from(height).ok().filter(|height| *height <= tip))
    };
    let first = height(2, 0)?.ok_or(ChainError::StartHeight)?;
    let stop = height(3, tip)?.filter(|stop| *stop >= first).ok_or(ChainError::StopHeight)?;
    let needles = Needles::of(context, context.params.get(1))?;
    let (mut relevant, mut complete, mut last) = (Vec::new(), true, first);
    for height in first..=stop {
        if !scan.goes_on(reply) {
            complete = false;
            break;
        }
        let info = context.host.chain.block_info(context.scope, BlockRef::Height { height })?;
        let info = info.ok_or(ChainError::BlockNotFound)?;
        let block = Connected::read(context, &info)?.ok_or(ChainError::BlockNotAvailable)?;
        if block.concerns(|script| needles.has(script)) {
            relevant.push(info.hash);
        }
        last = height;
        scan.height.store(height, Ordering::Relaxed);
        scan.progress.store(100 * (height - first) / (stop - first).max(1), Ordering::Relaxed);
    }
    Ok(json!({"from_height": first, "to_height": last, "relevant_blocks": relevant, "completed": complete}))
}
