//! Signing. Private entries are decrypted for one batch and wiped after it.
//!
//! The wallet signs for a script with the keys of the descriptors that derive it and, like bitcoind's legacy wallet,
//! with every imported key in the script.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bitcoin::secp256k1::SecretKey;
use bitcoin::{OutPoint, PrivateKey, ScriptBuf, Transaction, TxOut, Txid, consensus};
use outrigger_descriptor::{Descriptor, PrivateBranches};
use outrigger_memory::parallel::map;
use outrigger_script::TxContext;
use outrigger_service::signer::{SignBatch, SignRequest, Signed, UNKNOWN_AMOUNT};
use outrigger_service::wallet::{AddressType, KeyOrigin, WalletOutputView};
use outrigger_service::wire::{Blob, Secret};
use outrigger_service::{ErrorKind, Result as ServiceResult, ServiceError};
use outrigger_sign::{SignatureKind, message_digest, sign_digest, sign_requests, signs_anything};

use super::WalletView;
use crate::descriptors::{DescriptorPosition, Expansions, SECP};
use crate::encrypt::EncryptionKey;
use crate::error::{Result, WalletError};
use crate::keypool::private_key_at;
use crate::store::{DescriptorRow, hash160};

const COMPRESSED: usize = 33;
const X_ONLY: usize = 32;
/// How many scripts are expanded at a time. Bounds the memory.
pub(super) const MAX_EXPANDED: usize = 4096;
/// The maximum size of a transaction to sign, in bytes. The number is a block's maximum weight.
const MAX_TRANSACTION: usize = 4_000_000;
/// The minimum number of derivations per thread. One takes about 5 us.
const KEYS_PER_BATCH: usize = 64;

/// A private key, overwritten on drop. `SecretKey` is `Copy`: copies made by the libraries are not wiped.
struct Key(SecretKey);

impl Drop for Key {
    fn drop(&mut self) {
        self.0.non_secure_erase();
    }
}

/// Private keys by their public keys of 33 or 65 bytes.
struct Ring(HashMap<Vec<u8>, Key>);

impl Ring {
    /// The private key of a public key in a script (33, 65 or 32 bytes).
    fn get(&self, public_key: &[u8]) -> Option<&Key> {
        full_keys(public_key).iter().find_map(|public_key| self.0.get(public_key))
    }
}

/// The public keys of 33 or 65 bytes that a public key in a script stands for: itself, or both with its x coordinate.
fn full_keys(public_key: &[u8]) -> Vec<Vec<u8>> {
    match public_key.len() {
        X_ONLY => [2_u8, 3].map(|parity| [&[parity], public_key].concat()).into(),
        _ => vec![public_key.to_vec()],
    }
}

/// The hashes under which an imported key may be stored.
fn hashes_of(public_key: &[u8]) -> Vec<[u8; 20]> {
    full_keys(public_key).iter().map(|public_key| hash160(public_key)).collect()
}

/// A transaction to sign or to judge, and the outputs that it spends.
pub struct Signing {
    pub transaction: Transaction,
    pub spent: Vec<Option<TxOut>>,
    /// For each input, whether it spends an output of a transaction in the wallet.
    pub known: Vec<bool>,
}

impl Signing {
    pub fn context(&self) -> TxContext<'_> {
        TxContext::new(&self.transaction, &self.spent[..])
    }
}

/// The descriptors of some scripts, and their expansions.
#[derive(Default)]
pub(super) struct Owners {
    /// Rows and parsed public texts, by number.
    pub(super) descriptors: HashMap<u32, (DescriptorRow, Arc<Descriptor>)>,
    /// The expansions of the last batch.
    pub(super) expansions: Expansions,
}

