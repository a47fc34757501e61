//! The digests of requested signatures (BIP 143, BIP 341, BIP 342).

use bitcoin::hashes::Hash;
use bitcoin::taproot::{LeafVersion, TapLeafHash};

use outrigger_memory::parallel::map_while;
use outrigger_script::{SIGHASH_SINGLE, TxContext, annex_hash};
use outrigger_service::signer::{Scheme, SignRequest, Signed};
use outrigger_service::wire::Blob;

/// The number of groups of signatures that a thread takes at a time. A signature takes some 50 us.
const GROUPS_PER_BATCH: usize = 4;

/// The bits of a sighash byte that select the signed outputs.
const OUTPUT_MASK: u8 = 0x1f;

/// The kind of a signature of a digest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SignatureKind {
    /// ECDSA with RFC 6979, low S and low R; DER.
    Ecdsa,
    /// ECDSA with RFC 6979 and low S, for messages. The public key can be recovered: the recovery id (0 to 3), then the 64 bytes of
    /// the compact form.
    EcdsaRecoverable,
    /// BIP 340 with no auxiliary randomness, by the untweaked key; 64 bytes.
    Schnorr,
    /// BIP 340 by the key after the BIP 341 tweak; 64 bytes.
    SchnorrTweaked {
        /// The script tree's merkle root; none for an output without scripts.
        merkle_root: Option<[u8; 32]>,
    },
}

impl From<&SignRequest> for SignatureKind {
    fn from(request: &SignRequest) -> Self {
        match &request.scheme {
            Scheme::Legacy { .. } | Scheme::SegwitV0 { .. } => Self::Ecdsa,
            Scheme::TaprootKey { merkle_root } => Self::SchnorrTweaked { merkle_root: *merkle_root },
            Scheme::TaprootOutputKey | Scheme::TaprootLeaf { .. } => Self::Schnorr,
        }
    }
}

/// Signs each request by a function of the request and its digest, on several threads. `None` for a request for which the function
/// has no signature, or [`digest`] no digest. `None` for all once `wanted`, called every few signatures, returns false.
pub fn sign_requests(
    context: &TxContext<'_>,
    requests: &[SignRequest],
    wanted: &(dyn Fn() -> bool + Sync),
    sign: impl Fn(&SignRequest, [u8; 32]) -> Option<Vec<u8>> + Sync,
) -> Option<Vec<Option<Signed>>> {
    // All keys of a multisig sign one digest.
    let same = |one: &SignRequest, other: &SignRequest| {
        (one.input, &one.scheme, one.sighash, &one.annex) == (other.input, &other.scheme, other.sighash, &other.annex)
    };
    let sign_group = |group: &[SignRequest]| {
        let digest = group.first().and_then(|request| digest(context, request));
        let sign = |request| {
            let digest = digest?;
            sign(request, digest).map(|signature| Signed { signature: Blob(signature), digest })
        };
        group.iter().map(sign).collect::<Vec<_>>()
    };
    let groups = map_while(requests.chunk_by(same).collect(), GROUPS_PER_BATCH, wanted, sign_group)?;
    Some(groups.into_iter().flatten().collect())
}

/// Whether the signature would be valid for every transaction: it is for a script without witness, of type SINGLE, and the
/// transaction has no output at the input's index.
pub fn signs_anything(context: &TxContext<'_>, request: &SignRequest) -> bool {
    let has_output = usize::try_from(request.input).is_ok_and(|index| index < context.tx().output.len());
    matches!(request.scheme, Scheme::Legacy { .. })
        && u32::from(request.sighash & OUTPUT_MASK) == SIGHASH_SINGLE
        && !has_output
}

/// The digest of a requested signature. `None` if it covers an unknown output, or consensus defines no such signature.
pub fn digest(context: &TxContext<'_>, request: &SignRequest) -> Option<[u8; 32]> {
    let index = usize::try_from(request.input).ok()?;
    let sighash = u32::from(request.sighash);
    let taproot = |leaf| {
        let annex = request.annex.as_ref().map(|annex| annex_hash(annex));
        Some(context.taproot_sighash(index, request.sighash, annex, leaf)?.to_byte_array())
    };
    match &request.scheme {
        Scheme::Legacy { script_code } => Some(context.legacy_sighash(index, script_code, sighash)?.to_byte_array()),
        Scheme::SegwitV0 { script_code } => {
            let amount = context.spent_output(index)?.value;
            Some(context.segwit_v0_sighash(index, script_code, amount, sighash)?.to_byte_array())
        }
        Scheme::TaprootKey { .. } | Scheme::TaprootOutputKey => taproot(None),
        Scheme::TaprootLeaf { script, version, code_separator } => {
            let version = LeafVersion::from_consensus(*version).ok()?;
            taproot(Some((TapLeafHash::from_script(script, version), *code_separator)))
        }
    }
}
