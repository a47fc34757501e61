//! Addresses of a network: Base58 (P2PKH, P2SH) and Bech32/Bech32m (witness programs).

use bitcoin::hashes::Hash;
use bitcoin::{Address, Network, PubkeyHash, Script, ScriptBuf, WitnessProgram, WitnessVersion, base58};

use super::bech32::{self, Bech32Error, DecodedBech32, Variant};
use super::kind::{ScriptKind, classify};
use outrigger_script::parse::witness_program;

/// Why a text is not an address, in the words of `validateaddress`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct AddressError {
    /// The error message.
    pub message: String,
    /// The positions of wrong characters, if the Bech32 checksum locates them.
    pub locations: Vec<usize>,
}

impl AddressError {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), locations: Vec::new() }
    }
}

impl From<Bech32Error> for AddressError {
    fn from(error: Bech32Error) -> Self {
        Self { message: error.message.to_owned(), locations: error.locations }
    }
}

/// The address of a scriptPubKey; `None` for bare public keys and other scripts without one.
pub fn from_script(script: &Script, network: Network) -> Option<String> {
    Address::from_script(script, network).ok().map(|address| address.to_string())
}

/// Appends the address of [`from_script`] to `out`, for witness programs without a copy. Returns whether there is one.
pub fn write_address(script: &Script, network: Network, out: &mut String) -> bool {
    let address = match classify(script) {
        ScriptKind::PubKey { .. } | ScriptKind::NonStandard | ScriptKind::Multisig { .. } | ScriptKind::NullData => {
            None
        }
        _ => match witness_program(script.as_bytes()) {
            Some((version, program)) => {
                bech32::encode(prefix(network), version, program, out);
                return true;
            }
            None => from_script(script, network),
        },
    };
    out.push_str(address.as_deref().unwrap_or_default());
    address.is_some()
}

/// Parses an address of `network` into its scriptPubKey. The error is that of Bitcoin Core 29's `validateaddress`.
pub fn to_script(text: &str, network: Network) -> Result<ScriptBuf, AddressError> {
    let expected = prefix(network);
    let start = text.get(..expected.len()).unwrap_or_default();
    if start.eq_ignore_ascii_case(expected) {
        from_bech32(&bech32::decode(text)?, expected)
    } else {
        from_base58(text, network)
    }
}

/// The prefix of a network's Bech32 addresses.
fn prefix(network: Network) -> &'static str {
    match network {
        Network::Bitcoin => "bc",
        Network::Testnet | Network::Testnet4 | Network::Signet => "tb",
        Network::Regtest => "bcrt",
    }
}

/// The version bytes of a network's P2PKH and P2SH addresses.
fn versions(network: Network) -> (u8, u8) {
    match network {
        Network::Bitcoin => (0, 5),
        Network::Testnet | Network::Testnet4 | Network::Signet | Network::Regtest => (111, 196),
    }
}

/// The characters that may surround Base58 text.
const WHITESPACE: [char; 6] = [' ', '\t', '\n', '\x0b', '\x0c', '\r'];
/// The length of a version and a hash, in bytes.
const BASE58_PAYLOAD: usize = 21;
/// The most bytes that bitcoind decodes from Base58.
const BASE58_MAX: usize = 100;

fn from_base58(text: &str, network: Network) -> Result<ScriptBuf, AddressError> {
    let text = text.trim_matches(WHITESPACE);
    // Decoding takes time quadratic in the length.
    let decodable = text.len() <= 2 * BASE58_MAX;
    let Some(bytes) = decodable.then(|| base58::decode(text).ok()).flatten().filter(|bytes| bytes.len() <= BASE58_MAX)
    else {
        return Err(AddressError::new("Invalid or unsupported Segwit (Bech32) or Base58 encoding."));
    };
    let payload = base58::decode_check(text).ok().filter(|_| bytes.len() <= BASE58_PAYLOAD + 4);
    let Some(payload) = payload else {
        return Err(AddressError::new("Invalid checksum or length of Base58 address (P2PKH or P2SH)"));
    };
    let (key_hash, script_hash) = versions(network);
    let (version, hash) = payload.split_first().map_or((None, &[][..]), |(version, hash)| (Some(*version), hash));
    if version != Some(key_hash) && version != Some(script_hash) {
        return Err(AddressError::new("Invalid or unsupported Base58-encoded address."));
    }
    let hash: [u8; 20] =
        hash.try_into().map_err(|_| AddressError::new("Invalid length for Base58 address (P2PKH or P2SH)"))?;
    Ok(if version == Some(key_hash) {
        ScriptBuf::new_p2pkh(&PubkeyHash::from_byte_array(hash))
    } else {
        ScriptBuf::new_p2sh(&bitcoin::ScriptHash::from_byte_array(hash))
    })
}

fn from_bech32(decoded: &DecodedBech32, expected: &str) -> Result<ScriptBuf, AddressError> {
    let Some((version, values)) = decoded.data.split_first() else {
        return Err(AddressError::new("Empty Bech32 data section"));
    };
    if decoded.prefix != expected {
        return Err(AddressError::new(format!(
            "Invalid or unsupported prefix for Segwit (Bech32) address (expected {expected}, got {}).",
            decoded.prefix
        )));
    }
    match (version, decoded.variant) {
        (0, Variant::Bech32m) => return Err(AddressError::new("Version 0 witness address must use Bech32 checksum")),
        (1.., Variant::Bech32) => {
            return Err(AddressError::new("Version 1+ witness address must use Bech32m checksum"));
        }
        _ => {}
    }
    let program = to_bytes(values).ok_or_else(|| AddressError::new("Invalid padding in Bech32 data section"))?;
    let unit = if program.len() == 1 { "byte" } else { "bytes" };
    if *version == 0 && !matches!(program.len(), 20 | 32) {
        let size = program.len();
        return Err(AddressError::new(format!("Invalid Bech32 v0 address program size ({size} {unit}), per BIP141")));
    }
    let version =
        WitnessVersion::try_from(*version).map_err(|_| AddressError::new("Invalid Bech32 address witness version"))?;
    let program = WitnessProgram::new(version, &program)
        .map_err(|_| AddressError::new(format!("Invalid Bech32 address program size ({} {unit})", program.len())))?;
    Ok(ScriptBuf::new_witness_program(&program))
}

/// Regroups five-bit groups to bytes. `None` if the rest is a whole group or not zero.
fn to_bytes(values: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(values.len() * 5 / 8);
    let (mut pending, mut bits) = (0_u32, 0);
    for value in values {
        pending = (pending << 5 | u32::from(*value)) & 0xfff;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((pending >> bits & 0xff) as u8);
        }
    }
    let leftover = pending & ((1 << bits) - 1);
    (bits < 5 && leftover == 0).then_some(bytes)
}