impl WalletView {
    /// Loads the descriptors of some positions, and expands them at these positions.
    pub(super) fn expand(&self, places: impl Iterator<Item = DescriptorPosition>, owners: &mut Owners) -> Result<()> {
        let mut wanted = Vec::new();
        for place in places {
            let (number, _) = place;
            if let Entry::Vacant(vacant) = owners.descriptors.entry(number) {
                let Some(row) = self.t().descriptor(&self.txn, number)? else { continue };
                let parsed = self.wallet.descriptors.get(number, &row.public)?;
                vacant.insert((row, parsed));
            }
            if let Some((_, parsed)) = owners.descriptors.get(&number) {
                wanted.push((place, parsed.clone()));
            }
        }
        let places: Vec<DescriptorPosition> = wanted.iter().map(|(place, _)| *place).collect();
        owners.expansions = self.wallet.descriptors.expand(wanted);
        for place in places {
            // For a hardened step below the public key, the stored scripts.
            if !owners.expansions.contains_key(&place)
                && let Some(expansion) = self.wallet.expand_derived(&self.txn, place)?
            {
                owners.expansions.insert(place, Arc::new(expansion));
            }
        }
        Ok(())
    }

    /// Whether the wallet could sign with each of these public keys (33, 65 or 32 bytes), for outputs with these
    /// scripts. A locked wallet answers like an unlocked one, with one exception: for a descriptor with only some
    /// of its private keys it returns true for all keys, because only the encrypted text shows which it has.
    pub fn available(&self, scripts: Vec<ScriptBuf>, public_keys: Vec<Blob>) -> ServiceResult<Vec<bool>> {
        let places = self.places(&scripts)?;
        let derivable: HashSet<Vec<u8>> = match self.wallet.encryption_key() {
            Ok(encryption_key) => {
                self.derive(&places, &encryption_key)?.into_iter().map(|(public_key, _)| public_key).collect()
            }
            Err(_) => self.origins(&places)?.into_keys().collect(),
        };
        let mut available = Vec::with_capacity(public_keys.len());
        for public_key in &public_keys {
            let mut found = full_keys(public_key).iter().any(|public_key| derivable.contains(public_key));
            for hash in hashes_of(public_key) {
                found = found || self.t().imported_key(&self.txn, &hash)?.is_some_and(|row| row.private);
            }
            available.push(found);
        }
        Ok(available)
    }

    /// Decodes the transaction, clears its scriptSigs and witnesses, and checks the given outputs. `None` for no requests.
    pub fn begin_signing(&self, batch: &SignBatch) -> ServiceResult<Option<Signing>> {
        self.wallet.encryption_key()?;
        if batch.requests.is_empty() {
            return Ok(None);
        }
        if batch.transaction.len() > MAX_TRANSACTION {
            return Err(ServiceError::new(ErrorKind::Refused, "The transaction is too large to sign"));
        }
        let malformed = |error: consensus::encode::Error| ServiceError::new(ErrorKind::Malformed, error.to_string());
        let mut transaction: Transaction = consensus::deserialize(&batch.transaction).map_err(malformed)?;
        for input in &mut transaction.input {
            (input.script_sig, input.witness) = Default::default();
        }
        self.signing(transaction, &batch.spent).map(Some)
    }

    /// Signs the requests; `None` where the wallet makes no signature. Fails with `Stale` once `wanted` returns false.
    pub fn sign(
        &self,
        signing: &Signing,
        batch: &SignBatch,
        wanted: &(dyn Fn() -> bool + Sync),
    ) -> ServiceResult<Vec<Option<Signed>>> {
        let keys = batch.requests.iter().map(|request| &*request.public_key.0);
        let ring = self.ring(&batch.scripts, keys)?;
        let context = signing.context();
        let sign = |request: &SignRequest, digest| {
            let key = ring.get(&request.public_key).filter(|_| !signs_anything(&context, request))?;
            Some(sign_digest(&key.0, digest, &request.into()))
        };
        let signed = sign_requests(&context, &batch.requests, wanted, sign);
        signed.ok_or_else(|| ServiceError::new(ErrorKind::Stale, "Nobody waits for the signatures any more"))
    }

