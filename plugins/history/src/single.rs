//! gettransaction, abandontransaction and setcomment.

use bitcoin::hashes::Hash;
use bitcoin::{Transaction, Txid, consensus};
use outrigger_sdk::RpcError;
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::params::{hash, text};
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::{MAX_TEXT_LEN, Synced};
use outrigger_sdk::standard::json::{Shown, ShownWithChange};

use crate::entry::{EntryWriter, Selection, WalletTx, entries};
use crate::viewpoint::WalletViewpoint;
use crate::{CallContext, json};

/// The approximate size of a reply without the transaction's hex, in bytes.
const REPLY_BYTES: usize = 1024;

pub fn get_transaction(context: &CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    let wallet = context.wallet()?;
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    let viewpoint = WalletViewpoint::of(context, &wallet, 1)?;
    let verbose = context.params.flag_or(2, false)?;
    let service = &context.host.wallet;
    let found = service.transactions(context.scope, vec![txid])?;
    let batch = found.view()?;
    let tx = batch.rows.iter().next().map(|row| WalletTx::open(&row, batch)).transpose()?;
    let raw = service.raw_transactions(context.scope, vec![txid])?.pop().flatten();
    let (Some(tx), Some(raw)) = (tx, raw) else {
        return Err(unknown_transaction());
    };

    let transaction = &tx.transaction;
    let fee = viewpoint.fee(transaction);
    let own = viewpoint.credit(transaction).saturating_sub(viewpoint.debit(transaction));
    let amount = own.saturating_sub(fee.unwrap_or_default());
    let mut reply = Vec::with_capacity(REPLY_BYTES + 2 * raw.len());
    reply.push(b'{');
    json::key!(&mut reply, "amount");
    json::bitcoin(&mut reply, amount);
    if let Some(fee) = fee {
        json::key!(&mut reply, "fee");
        json::bitcoin(&mut reply, fee);
    }
    let mut writer = EntryWriter::new(context, viewpoint);
    writer.write_shared(&mut reply, &tx)?;
    json::key!(&mut reply, "details");
    reply.push(b'[');
    for entry in entries(viewpoint, transaction, Selection::default()) {
        json::item(&mut reply);
        writer.write(&mut reply, &tx, entry, false)?;
    }
    reply.push(b']');
    json::key!(&mut reply, "hex");
    json::hex(&mut reply, &raw);
    if verbose {
        let decoded: Transaction = consensus::deserialize(&raw)
            .map_err(|_| RpcError::internal(format!("The wallet's copy of transaction {txid} is damaged")))?;
        json::key!(&mut reply, "decoded");
        let change: Vec<bool> = transaction.outputs.iter().map(|output| output.change).collect();
        let change = if context.rules.decoded_change { change.as_slice() } else { &[] };
        serde_json::to_writer(&mut reply, &ShownWithChange(Shown(&decoded, viewpoint.network), change))
            .map_err(|error| RpcError::internal(error.to_string()))?;
    }
    write_last_block(&mut reply, viewpoint.synced);
    reply.push(b'}');
    Ok(reply)
}

fn write_last_block(reply: &mut Vec<u8>, synced: Synced) {
    json::key!(reply, "lastprocessedblock");
    reply.push(b'{');
    json::key!(reply, "hash");
    json::hash(reply, synced.hash.as_byte_array());
    json::key!(reply, "height");
    json::unsigned(reply, synced.height.into());
    reply.push(b'}');
}

pub fn abandon_transaction(context: &CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    context.wallet()?;
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    context.host.pay.abandon(context.scope, txid).map_err(|error| match error.kind {
        ErrorKind::NotFound => unknown_transaction(),
        ErrorKind::Refused => RpcError::not_found("Transaction not eligible for abandonment"),
        _ => error.into(),
    })?;
    Ok(b"null".to_vec())
}

/// setcomment. Sets the comments that sendtoaddress also sets. An empty text removes a comment.
pub fn set_comment(context: &CallContext<'_>) -> Result<Vec<u8>, RpcError> {
    context.wallet()?;
    let txid = Txid::from_byte_array(hash(context.params.get(0), "txid")?);
    for (index, key) in [(1, "comment"), (2, "to")] {
        let Some(text) = context.params.given(index).map(text).transpose()? else { continue };
        if text.len() > MAX_TEXT_LEN {
            let message = format!("A comment has at most {MAX_TEXT_LEN} bytes, this one has {}", text.len());
            return Err(RpcError::invalid_parameter(message));
        }
        let set = context.host.book.set_metadata(context.scope, txid, key.to_owned(), text.to_owned());
        set.map_err(|error| match error.kind {
            ErrorKind::NotFound => unknown_transaction(),
            _ => error.into(),
        })?;
    }
    Ok(b"null".to_vec())
}

fn unknown_transaction() -> RpcError {
    RpcError::not_found("Invalid or non-wallet transaction id")
}
