//! The descriptors of a wallet, and the addresses that come from them.

use std::ops::Range;

use bitcoin::ScriptBuf;
use bitcoin::bip32::Xpriv;
use bitcoin::hashes::{Hash, sha256};

use super::Node;
use super::imported::{hash160, p2pkh, p2sh, p2wpkh};
use super::own::{NETWORK, Own};
use crate::descriptor::{Checksum, Descriptor, ExpandedScript};
use crate::service::wallet::{AddressSource, AddressType, DescriptorInfo, WalletKind};
use crate::service::{ErrorKind, Result, ServiceError};
use crate::wire::Secret;

/// How many scripts lie ahead of the next index of a descriptor.
pub const KEYPOOL: u32 = 20;
/// The number of indexes (BIP 32).
const MAX_INDEX: u32 = 1 << 31;

/// The types of addresses.
const KINDS: [AddressType; 4] =
    [AddressType::Legacy, AddressType::P2shSegwit, AddressType::Bech32, AddressType::Bech32m];

/// A descriptor that was imported or made.
#[derive(Clone)]
pub struct Described {
    /// Its public text as it was imported, by which it is known again.
    pub identity: String,
    /// With every hardened step taken that can be.
    pub public: Descriptor,
    /// With its private keys, where it has some.
    pub private: Option<Descriptor>,
    pub timestamp: u64,
    /// The first index in use, the one behind the last derived one, and the first derived one.
    pub begin: u32,
    pub end: u32,
    pub derived_begin: u32,
    pub next_index: u32,
    pub active: bool,
    pub internal: bool,
}

/// Reads the one descriptor of a text.
pub fn parse(text: &str) -> Result<Descriptor> {
    let parsed = Descriptor::parse(text, NETWORK, Checksum::Optional);
    parsed.ok().and_then(|parsed| parsed.into_iter().next()).ok_or(ErrorKind::Internal.into())
}

impl Described {
    /// The kind of its addresses, as its number; none where it has no addresses of one kind.
    pub fn kind(&self) -> Option<u8> {
        self.public.output_type().map(|kind| kind as u8)
    }

    /// Its scripts at an index, by its private text where the public one cannot say; none where that is `locked`.
    fn scripts(&self, index: u32, locked: bool) -> Option<Vec<ScriptBuf>> {
        let scripts = if locked { self.public.expand(index).ok()?.scripts } else { self.expand(index) };
        Some(scripts.into_iter().map(|script| script.script_pubkey).collect())
    }

    /// What it means at an index that is derived: that is known whether or not its key is withheld now.
    pub fn expand(&self, index: u32) -> Vec<ExpandedScript> {
        let private = || self.private.as_ref().and_then(|private| private.expand(index).ok());
        self.public.expand(index).ok().or_else(private).map(|expansion| expansion.scripts).unwrap_or_default()
    }
}

fn type_name(kind: AddressType) -> &'static str {
    match kind {
        AddressType::Legacy => "legacy",
        AddressType::P2shSegwit => "p2sh-segwit",
        AddressType::Bech32 => "bech32",
        AddressType::Bech32m => "bech32m",
    }
}

impl Own {
    /// Makes a descriptor's scripts at some indexes ours.
    pub fn derive(&mut self, number: usize, from: &Descriptor, range: Range<u32>) -> Result<()> {
        for index in range {
            let expansion = from.expand(index).map_err(|_| ErrorKind::Internal)?;
            self.own(number, index, expansion.scripts.into_iter().map(|script| script.script_pubkey));
        }
        Ok(())
    }

    fn own(&mut self, number: usize, index: u32, scripts: impl IntoIterator<Item = ScriptBuf>) {
        for script in scripts {
            let owners = self.owners.entry(script).or_default();
            if !owners.contains(&(number as u32, index)) {
                owners.push((number as u32, index));
            }
        }
    }

    /// Derives scripts until so many lie ahead of the next index. What needs a private key stays while that is locked.
    pub fn top_up(&mut self, number: usize, ahead: u32, node: &Node) -> Result<()> {
        let locked = self.is_locked(node)?;
        let Some(row) = self.descriptors.get(number).cloned() else { return Ok(()) };
        let wanted = row.next_index.saturating_add(ahead).min(MAX_INDEX);
        if !row.public.is_ranged() || wanted <= row.end {
            return Ok(());
        }
        for index in row.end..wanted {
            let Some(scripts) = row.scripts(index, locked) else { return Ok(()) };
            self.own(number, index, scripts);
        }
        self.change(number, |row| row.end = wanted);
        Ok(())
    }

    fn change(&mut self, number: usize, change: impl FnOnce(&mut Described)) {
        if let Some(row) = self.descriptors.get_mut(number) {
            change(row);
        }
    }

