//! Scans for the scripts of descriptors: of the unspent outputs (`scantxoutset`), and of the blocks (`scanblocks`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bitcoin::{Amount, OutPoint, Script, ScriptBuf};
use outrigger_kit::blocks::find_block;
use outrigger_kit::descriptor::{Checksum, DerivedKeys, Descriptor, ExpandError};
use outrigger_kit::{parallel, scan_object, without_nulls};
use outrigger_sdk::amount::{self, Saturating};
use outrigger_sdk::params::{Type, encode_hex};
use outrigger_sdk::service::chain::{BlockRef, FoundCoin, UnspentOutput};
use outrigger_sdk::wire::Encoded;
use outrigger_sdk::{Call, RpcError, methods, typed};
use serde_json::{Map, Value, json};

use crate::ChainPlugin;
use crate::blocks::block_not_available;
use crate::descriptors::parse;
use crate::filters::{Connected, check_filter_type};

/// The number of outputs that the host searches between two checks for an abort. A batch takes tens of milliseconds.
const BATCH: u32 = 1 << 16;
/// The number of indexes of a descriptor in one parallel derivation.
const CHUNK: u32 = 1 << 16;
/// The minimum number of indexes for another thread.
const INDEXES_PER_BATCH: usize = 16;
/// The minimum number of outputs in the answer for another thread.
const COINS_PER_BATCH: usize = 64;
/// The index range of a ranged descriptor without `range`, inclusive.
const DEFAULT_RANGE: (u32, u32) = (0, 1000);

/// The state of one kind of scan: of the unspent outputs, or of the blocks. At most one scan of each kind runs at a time.
#[derive(Default)]
pub struct Scan {
    running: AtomicBool,
    aborted: AtomicBool,
    /// In percent.
    progress: AtomicU32,
    /// The height of the current block.
    height: AtomicU32,
}

/// Marks a scan as running until it is dropped.
struct Running<'a>(&'a Scan);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::SeqCst);
    }
}

impl Scan {
    fn begin(&self) -> Result<Running<'_>, RpcError> {
        if self.running.swap(true, Ordering::SeqCst) {
            let message = "Scan already in progress, use action \"abort\" or \"status\"";
            return Err(RpcError::invalid_parameter(message));
        }
        self.aborted.store(false, Ordering::SeqCst);
        self.progress.store(0, Ordering::Relaxed);
        Ok(Running(self))
    }

    /// Aborts the running scan. Returns whether a scan was running.
    pub fn abort(&self) -> bool {
        let running = self.running.load(Ordering::SeqCst);
        self.aborted.store(running, Ordering::SeqCst);
        running
    }

    /// The answer to an action other than `start`; `None` for `start`.
    fn answer(&self, action: &str, with_height: bool) -> Result<Option<Value>, RpcError> {
        match action {
            "status" if !self.running.load(Ordering::SeqCst) => Ok(Some(Value::Null)),
            "status" => {
                let height = with_height.then(|| self.height.load(Ordering::Relaxed));
                let progress = self.progress.load(Ordering::Relaxed);
                Ok(Some(without_nulls(json!({"progress": progress, "current_height": height}))))
            }
            "abort" => Ok(Some(json!(self.abort()))),
            "start" => Ok(None),
            _ => Err(RpcError::invalid_parameter(format!("Invalid action '{action}'"))),
        }
    }

    fn goes_on(&self, call: &Call<'_>) -> bool {
        !self.aborted.load(Ordering::SeqCst) && call.is_wanted()
    }
}

/// The origin of a wanted script.
struct Needle {
    /// The index of its descriptor among those of the scan.
    descriptor: usize,
    keys: DerivedKeys,
    /// The position among the scripts of these keys.
    position: usize,
}

/// The wanted scripts of a scan.
#[derive(Default)]
pub struct Needles {
    descriptors: Vec<Descriptor>,
    scripts: HashMap<ScriptBuf, Needle>,
}

impl Needles {
    /// The scripts of an array of descriptors. Each descriptor is a text, or an object with `desc` and `range`.
    pub fn of(call: &Call<'_>, objects: &[Value]) -> Result<Self, RpcError> {
        let mut needles = Self::default();
        for object in objects {
            let (text, range) = scan_object(object)?;
            let descriptors = parse(call, text, Checksum::Optional)?;
            let ranged = descriptors.first().is_some_and(Descriptor::is_ranged);
            for descriptor in descriptors {
                let added = needles.add(descriptor, if ranged { range.unwrap_or(DEFAULT_RANGE) } else { (0, 0) });
                let message = |_| format!("Cannot derive script without private keys: '{text}'");
                added.map_err(message).map_err(RpcError::not_found)?;
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
                for (position, script) in scripts.into_iter().enumerate() {
                    let needle = || Needle { descriptor: self.descriptors.len(), keys: keys.clone(), position };
                    self.scripts.entry(script).or_insert_with(needle);
                }
            }
        }
        self.descriptors.push(descriptor);
        Ok(())
    }

    pub fn has(&self, script: &Script) -> bool {
        self.scripts.contains_key(script)
    }

    /// A descriptor of this script alone; `None` if the scan does not want the script.
    fn definite(&self, script: &Script) -> Option<String> {
        let needle = self.scripts.get(script)?;
        self.descriptors.get(needle.descriptor)?.definite(&needle.keys, needle.position).ok()?
    }
}

