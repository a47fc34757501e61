//! The wire encodings of types from `outrigger_values`.

use bitcoin::{ScriptBuf, TxOut};
use outrigger_values::{AddressType, Blob, Coin, KeyOrigin, SolvingData, TapLeaf, TaprootData};

use super::{wire_enum, wire_struct};

wire_enum!(@of AddressType { Legacy = 0, P2shSegwit = 1, Bech32 = 2, Bech32m = 3, });

wire_struct!(@of Coin { output: TxOut, height: u32, coinbase: bool, });

wire_struct!(@of KeyOrigin {
    public_key: Blob,
    fingerprint: [u8; 4],
    path: String,
});

wire_struct!(@of SolvingData {
    scripts: Vec<ScriptBuf>,
    public_keys: Vec<Blob>,
    taproot: Option<TaprootData>,
});

wire_struct!(@of TaprootData {
    internal_key: [u8; 32],
    merkle_root: Option<[u8; 32]>,
    leaves: Vec<TapLeaf>,
});

wire_struct!(@of TapLeaf { script: ScriptBuf, control_block: Blob, });