    /// Payments to these scripts were seen, in this order: addresses up to theirs are not handed out any more, and those of an
    /// active descriptor for receiving are in the address book.
    pub fn note_payments<'s>(&mut self, scripts: impl Iterator<Item = &'s ScriptBuf>, node: &Node) -> Result<()> {
        for script in scripts {
            for (number, index) in self.owners.get(script).cloned().unwrap_or_default() {
                let number = number as usize;
                let Some(row) = self.descriptors.get(number).filter(|row| row.public.is_ranged()).cloned() else {
                    continue;
                };
                for passed in row.next_index..index.saturating_add(1) {
                    let address = row.scripts(passed, false).and_then(|scripts| scripts.into_iter().next());
                    if let Some(address) = address.filter(|_| row.active && !row.internal)
                        && self.label(&address).is_none()
                    {
                        self.set_label(&address, "", true);
                    }
                    self.change(number, |row| row.next_index = passed.saturating_add(1));
                }
                self.top_up(number, KEYPOOL, node)?;
            }
        }
        Ok(())
    }

    /// Gives back the index of an address, where it is the last one that was drawn.
    pub fn return_address(&mut self, script: &ScriptBuf) -> bool {
        let mut given_back = false;
        if self.met.iter().any(|met| met.tx.output.iter().any(|output| output.script_pubkey == *script)) {
            return false;
        }
        for (number, index) in self.owners.get(script).cloned().unwrap_or_default() {
            let last = |row: &&Described| row.public.is_ranged() && row.next_index == index.saturating_add(1);
            if self.descriptors.get(number as usize).filter(last).is_some() {
                self.change(number as usize, |row| row.next_index = index);
                given_back = true;
            }
        }
        given_back
    }

    /// Makes a descriptor the source of new addresses of its kind, in the place of the former one.
    pub fn activate(&mut self, number: usize, internal: bool) {
        let Some(kind) = self.descriptors.get(number).and_then(Described::kind) else { return };
        if let Some(former) = self.active.insert((kind, internal), number) {
            self.change(former, |row| row.active = false);
        }
        self.change(number, |row| (row.active, row.internal) = (true, internal));
    }

    /// New addresses come from a descriptor no more.
    pub fn deactivate(&mut self, number: usize) {
        self.active.retain(|_, active| *active != number);
        self.change(number, |row| row.active = false);
    }

    /// Gives the wallet a new master key and the active descriptors of BIP 44, 49, 84 and 86. The key follows from the
    /// wallet's name, so that each run of a test has the same.
    pub fn add_default_descriptors(&mut self, node: &Node) -> Result<()> {
        let seed = sha256::Hash::hash(format!("wallet in memory {} {}", self.name, self.masters).as_bytes());
        self.masters += 1;
        let master = Xpriv::new_master(NETWORK, seed.as_byte_array()).map_err(|_| ErrorKind::Internal)?;
        let now = node.time()?;
        for internal in [false, true] {
            let forms = [(44, "pkh(", ")"), (49, "sh(wpkh(", "))"), (84, "wpkh(", ")"), (86, "tr(", ")")];
            for (purpose, open, close) in forms {
                let text = format!("{open}{master}/{purpose}h/1h/0h/{}/*{close}", u8::from(internal));
                let private = parse(&text)?;
                let public = parse(&private.to_normalized_string())?;
                let number = self.descriptors.len();
                self.descriptors.push(Described {
                    identity: private.to_public_string(),
                    private: Some(private),
                    timestamp: now,
                    begin: 0,
                    end: KEYPOOL,
                    derived_begin: 0,
                    next_index: 0,
                    active: false,
                    internal,
                    public: public.clone(),
                });
                self.derive(number, &public, 0..KEYPOOL)?;
                self.activate(number, internal);
            }
        }
        self.note_born(now);
        Ok(())
    }

    pub fn tell_descriptors(&self, private: bool, node: &Node) -> Result<Vec<DescriptorInfo>> {
        if private {
            self.require_unlocked(node)?;
        }
        let tell = |row: &Described| {
            let text = row.private.as_ref().filter(|_| private).and_then(Descriptor::to_private_string);
            DescriptorInfo {
                text: text.unwrap_or_else(|| Secret::new(row.public.to_public_string())),
                timestamp: row.timestamp,
                active: row.active,
                internal: row.active.then_some(row.internal),
                range: row.public.is_ranged().then(|| (row.begin, row.end.saturating_sub(1))),
                next_index: row.next_index,
            }
        };
        Ok(self.descriptors.iter().map(tell).collect())
    }

    pub fn new_address(
        &mut self,
        kind: AddressType,
        internal: bool,
        label: Option<&str>,
        node: &Node,
    ) -> Result<ScriptBuf> {
        let script = self.next_script(kind, internal, node)?;
        if let Some(label) = label {
            self.set_label(&script, label, true);
        }
        Ok(script)
    }

    fn next_script(&mut self, kind: AddressType, internal: bool, node: &Node) -> Result<ScriptBuf> {
        let Some(number) = self.active.get(&(kind as u8, internal)).copied() else {
            if let Some(script) = self.take_from_pool(kind, internal) {
                return Ok(script);
            }
            if !self.sources(internal).iter().any(|source| source.available) {
                let detail = "Error: This wallet has no available keys";
                return Err(ServiceError::new(ErrorKind::Refused, detail));
            }
            let detail = format!("Error: No {} addresses available.", type_name(kind));
            return Err(ServiceError::new(ErrorKind::KeypoolRanOut, detail));
        };
        self.top_up(number, KEYPOOL, node)?;
        let Some(row) = self.descriptors.get(number).filter(|row| row.next_index < row.end) else {
            return Err(ErrorKind::KeypoolRanOut.into());
        };
        // What is derived is known, whether or not its key is withheld now.
        let script = row.scripts(row.next_index, false).and_then(|scripts| scripts.into_iter().next());
        self.change(number, |row| row.next_index = row.next_index.saturating_add(1));
        script.ok_or(ErrorKind::Internal.into())
    }

    /// The active descriptors of a side, of the types that the wallet gives addresses of.
    fn active_of(&self, internal: bool) -> impl Iterator<Item = (AddressType, &Described)> {
        let legacy = self.kind == WalletKind::Legacy;
        let kinds = KINDS.into_iter().filter(move |kind| !legacy || *kind != AddressType::Bech32m);
        kinds.filter_map(move |kind| {
            let number = self.active.get(&(kind as u8, internal))?;
            Some((kind, self.descriptors.get(*number)?))
        })
    }

    fn pooled(&self, internal: bool) -> impl Iterator<Item = &[u8; 20]> {
        self.imported.pool.iter().filter(move |(side, _)| *side == internal).map(|(_, hash)| hash)
    }

    /// Where new addresses of a side come from.
    pub fn sources(&self, internal: bool) -> Vec<AddressSource> {
        let source = |kind, available| AddressSource { kind, internal, available };
        let able = |row: &Described| {
            let derivable = || row.public.expand(row.next_index).is_ok();
            row.public.is_ranged() && (row.private.is_some() || row.next_index < row.end || derivable())
        };
        let mut sources: Vec<_> = self.active_of(internal).map(|(kind, row)| source(kind, able(row))).collect();
        if self.pooled(internal).next().is_some() {
            for kind in KINDS.into_iter().filter(|kind| *kind != AddressType::Bech32m) {
                if !sources.iter().any(|source| source.kind == kind) {
                    sources.push(source(kind, true));
                }
            }
            sources.sort_by_key(|source| source.kind as u8);
        }
        sources
    }

    /// How many scripts lie ahead on a side: of all types, or of the type with the fewest in a wallet whose keys are of all.
    pub fn ahead(&self, internal: bool) -> u64 {
        let derived = self.active_of(internal).map(|(_, row)| u64::from(row.end.saturating_sub(row.next_index)));
        let derived = if self.kind == WalletKind::Legacy { derived.min().unwrap_or(0) } else { derived.sum() };
        derived + self.pooled(internal).count() as u64
    }

    /// When the oldest unused key was made or born, the later of both sides; 0 where a side has none.
    pub fn keypool_oldest(&self) -> u64 {
        if self.kind != WalletKind::Legacy || self.ahead(false) == 0 || self.ahead(true) == 0 {
            return 0;
        }
        let oldest = |internal| {
            let made = self.active_of(internal).map(|(_, row)| row.timestamp);
            let born = self.pooled(internal).map(|hash| self.imported.keys.get(hash).map_or(0, |key| key.timestamp));
            made.chain(born).min().unwrap_or(0)
        };
        oldest(false).max(oldest(true))
    }

    /// Takes the oldest key of the imported keypool, and gives its script of a kind.
    fn take_from_pool(&mut self, kind: AddressType, internal: bool) -> Option<ScriptBuf> {
        let at = self.imported.pool.iter().position(|(side, _)| *side == internal)?;
        let (_, hash) = *self.imported.pool.get(at)?;
        let script = match kind {
            AddressType::Legacy => p2pkh(&hash),
            AddressType::P2shSegwit => p2sh(&hash160(p2wpkh(&hash).as_bytes())),
            AddressType::Bech32 => p2wpkh(&hash),
            AddressType::Bech32m => return None,
        };
        self.imported.pool.remove(at);
        let timestamp = self.imported.keys.get(&hash).map_or(1, |key| key.timestamp);
        self.imported.watch(&script, timestamp);
        Some(script)
    }
}
