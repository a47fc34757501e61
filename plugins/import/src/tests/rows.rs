//! Each error's code and words.

use outrigger_sdk::params::Type;
use outrigger_sdk::{RpcError, RpcErrorCode};

use crate::error::ImportError as E;

#[test]
fn import_errors_have_their_codes_and_words() {
    let text = || "T".to_owned();
    for (error, code, message) in [
        (E::NoTimestamp, -3, "Missing required timestamp field for key"),
        (E::Timestamp(Type::Bool), -3, "Expected number or \"now\" timestamp value for key. got type bool"),
        (E::RescanAborted, -1, "Rescan aborted by user."),
        (E::Malformed, -1, "Missing required fields"),
        (E::InternalLabel, -8, "Internal addresses should not have a label"),
        (E::KeypoolWithPrivateKeys, -8, "Keys can only be imported to the keypool when private keys are disabled"),
        (E::DescriptorAndScript, -8, "Both a descriptor and a scriptPubKey should not be provided."),
        (E::NothingToImport, -8, "Either a descriptor or scriptPubKey must be provided."),
        (E::PrivateKeysDisabled, -4, "Cannot import private keys to a wallet with private keys disabled"),
        (
            E::AlreadyOwned(bitcoin::ScriptBuf::from_bytes(vec![0x51])),
            -4,
            "The wallet already contains the private key for this address or script (\"51\")",
        ),
        (E::ScriptNotStored, -4, "Error adding script to wallet"),
        (E::KeyNotStored, -4, "Error adding key to wallet"),
        (E::AddressNotStored, -4, "Error adding address to wallet"),
        (E::ScriptPubKeyForm, -8, "scriptPubKey must be string with script or JSON with address string"),
        (E::RangeWithoutDescriptor, -8, "Range should not be specified for a non-descriptor import"),
        (E::Address(text()), -5, "Invalid address \"T\""),
        (E::ScriptPubKey(text()), -5, "Invalid scriptPubKey \"T\""),
        (E::NonstandardNotInternal, -8, "Internal must be set to true for nonstandard scriptPubKey imports."),
        (E::RedeemScript(text()), -5, "Invalid redeem script \"T\": must be hex string"),
        (E::WitnessScript(text()), -5, "Invalid witness script \"T\": must be hex string"),
        (E::PublicKeyNotHex(text()), -5, "Pubkey \"T\" must be a hex string"),
        (E::PublicKey(text()), -5, "Pubkey \"T\" is not a valid public key"),
        (E::PrivateKey, -5, "Invalid private key encoding"),
        (E::Nesting("P2WPKH inside P2WSH"), -5, "Trying to nest P2WPKH inside P2WSH"),
        (E::DescriptorRefused(text()), -5, "T"),
        (E::TaprootAmongKeys, -5, "Bech32m descriptors cannot be imported into legacy wallets"),
        (E::RangeOfUnranged, -8, "Range should not be specified for an un-ranged descriptor"),
        (E::RangeMissing, -8, "Descriptor is ranged, please specify the range"),
        (E::RangeTooLarge, -8, "Range is too large"),
        (E::NoDescriptor, -8, "Descriptor not found."),
        (E::NextIndex, -8, "next_index is out of range"),
        (E::ActiveUnranged, -8, "Active descriptors must be ranged"),
        (E::RangedLabel, -8, "Ranged descriptors should not have a label"),
        (E::MultipathLabel, -8, "Multipath descriptors should not have a label"),
        (E::MultipathInternal, -5, "Cannot have multipath descriptor while also specifying 'internal'"),
        (E::ActiveCombo, -4, "Combo descriptors cannot be set to active"),
        (
            E::NotExpandable,
            -4,
            "Cannot expand descriptor. Probably because of hardened derivations without private keys provided",
        ),
        (E::NoPrivateKeys, -4, "Cannot import descriptor without private keys to a wallet with private keys enabled"),
        (E::RangeShrinks { begin: 0, end: 9 }, -8, "new range must include current range = [0,9]"),
        (E::DescriptorNotStored(text()), -4, "Could not add descriptor 'T'"),
        (E::NoOutcome, -32603, "The wallet gave no outcome for a request"),
    ] {
        assert_eq!(RpcError::from(error), RpcError::new(RpcErrorCode(code), message));
    }
    let shared = RpcError::new(RpcErrorCode(-7), "as it came");
    assert_eq!(RpcError::from(E::Argument(shared.clone())), shared);
}
