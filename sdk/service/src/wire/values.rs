//! The wire encodings of values that the Bitcoin half of the SDK has in common with messages.

use bitcoin::{ScriptBuf, TxOut};
use outrigger_values::{AddressType, Blob, Coin, KeyOrigin, SolvingData, TapLeaf, TaprootData};

use super::{wire_enum, wire_struct};

wire_enum!(@of ["The kind of an address."] AddressType {
    /// P2PKH.
    Legacy = 0,
    /// P2WPKH in P2SH.
    P2shSegwit = 1,
    /// P2WPKH.
    Bech32 = 2,
    /// P2TR.
    Bech32m = 3,
});

wire_struct!(@of ["An unspent output."] Coin { output: TxOut, height: u32, coinbase: bool, });

wire_struct!(@of ["Where a public key comes from (BIP 32)."] KeyOrigin {
    public_key: Blob,
    fingerprint: [u8; 4],
    path: String,
});

wire_struct!(@of ["What is known for spending an output, short of the keys themselves."] SolvingData {
    scripts: Vec<ScriptBuf>,
    public_keys: Vec<Blob>,
    taproot: Option<TaprootData>,
});

wire_struct!(@of ["What spending a taproot output takes."] TaprootData {
    internal_key: [u8; 32],
    merkle_root: Option<[u8; 32]>,
    leaves: Vec<TapLeaf>,
});

wire_struct!(@of ["A leaf of a taproot output's script tree."] TapLeaf { script: ScriptBuf, control_block: Blob, });