    /// For the signer plugin: the origin of each public key, if a descriptor derives it for one of these scripts.
    pub fn provided_keys<'k>(
        &self,
        scripts: &[ScriptBuf],
        public_keys: impl Iterator<Item = &'k Blob>,
    ) -> ServiceResult<Vec<Option<KeyOrigin>>> {
        let origins = self.origins(&self.places(scripts)?)?;
        let find = |public_key: &Blob| full_keys(public_key).iter().find_map(|key| origins.get(key)).cloned();
        Ok(public_keys.map(find).collect())
    }

    /// Finds the outputs that a transaction spends. Reads those of transactions in the wallet from there, and fails if `given` differs.
    /// Trusts `given` for the rest.
    pub(super) fn signing(&self, transaction: Transaction, given: &[Option<TxOut>]) -> ServiceResult<Signing> {
        // Many inputs may spend outputs of one transaction, so each transaction is read once.
        let mut known: HashMap<Txid, Option<Vec<WalletOutputView<'_>>>> = HashMap::new();
        let (mut spent, mut is_known) = (Vec::new(), Vec::new());
        for (index, input) in transaction.input.iter().enumerate() {
            let (given, OutPoint { txid, vout }) = (given.get(index).cloned().flatten(), input.previous_output);
            let outputs = match known.entry(txid) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(vacant) => {
                    let view = self.t().transaction_view(&self.txn, &txid)?;
                    vacant.insert(view.map(|view| view.outputs.iter().collect()))
                }
            };
            is_known.push(outputs.is_some());
            let Some(outputs) = outputs else {
                spent.push(given);
                continue;
            };
            let own = usize::try_from(vout).ok().and_then(|vout| outputs.get(vout));
            let own = own.map(|own| TxOut { value: own.value, script_pubkey: own.script.to_owned() });
            let agrees = |given: TxOut| {
                let value = own.as_ref().filter(|_| given.value == UNKNOWN_AMOUNT).map_or(given.value, |own| own.value);
                own == Some(TxOut { value, ..given })
            };
            if !given.is_none_or(agrees) {
                let differs = format!(
                    "The amount or script that was given for input {index} differs from output {vout} of the wallet's transaction {txid}"
                );
                return Err(ServiceError::new(ErrorKind::Refused, differs));
            }
            spent.push(own);
        }
        Ok(Signing { transaction, spent, known: is_known })
    }

    pub fn sign_message(&self, script: &ScriptBuf, public_key: &[u8], message: &str) -> ServiceResult<Option<Blob>> {
        let ring = self.ring(std::slice::from_ref(script), std::iter::once(public_key))?;
        let sign = |key: &Key| Blob(sign_digest(&key.0, message_digest(message), &SignatureKind::EcdsaRecoverable));
        Ok(ring.get(public_key).map(sign))
    }

    /// The positions of the descriptors that derive these scripts.
    fn places(&self, scripts: &[ScriptBuf]) -> Result<Vec<DescriptorPosition>> {
        let mut places = Vec::new();
        for script in scripts {
            places.extend(self.t().script(&self.txn, script)?.map(|row| row.owners).unwrap_or_default());
        }
        places.sort_unstable();
        places.dedup();
        Ok(places)
    }

    /// The public keys at these positions, with their origins, of descriptors with private keys or with a signer plugin. If several
    /// descriptors derive a key, the longest path counts: a descriptor without an origin gives the key itself as the master key.
    fn origins(&self, places: &[DescriptorPosition]) -> Result<HashMap<Vec<u8>, KeyOrigin>> {
        let mut all: HashMap<Vec<u8>, KeyOrigin> = HashMap::new();
        let mut owners = Owners::default();
        for places in places.chunks(MAX_EXPANDED) {
            self.expand(places.iter().copied(), &mut owners)?;
            for place in places {
                let signs = |(row, _): &(DescriptorRow, _)| row.has_private || self.wallet.signer().is_some();
                if !owners.descriptors.get(&place.0).is_some_and(signs) {
                    continue;
                }
                let scripts = owners.expansions.get(place).into_iter().flat_map(|expansion| &expansion.scripts);
                for origin in scripts.flat_map(|script| &script.origins) {
                    let steps = |origin: &KeyOrigin| origin.path.split('/').count();
                    match all.entry(origin.public_key.0.clone()) {
                        Entry::Occupied(known) if steps(known.get()) > steps(origin) => {}
                        Entry::Occupied(mut known) => drop(known.insert(origin.clone())),
                        Entry::Vacant(vacant) => drop(vacant.insert(origin.clone())),
                    }
                }
            }
        }
        Ok(all)
    }

    /// The private keys at these positions, with their public keys. Each descriptor's text is decrypted once.
    fn derive(&self, places: &[DescriptorPosition], encryption_key: &EncryptionKey) -> Result<Vec<(Vec<u8>, Key)>> {
        let mut keys = Vec::new();
        let mut owners = Owners::default();
        for same in places.chunk_by(|one, other| one.0 == other.0) {
            let Some((number, _)) = same.first() else { continue };
            let private = self.wallet.private_descriptor(&self.txn, *number, encryption_key)?;
            let Some(branches) = private.map(|private| private.private_branches()) else { continue };
            for places in same.chunks(MAX_EXPANDED) {
                self.expand(places.iter().copied(), &mut owners)?;
                let derive = |place: &DescriptorPosition| derive_at(&branches, *place, &owners);
                keys.extend(map(places.iter().collect(), KEYS_PER_BATCH, derive).into_iter().flatten());
            }
        }
        Ok(keys)
    }

    /// The private key of a public key with this hash, as WIF: imported, or of a descriptor that derives one of these
    /// scripts.
    pub(super) fn wif_of(&self, scripts: &[ScriptBuf], hash: &[u8; 20]) -> Result<Option<Secret>> {
        let encryption_key = self.wallet.encryption_key()?;
        if let Some(wif) = self.private_text(&private_key_at(hash), Some(&encryption_key))? {
            return Ok(Some(wif));
        }
        let keys = self.derive(&self.places(scripts)?, &encryption_key)?;
        let found = keys.iter().find(|(public_key, _)| hash160(public_key) == *hash);
        Ok(found.map(|(public_key, key)| {
            let (compressed, network) = (public_key.len() == COMPRESSED, self.wallet.shared.network.into());
            Secret::new(PrivateKey { compressed, network, inner: key.0 }.to_wif())
        }))
    }

    /// The private keys of the descriptors that derive some scripts, and the imported ones of some public keys.
    fn ring<'k>(&self, scripts: &[ScriptBuf], public_keys: impl Iterator<Item = &'k [u8]>) -> Result<Ring> {
        let encryption_key = self.wallet.encryption_key()?;
        let mut ring = Ring(self.derive(&self.places(scripts)?, &encryption_key)?.into_iter().collect());
        if self.t().imported_keys.is_empty(&self.txn)? {
            return Ok(ring);
        }
        for hash in public_keys.flat_map(hashes_of) {
            let Some(wif) = self.private_text(&private_key_at(&hash), Some(&encryption_key))? else { continue };
            let key = PrivateKey::from_wif(wif.expose()).map_err(|_| WalletError::damaged(wif.expose().len()))?;
            ring.0.insert(key.public_key(&SECP).to_bytes(), Key(key.inner));
        }
        Ok(ring)
    }
}

/// The private keys of a descriptor at a position, with their public keys.
fn derive_at(branches: &PrivateBranches, place: DescriptorPosition, owners: &Owners) -> Vec<(Vec<u8>, Key)> {
    let taproot =
        owners.descriptors.get(&place.0).is_some_and(|(_, parsed)| parsed.output_type() == Some(AddressType::Bech32m));
    match owners.expansions.get(&place).and_then(|expansion| expansion.scripts.first()) {
        // A taproot descriptor's public text may give only the x coordinate of a key. With a hardened wildcard, the
        // public text derives no keys.
        Some(script) if !taproot => {
            let public_key = |key: usize| script.origins.get(key).map(|origin| origin.public_key.0.clone());
            let secrets = branches.secret_keys(place.1).into_iter();
            secrets.filter_map(|(key, secret)| Some((public_key(key)?, Key(secret)))).collect()
        }
        _ => branches.private_keys(place.1).into_iter().map(|(public, secret)| (public, Key(secret))).collect(),
    }
}
