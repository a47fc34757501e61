//! gettransaction and abandontransaction.

use bitcoin::hashes::Hash;
use bitcoin::{Transaction, Txid, consensus};
use outrigger_sdk::amount::Btc;
use outrigger_sdk::params::{encode_hex, hash};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::WalletTransaction;
use outrigger_sdk::standard::json::transaction_json;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::Question;
use crate::entry::{Lens, Selection, entries, serialize_block, serialize_later_keys};
use crate::error::HistoryError;

/// What gettransaction answers with.
pub struct Single {
    lens: Lens,
    transaction: WalletTransaction,
    raw: Vec<u8>,
    decoded: Option<Map<String, Value>>,
}

/// gettransaction.
pub fn get_transaction(question: &Question<'_>) -> Result<Single, HistoryError> {
    let wallet = question.wallet()?;
    let txid = Txid::from_byte_array(hash(question.params.get(0), "txid")?);
    let lens = question.lens(&wallet, question.params.get(1))?;
    let verbose = question.params.flag_or(2, false)?;
    let service = &question.host.wallet;
    let transaction = service.transactions(question.scope, vec![txid])?.pop().flatten();
    let raw = service.raw_transactions(question.scope, vec![txid])?.pop().flatten();
    let (Some(transaction), Some(raw)) = (transaction, raw) else {
        return Err(HistoryError::UnknownTransaction);
    };
    let decoded = if verbose {
        let decoded: Transaction = consensus::deserialize(&raw).map_err(|_| HistoryError::Damaged(txid))?;
        Some(transaction_json(&decoded, lens.network))
    } else {
        None
    };
    Ok(Single { lens, transaction, raw: raw.0, decoded })
}

impl Serialize for Single {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { lens, transaction, .. } = self;
        let mut map = serializer.serialize_map(None)?;
        let fee = lens.fee(transaction);
        let amount = lens.credit(transaction) - lens.debit(transaction) - fee.unwrap_or(0);
        map.serialize_entry("amount", &Btc(amount))?;
        if let Some(fee) = fee {
            map.serialize_entry("fee", &Btc(fee))?;
        }
        serialize_block(&mut map, *lens, transaction)?;
        map.serialize_entry("details", &entries(*lens, transaction, Selection::default(), false))?;
        map.serialize_entry("hex", &encode_hex(&self.raw))?;
        if let Some(decoded) = &self.decoded {
            map.serialize_entry("decoded", decoded)?;
        }
        serialize_later_keys(&mut map, transaction)?;
        let synced = &lens.synced;
        map.serialize_entry("lastprocessedblock", &json!({"hash": synced.hash, "height": synced.height}))?;
        map.end()
    }
}

/// abandontransaction.
pub fn abandon_transaction(question: &Question<'_>) -> Result<(), HistoryError> {
    question.wallet()?;
    let txid = Txid::from_byte_array(hash(question.params.get(0), "txid")?);
    question.host.wallet.abandon(question.scope, txid).map_err(|error| match error.kind {
        ErrorKind::NotFound => HistoryError::UnknownTransaction,
        ErrorKind::Refused => HistoryError::NotAbandonable,
        _ => error.into(),
    })
}