#[methods(category = "Blockchain", long_running, private_keys)]
impl ChainPlugin {
    /// Searches all unspent outputs for the scripts of descriptors.
    ///
    /// * `action` - start; status for the progress of the scan; abort to end the scan.
    /// * `scanobjects` - The descriptors for start. Each is a text, or an object with desc and range. A range is the
    ///   last index, or [first, last]; the default is 1000.
    ///
    /// # Result
    /// {"success": bool, "txouts": n, "height": n, "bestblock": "hash", "unspents": [{"txid": "txid", "vout": n,
    /// "scriptPubKey": "hex", "desc": "descriptor", "amount": n, "coinbase": bool, "height": n, "blockhash": "hash",
    /// "confirmations": n}, ...], "total_amount": n}    (json object) status: {"progress": n} in percent, or null
    /// without a scan. abort: whether a scan was running.
    ///
    /// # Example
    /// start '["raw(51)"]'
    #[method]
    fn scantxoutset(&self, call: &Call<'_>, action: &str, scanobjects: Option<&[Value]>) -> Result<Value, RpcError> {
        let scan = &self.coin_scan;
        if let Some(answer) = scan.answer(action, false)? {
            return Ok(answer);
        }
        let _running = scan.begin()?;
        let missing = || RpcError::misc("scanobjects argument is required for the start action");
        let needles = Needles::of(call, scanobjects.ok_or_else(missing)?)?;
        let scripts: Vec<ScriptBuf> = needles.scripts.keys().cloned().collect();
        let tip = call.host.chain.tip(call.scope)?;
        let (mut found, mut count, mut last) = (Vec::new(), 0_u64, None::<OutPoint>);
        let complete = loop {
            let search = call.host.chain.find_coins(call.scope, Encoded::new(&scripts), last, BATCH)?;
            let Some(end) = search.last else { break true };
            last = Some(end);
            scan.progress.store(share_before(&end), Ordering::Relaxed);
            count += u64::from(search.searched);
            found.extend(search.found);
            if !scan.goes_on(call) {
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

    /// Lists the blocks that pay to descriptors or spend from them. The scan compares the scripts of the blocks, so
    /// it has no false positives.
    ///
    /// * `action` - start; status for the progress of the scan; abort to end the scan.
    /// * `scanobjects` - The descriptors for start. Each is a text, or an object with desc and range. A range is the
    ///   last index, or [first, last]; the default is 1000.
    /// * `start_height` (default: 0) - The first block.
    /// * `stop_height` (default: the best block) - The last block.
    /// * `filtertype` - basic.
    /// * `options` - filter_false_positives has no effect.
    ///   * `filter_false_positives` (boolean) - Has no effect.
    ///
    /// # Result
    /// {"from_height": n, "to_height": n, "relevant_blocks": ["hash", ...], "completed": bool}    (json object)
    /// status: {"progress": n, "current_height": n}, or null without a scan. abort: whether a scan was running.
    ///
    /// # Example
    /// start '["raw(51)"]' 100
    #[method]
    fn scanblocks(
        &self,
        call: &Call<'_>,
        action: &str,
        scanobjects: Option<&[Value]>,
        #[arg(kind = "numeric")] start_height: Option<&Value>,
        #[arg(kind = "numeric")] stop_height: Option<&Value>,
        #[arg(default = "basic")] filtertype: &str,
        options: Option<&Map<String, Value>>,
    ) -> Result<Value, RpcError> {
        let scan = &self.block_scan;
        if let Some(answer) = scan.answer(action, true)? {
            return Ok(answer);
        }
        let _running = scan.begin()?;
        check_filter_type(filtertype)?;
        if let Some(options) = options {
            // The scan compares the scripts of each block instead of its filter, so it has no false positives.
            options.get("filter_false_positives").map(typed::flag).transpose()?;
        }
        let tip = call.host.chain.tip(call.scope)?.height;
        let height = |value: Option<&Value>, default: u32| -> Result<Option<u32>, RpcError> {
            let height: i32 = value.map_or(Ok(default as i32), typed::integer)?;
            Ok(u32::try_from(height).ok().filter(|height| *height <= tip))
        };
        let first = height(start_height, 0)?.ok_or_else(|| RpcError::misc("Invalid start_height"))?;
        let stop = height(stop_height, tip)?.filter(|stop| *stop >= first);
        let stop = stop.ok_or_else(|| RpcError::misc("Invalid stop_height"))?;
        let missing = || typed::wrong_type(&Value::Null, Type::Array);
        let needles = Needles::of(call, scanobjects.ok_or_else(missing)?)?;
        let (mut relevant, mut complete, mut last) = (Vec::new(), true, first);
        for height in first..=stop {
            if !scan.goes_on(call) {
                complete = false;
                break;
            }
            let info = find_block(call, BlockRef::Height { height })?;
            let block = Connected::read(call, &info)?.ok_or_else(block_not_available)?;
            if block.concerns(|script| needles.has(script)) {
                relevant.push(info.hash);
            }
            last = height;
            scan.height.store(height, Ordering::Relaxed);
            scan.progress.store(100 * (height - first) / (stop - first).max(1), Ordering::Relaxed);
        }
        Ok(json!({"from_height": first, "to_height": last, "relevant_blocks": relevant, "completed": complete}))
    }
}

/// The estimated share of the outputs before this one, in percent. The host sorts the outputs by transaction id.
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
