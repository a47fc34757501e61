//! gettransaction, abandontransaction and setcomment.

use bitcoin::hashes::Hash;
use bitcoin::{Transaction, consensus};
use outrigger_sdk::amount::Saturating;
use outrigger_sdk::methods::Json;
use outrigger_sdk::params::hash_text;
use outrigger_sdk::service::ErrorKind;
use outrigger_sdk::service::wallet::MAX_TEXT_LEN;
use outrigger_sdk::standard::Shown;
use outrigger_sdk::{Call, RpcError, methods};

use crate::entry::{EntryWriter, Selection, WalletTx, entries};
use crate::viewpoint::WalletViewpoint;
use crate::{HistoryPlugin, json};

/// The approximate size of a reply without the transaction's hex, in bytes.
const REPLY_BYTES: usize = 1024;

#[methods(category = "Wallet")]
impl HistoryPlugin {
    /// Returns the wallet's details of a transaction.
    ///
    /// * `txid` - The transaction's id.
    /// * `include_watchonly` (default: true for watch-only wallets, otherwise false) - Whether amounts and details
    ///   include watched scripts.
    /// * `verbose` - Whether to decode the transaction.
    ///
    /// # Result
    /// {"amount": n, "fee": n, "confirmations": n, ..., "details": [...], "hex": "...", "decoded": {...}}    (json
    /// object) Amounts are in BTC. The fee is negative, and present for sent transactions only.
    #[method(inline, wallet_only)]
    fn gettransaction(
        call: &Call<'_>,
        txid: &str,
        include_watchonly: Option<bool>,
        #[arg(default = false)] verbose: bool,
    ) -> Result<Json, RpcError> {
        let wallet = call.wallet()?;
        let txid = hash_text(txid, "txid")?;
        let viewpoint = WalletViewpoint::of(call, &wallet, include_watchonly)?;
        let service = &call.host.wallet;
        let found = service.transactions(call.scope, vec![txid])?;
        let batch = found.view()?;
        let tx = batch.rows.iter().next().map(|row| WalletTx::open(&row, batch)).transpose()?;
        let raw = service.raw_transactions(call.scope, vec![txid])?.pop().flatten();
        let (Some(tx), Some(raw)) = (tx, raw) else {
            return Err(unknown_transaction());
        };

        let transaction = &tx.transaction;
        let fee = viewpoint.fee(transaction);
        let own = viewpoint.credit(transaction).saturating_sub(viewpoint.debit(transaction));
        let amount = own.saturating_sub(fee.unwrap_or_default());
        let mut writer = EntryWriter::new(call, viewpoint);
        writer.out.reserve(REPLY_BYTES + 2 * raw.len());
        writer.out.push(b'{');
        json::key!(&mut writer.out, "amount", bitcoin, amount);
        if let Some(fee) = fee {
            json::key!(&mut writer.out, "fee", bitcoin, fee);
        }
        writer.write_shared(&tx)?;
        json::key!(&mut writer.out, "details");
        writer.out.push(b'[');
        for entry in entries(viewpoint, transaction, Selection::default()) {
            json::item(&mut writer.out);
            writer.write(&tx, entry, false)?;
        }
        let mut reply = writer.out;
        reply.push(b']');
        json::key!(&mut reply, "hex", hex, &raw);
        if verbose {
            let decoded: Transaction = consensus::deserialize(&raw)
                .map_err(|_| RpcError::internal(format!("The wallet's copy of transaction {txid} is damaged")))?;
            json::key!(&mut reply, "decoded");
            let change: Vec<bool> = transaction.outputs.iter().map(|output| output.change).collect();
            let change = if call.rules.decoded_change { change.as_slice() } else { &[] };
            serde_json::to_writer(&mut reply, &Shown { transaction: &decoded, network: viewpoint.network, change })
                .map_err(|error| RpcError::internal(error.to_string()))?;
        }
        json::key!(&mut reply, "lastprocessedblock");
        reply.push(b'{');
        json::key!(&mut reply, "hash", hash, viewpoint.synced.hash.as_byte_array());
        json::key!(&mut reply, "height", number, viewpoint.synced.height);
        reply.extend_from_slice(b"}}");
        Ok(Json(reply))
    }

    /// Abandons a transaction that is neither in a block nor in the mempool. Its inputs become spendable again.
    ///
    /// * `txid` - The transaction's id.
    #[method]
    fn abandontransaction(call: &Call<'_>, #[arg(kind = "hex")] txid: &str) -> Result<(), RpcError> {
        call.wallet()?;
        let txid = hash_text(txid, "txid")?;
        call.host.pay.abandon(call.scope, txid).map_err(|error| match error.kind {
            ErrorKind::NotFound => unknown_transaction(),
            ErrorKind::Refused => RpcError::not_found("Transaction not eligible for abandonment"),
            _ => error.into(),
        })
    }

    /// Sets the comments of a wallet transaction that sendtoaddress also sets. bitcoind does not have this method.
    ///
    /// * `txid` - The transaction's id.
    /// * `comment` (default: unchanged) - The purpose of the payment. An empty text removes the comment.
    /// * `comment_to` (default: unchanged) - The recipient of the payment. An empty text removes the comment.
    ///
    /// # Example
    /// 1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0 rent
    #[method(needs_tip = false)]
    fn setcomment(
        call: &Call<'_>,
        #[arg(kind = "hex")] txid: &str,
        comment: Option<&str>,
        comment_to: Option<&str>,
    ) -> Result<(), RpcError> {
        call.wallet()?;
        let txid = hash_text(txid, "txid")?;
        for (key, text) in [("comment", comment), ("to", comment_to)] {
            let Some(text) = text else { continue };
            if text.len() > MAX_TEXT_LEN {
                let message = format!("A comment has at most {MAX_TEXT_LEN} bytes, this one has {}", text.len());
                return Err(RpcError::invalid_parameter(message));
            }
            let set = call.host.book.set_metadata(call.scope, txid, key.to_owned(), text.to_owned());
            set.map_err(|error| match error.kind {
                ErrorKind::NotFound => unknown_transaction(),
                _ => error.into(),
            })?;
        }
        Ok(())
    }
}

fn unknown_transaction() -> RpcError {
    RpcError::not_found("Invalid or non-wallet transaction id")
}
