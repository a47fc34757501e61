//! The wallet's transactions by id, and the descriptors behind their outputs.

use std::collections::{BTreeSet, HashMap, HashSet};

use bitcoin::{OutPoint, Txid};
use outrigger_kit::spend::coins::BATCH;
use outrigger_sdk::service::wallet::{WalletCoin, WalletTransactionView};
use outrigger_sdk::{Call, RpcError};

/// Calls `read` with each of the wallet's transactions among `txids`.
pub fn read(
    call: &Call<'_>,
    txids: impl Iterator<Item = Txid>,
    mut read: impl FnMut(&WalletTransactionView<'_>),
) -> Result<(), RpcError> {
    let txids: Vec<Txid> = txids.collect::<HashSet<_>>().into_iter().collect();
    for txids in txids.chunks(BATCH as usize) {
        let batch = call.host.wallet.transactions(call.scope, txids.to_vec())?;
        for row in batch.view()?.rows.iter() {
            read(&row.open()?.0);
        }
    }
    Ok(())
}

/// For each coin, the texts of its descriptors as they were imported.
pub fn parent_texts(call: &Call<'_>, coins: &[WalletCoin]) -> Result<HashMap<OutPoint, Vec<String>>, RpcError> {
    let wanted: HashSet<OutPoint> = coins.iter().map(|coin| coin.outpoint).collect();
    let mut numbers = HashMap::with_capacity(wanted.len());
    read(call, wanted.iter().map(|outpoint| outpoint.txid), |transaction| {
        for (vout, output) in (0_u32..).zip(transaction.outputs.iter()) {
            let outpoint = OutPoint { txid: transaction.txid, vout };
            if wanted.contains(&outpoint) {
                numbers.insert(outpoint, output.descriptors.iter().collect::<Vec<u32>>());
            }
        }
    })?;
    let distinct: Vec<u32> = numbers.values().flatten().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let texts = call.host.wallet.descriptor_texts(call.scope, distinct.clone())?;
    let texts: HashMap<u32, String> =
        distinct.into_iter().zip(texts).filter_map(|(number, text)| Some((number, text?))).collect();
    let of = |numbers: Vec<u32>| numbers.iter().filter_map(|number| texts.get(number).cloned()).collect();
    Ok(numbers.into_iter().map(|(outpoint, numbers)| (outpoint, of(numbers))).collect())
}
