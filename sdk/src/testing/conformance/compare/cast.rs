//! The scripts and transactions that a random history is about.

use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::script::Builder;
use bitcoin::{ScriptBuf, Transaction};

use super::Dice;
use crate::descriptor::{Checksum, Descriptor};
use crate::service::wallet::Import;
use crate::testing::conformance::Failure;
use crate::testing::conformance::bench::{descriptor, foreign, keys, master, p2pkh, p2wpkh, public, watch, wif};
use crate::wire::Blob;

/// How many indexes of each ranged descriptor are among the scripts.
const INDEXES: u32 = 8;
/// The largest last index of an import.
const MAX_LAST: usize = 40;

/// Who pays whom.
pub struct Cast {
    pub scripts: Vec<ScriptBuf>,
    /// Every transaction there was.
    pub made: Vec<Transaction>,
    /// The texts of the descriptors with a range.
    ranged: Vec<String>,
    /// A multisig of the keys 6 and 7, its witness program, and that program's P2SH script.
    multisig: [ScriptBuf; 3],
}

impl Cast {
    pub fn new() -> Result<Self, Failure> {
        let ranged = vec![
            format!("wpkh({}/84h/1h/0h/0/*)", master(1)?),
            format!("wpkh({}/1/*)", master(1)?),
            format!("pkh({}/0/*)", master(2)?),
            format!("tr({}/86h/*)", master(3)?),
            format!("wpkh({}/5/*h)", master(4)?),
        ];
        let script = Builder::new().push_int(2).push_key(&public(6)?).push_key(&public(7)?).push_int(2);
        let script = script.push_opcode(OP_CHECKMULTISIG).into_script();
        let program = ScriptBuf::new_p2wsh(&script.wscript_hash());
        let multisig = [script, program.clone(), ScriptBuf::new_p2sh(&program.script_hash())];
        let mut scripts = Vec::new();
        for text in &ranged {
            for parsed in Descriptor::parse(text, bitcoin::Network::Regtest, Checksum::Optional).into_iter().flatten() {
                let expansions = (0..INDEXES).filter_map(|index| parsed.expand(index).ok());
                scripts.extend(expansions.flat_map(|found| found.scripts).map(|found| found.script_pubkey));
            }
        }
        for number in 1..=7 {
            let nested = ScriptBuf::new_p2sh(&p2wpkh(number)?.script_hash());
            scripts.extend([p2wpkh(number)?, p2pkh(number)?, ScriptBuf::new_p2pk(&public(number)?), nested]);
        }
        scripts.extend(multisig.iter().cloned());
        scripts.extend((1..=6).map(foreign));
        scripts.push(ScriptBuf::new_op_return([1, 2, 3]));
        Ok(Self { scripts, made: Vec::new(), ranged, multisig })
    }

    /// A script; every other time one of the descriptor that the wallet has from the beginning.
    pub fn script(&self, dice: &mut Dice) -> ScriptBuf {
        let known = self.scripts.get(..INDEXES as usize).unwrap_or_default();
        let from = if dice.once_in(2) { known } else { &self.scripts };
        dice.pick(from).unwrap_or_default()
    }

    /// What the wallet has from the beginning.
    pub fn first_import(&self) -> Import {
        let text = self.ranged.first().cloned().unwrap_or_default();
        descriptor(&text, |import| (import.range, import.active) = (Some((0, INDEXES)), true))
    }

    /// A random import, and what it is.
    pub fn import(&self, dice: &mut Dice) -> Result<(Import, String), Failure> {
        let number = 1 + dice.below(7) as u8;
        let label = ["", "rent", "food"].get(dice.below(3)).copied().unwrap_or_default();
        let timestamp = 1 + dice.below(2_000_000_000) as u64;
        let internal = dice.once_in(3);
        let kind = dice.below(10);
        let import = match kind {
            0..=3 => return self.ranged_import(dice, timestamp, internal),
            4 => descriptor(&format!("combo({})", wif(number)?.expose()), |import| {
                (import.label, import.timestamp) = (Some(label.to_owned()), timestamp);
            }),
            5 => descriptor(&format!("pkh({})", wif(number)?.expose()), |import| {
                (import.timestamp, import.internal, import.active) = (timestamp, Some(internal), dice.once_in(2));
            }),
            6 => watch(&self.script(dice)),
            7 => keys(|keys| {
                (keys.label, keys.timestamp, keys.internal) = (label.to_owned(), timestamp, internal);
                keys.private_keys = wif(number).into_iter().collect();
                keys.script_pubkeys = p2pkh(number).into_iter().collect();
            }),
            8 => keys(|keys| {
                let [script, program, nested] = self.multisig.clone();
                (keys.scripts, keys.script_pubkeys) = (vec![script, program], vec![nested]);
                (keys.timestamp, keys.label) = (timestamp, label.to_owned());
            }),
            _ => keys(|keys| {
                (keys.keypool, keys.internal, keys.timestamp) = (true, internal, timestamp);
                keys.public_keys = public(number).into_iter().map(|key| Blob(key.to_bytes())).collect();
                keys.script_pubkeys = p2wpkh(number).into_iter().collect();
            }),
        };
        Ok((import, format!("kind {kind}, key {number}, internal {internal}, label '{label}', time {timestamp}")))
    }

    fn ranged_import(&self, dice: &mut Dice, timestamp: u64, internal: bool) -> Result<(Import, String), Failure> {
        let which = dice.below(self.ranged.len());
        let text = self.ranged.get(which).cloned().unwrap_or_default();
        let begin = if dice.once_in(3) { dice.below(4) as u32 } else { 0 };
        let last = begin + dice.below(MAX_LAST) as u32;
        let active = dice.once_in(2);
        let import = descriptor(&text, |import| {
            (import.range, import.active, import.internal) = (Some((begin, last)), active, Some(internal));
            import.timestamp = timestamp;
        });
        Ok((import, format!("descriptor {which} [{begin}, {last}], active {active}, internal {internal}, {timestamp}")))
    }
}
