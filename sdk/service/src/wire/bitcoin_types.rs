//! The wire encodings of rust-bitcoin's types and of feerates.

use bitcoin::hashes::Hash;
use bitcoin::{Amount, BlockHash, Network, OutPoint, ScriptBuf, SignedAmount, TxOut, Txid, Weight, Wtxid};
use outrigger_values::FeeRate;

use super::{Reader, Shape, Wire, WireError, Writer, wire_struct};

macro_rules! wire_hash {
    ($($hash:ty),*) => {$(
        impl Wire for $hash {
            const SHAPE: &'static Shape = &Shape::Hash;
            fn put(&self, out: &mut Writer) {
                out.extend_from_slice(self.as_byte_array());
            }
            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                Ok(Self::from_byte_array(reader.array()?))
            }
        }
    )*};
}
wire_hash!(BlockHash, Txid, Wtxid);

wire_struct!(@of OutPoint { txid: Txid, vout: u32, });

/// Encoded as bitcoind's chain name: `main`, `test`, `testnet4`, `signet`, `regtest`. Any other name is an error: there is
/// no default, since addresses differ between networks.
impl Wire for Network {
    const SHAPE: &'static Shape = &Shape::Text;
    fn put(&self, out: &mut Writer) {
        out.put_byte_string(self.to_core_arg().as_bytes());
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let error = reader.error();
        Self::from_core_arg(&String::get(reader)?).map_err(|_| error)
    }
}

impl Wire for ScriptBuf {
    const SHAPE: &'static Shape = &Shape::ByteString;
    fn put(&self, out: &mut Writer) {
        out.put_byte_string(self.as_bytes());
    }
    fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self::from_bytes(reader.byte_string()?.to_vec()))
    }
}

macro_rules! wire_unit {
    ($($type:ty = $int:ty, $from:ident, $to:ident);*) => {$(
        impl Wire for $type {
            const SHAPE: &'static Shape = <$int>::SHAPE;
            fn put(&self, out: &mut Writer) {
                self.$to().put(out);
            }
            fn get(reader: &mut Reader<'_>) -> Result<Self, WireError> {
                <$int>::get(reader).map(Self::$from)
            }
        }
    )*};
}
wire_unit!(
    Amount = u64, from_sat, to_sat;
    SignedAmount = i64, from_sat, to_sat;
    Weight = u64, from_wu, to_wu;
    FeeRate = u64, from_sat_per_kvb, to_sat_per_kvb
);

wire_struct!(@of TxOut { value: Amount, script_pubkey: ScriptBuf, });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{from_bytes, to_bytes};

    #[test]
    fn units_are_encoded_as_their_integers() {
        let feerate = FeeRate::from_sat_per_kvb(0x0102_0304);
        assert_eq!(to_bytes(&feerate), to_bytes(&0x0102_0304_u64));
        assert_eq!(from_bytes(&to_bytes(&feerate)), Ok(feerate));
        assert_eq!(to_bytes(&Amount::MAX), to_bytes(&u64::MAX));
        assert_eq!(to_bytes(&SignedAmount::from_sat(-2)), to_bytes(&-2_i64));
        assert_eq!(to_bytes(&Weight::from_wu(7)), to_bytes(&7_u64));
    }

    #[test]
    fn network_name_that_bitcoind_does_not_know_is_an_error() {
        for network in [Network::Bitcoin, Network::Testnet, Network::Testnet4, Network::Signet, Network::Regtest] {
            assert_eq!(from_bytes::<Network>(&to_bytes(&network)), Ok(network));
        }
        assert!(from_bytes::<Network>(&to_bytes(&String::from("liquid"))).is_err());
    }
}
