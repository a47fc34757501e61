//! A session of bitcoincore-rpc: each of its calls that the host answers is made, and every answer is read into the crate's type.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Debug;

use bitcoincore_rpc::bitcoin::address::{Address, NetworkUnchecked};
use bitcoincore_rpc::bitcoin::{Amount, Network, PrivateKey, SignedAmount, Txid};
use bitcoincore_rpc::json::{
    AddressType, CreateRawTransactionInput, GetBlockTemplateCapabilities, GetBlockTemplateModes, GetBlockTemplateRules,
    GetTransactionResultDetailCategory, ImportDescriptors, ImportMultiOptions, ImportMultiRequest,
    ImportMultiRequestScriptPubkey, ScanTxOutRequest, SigHashType, Timestamp,
};
use bitcoincore_rpc::{Auth, Client, Error as ClientError, RpcApi, jsonrpc};

const KEY: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
const DESCRIPTOR: &str = "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v)#pdry7alk";

/// In satoshi: the first payment, and what its receiver pays on.
const PAID: u64 = 125_000_000;
const RETURNED: u64 = 124_990_000;

type Done<T = ()> = Result<T, Box<dyn Error>>;

fn client(path: &str) -> Done<Client> {
    let url = std::env::var("OUTRIGGER_URL")?;
    let cookie = std::env::var("OUTRIGGER_COOKIE")?;
    Ok(Client::new(&format!("{url}{path}"), Auth::CookieFile(cookie.into()))?)
}

/// Whether this says that something is so: the session stands in front of a bitcoind, or speaks with the bitcoind itself.
fn says(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

fn on_regtest(address: Address<NetworkUnchecked>) -> Done<Address> {
    Ok(address.require_network(Network::Regtest)?)
}

#[track_caller]
fn refused<T: Debug>(outcome: Result<T, ClientError>, code: i32) {
    match outcome {
        Err(ClientError::JsonRpc(jsonrpc::Error::Rpc(error))) => assert_eq!(error.code, code, "{}", error.message),
        other => panic!("no refusal: {other:?}"),
    }
}

fn main() -> Done {
    let node = client("/")?;
    look_around(&node)?;
    assert_eq!(node.create_wallet("payer", None, None, None, None)?.name, "payer");
    node.create_wallet("shop", None, Some(true), None, None)?;
    let (payer, shop) = (client("/wallet/payer")?, client("/wallet/shop")?);
    let mine = on_regtest(payer.get_new_address(Some("rent"), Some(AddressType::Bech32m))?)?;
    let blocks = payer.generate_to_address(101, &mine)?;
    assert_eq!((node.get_block_count()?, node.get_best_block_hash()?), (101, blocks[100]));
    look_at_the_wallet(&payer, &mine)?;

    let imported = shop.import_descriptors(ImportDescriptors {
        descriptor: DESCRIPTOR.into(),
        timestamp: Timestamp::Now,
        active: None,
        range: None,
        next_index: None,
        internal: None,
        label: Some("till".into()),
    })?;
    assert!(imported[0].success);
    let till = on_regtest(node.derive_addresses(DESCRIPTOR, None)?.remove(0))?;
    let paid = pay(&payer, &till)?;
    let returned = sign(&node, &shop, paid, &mine)?;
    look_at_the_mempool(&node, paid, returned)?;
    confirm(&node, &payer, &mine, returned)?;
    pass_psbts(&payer, &shop, &till)?;
    move_wallets(&node, &payer, &shop)?;
    if !says("OUTRIGGER_ON_NODE") {
        watch(&node, &till)?;
    }
    refused(payer.get_transaction(&"11".repeat(32).parse()?, None), -5);
    refused(node.get_block_hash(1_000_000), -8);
    Ok(())
}

/// What a node is asked before anything is done with it.
fn look_around(node: &Client) -> Done {
    let info = node.get_blockchain_info()?;
    assert_eq!((info.chain, info.blocks), (Network::Regtest, 0));
    assert!(node.version()? >= 290_000 && node.get_network_info()?.connections == 0);
    assert_eq!(node.get_mining_info()?.chain, Network::Regtest);
    assert_eq!(node.get_chain_tips()?.len(), 1);
    assert!(node.get_index_info()?.txindex.is_some_and(|index| index.synced));
    assert!(node.estimate_smart_fee(6, None)?.fee_rate.is_none());
    assert!(node.get_peer_info()?.is_empty() && node.list_banned()?.is_empty());
    assert_eq!((node.get_connection_count()?, node.get_network_hash_ps(None, None)?), (0, 0.0));
    // Bitcoin Knots has no getdifficulty.
    assert!(says("OUTRIGGER_IN_FRONT") || node.get_difficulty()? < 1e-9);
    assert!(node.uptime()? < 3600);
    assert_eq!(node.get_net_totals()?.total_bytes_recv, 0);
    node.ping()?;
    Ok(())
}

fn look_at_the_wallet(payer: &Client, mine: &Address) -> Done {
    let balances = payer.get_balances()?.mine;
    assert_eq!((balances.trusted, balances.immature), (Amount::from_int_btc(50), Amount::from_int_btc(5000)));
    assert_eq!(payer.get_balance(None, None)?, Amount::from_int_btc(50));
    assert_eq!(payer.get_wallet_info()?.wallet_name, "payer");
    let info = payer.get_address_info(mine)?;
    assert!(info.is_mine == Some(true) && info.is_witness == Some(true));
    payer.set_label(mine, "shelter")?;
    let unspent = payer.list_unspent(None, None, Some(&[mine]), None, None)?;
    assert_eq!((unspent.len(), unspent[0].label.as_deref()), (1, Some("shelter")));
    payer.get_raw_change_address(Some(AddressType::Bech32))?;
    payer.key_pool_refill(None)?;
    Ok(())
}

fn pay(payer: &Client, till: &Address) -> Done<Txid> {
    let paid = payer.send_to_address(till, Amount::from_sat(PAID), Some("milk"), None, None, None, None, None)?;
    let sent = payer.get_transaction(&paid, None)?;
    assert_eq!((sent.info.txid, sent.info.confirmations), (paid, 0));
    assert_eq!(sent.details[0].category, GetTransactionResultDetailCategory::Send);
    assert_eq!(sent.details[0].amount, -SignedAmount::from_sat(PAID.try_into()?));
    assert_eq!(sent.transaction()?.compute_txid(), paid);
    let too_much = Amount::from_int_btc(100_000);
    refused(payer.send_to_address(till, too_much, None, None, None, None, None, None), -6);
    Ok(paid)
}

/// Spends the imported coin with the key alone, and with the wallet that has it; both come to the same.
fn sign(node: &Client, shop: &Client, paid: Txid, to: &Address) -> Done<Txid> {
    let coin = shop.list_unspent(Some(0), None, None, None, None)?.remove(0);
    assert_eq!((coin.txid, coin.amount), (paid, Amount::from_sat(PAID)));
    let input = CreateRawTransactionInput { txid: coin.txid, vout: coin.vout, sequence: None };
    let outputs = HashMap::from([(to.to_string(), Amount::from_sat(RETURNED))]);
    let unsigned = node.create_raw_transaction(std::slice::from_ref(&input), &outputs, None, None)?;
    let key = PrivateKey::from_wif(KEY)?;
    let all: SigHashType = bitcoincore_rpc::bitcoin::sighash::EcdsaSighashType::All.into();
    let by_key = node.sign_raw_transaction_with_key(&unsigned, &[key], None, Some(all))?;
    let by_wallet = shop.sign_raw_transaction_with_wallet(&unsigned, None, None)?;
    assert!(by_key.complete && by_wallet.complete && by_wallet.errors.is_none());
    assert_eq!(by_key.hex, by_wallet.hex);
    shop.lock_unspent(&[bitcoincore_rpc::bitcoin::OutPoint { txid: coin.txid, vout: coin.vout }])?;
    assert!(shop.list_unspent(Some(0), None, None, None, None)?.is_empty());
    assert!(shop.unlock_unspent_all()?);
    let signed = by_key.transaction()?;
    assert!(node.test_mempool_accept(&[&signed])?[0].allowed);
    Ok(node.send_raw_transaction(&signed)?)
}

fn look_at_the_mempool(node: &Client, paid: Txid, returned: Txid) -> Done {
    let entry = node.get_mempool_entry(&returned)?;
    assert_eq!((entry.ancestor_count, entry.depends), (2, vec![paid]));
    assert_eq!(node.get_raw_mempool_verbose()?.len(), 2);
    assert_eq!((node.get_mempool_info()?.size, node.get_raw_mempool()?.len()), (2, 2));
    assert!(node.get_tx_out(&returned, 0, Some(true))?.is_some());
    let template = node.get_block_template(
        GetBlockTemplateModes::Template,
        &[GetBlockTemplateRules::SegWit],
        &[] as &[GetBlockTemplateCapabilities],
    )?;
    let txids: Vec<Txid> = template.transactions.iter().map(|entry| entry.txid).collect();
    let fees: Amount = template.transactions.iter().map(|entry| entry.fee).sum();
    assert_eq!((template.height, txids), (102, vec![paid, returned]));
    assert_eq!(template.coinbase_value, Amount::from_int_btc(50) + fees);
    Ok(())
}

fn confirm(node: &Client, payer: &Client, mine: &Address, returned: Txid) -> Done {
    let before = node.get_best_block_hash()?;
    let block = payer.generate_to_address(1, mine)?.remove(0);
    assert_eq!(node.get_block(&block)?.txdata.len(), 3);
    assert_eq!(node.get_block_info(&block)?.n_tx, 3);
    assert_eq!(node.get_block_header_info(&block)?.confirmations, 1);
    assert_eq!(node.get_raw_transaction_info(&returned, None)?.blockhash, Some(block));
    let since = payer.list_since_block(Some(&before), None, None, Some(true))?;
    assert_eq!((since.lastblock, since.transactions.len()), (block, 3));
    assert_eq!(payer.list_transactions(None, Some(2), None, None)?.len(), 2);
    // Two coinbases are mature by now.
    assert_eq!(payer.get_received_by_address(mine, Some(1))?, Amount::from_sat(RETURNED) + Amount::from_int_btc(100));
    let scan = ScanTxOutRequest::Single(format!("addr({mine})"));
    assert_eq!(node.scan_tx_out_set_blocking(&[scan])?.unspents.len(), 102);
    node.invalidate_block(&block)?;
    assert_eq!((node.get_best_block_hash()?, payer.get_transaction(&returned, None)?.info.confirmations), (before, 0));
    node.reconsider_block(&block)?;
    assert_eq!(payer.get_transaction(&returned, None)?.info.confirmations, 1);
    assert_eq!(payer.wait_for_new_block(1)?.hash, block);
    Ok(())
}

/// A payment as a PSBT, which one wallet funds and signs.
fn pass_psbts(payer: &Client, shop: &Client, till: &Address) -> Done {
    let outputs = HashMap::from([(till.to_string(), Amount::from_sat(PAID))]);
    let funded = payer.wallet_create_funded_psbt(&[], &outputs, None, None, None)?;
    let foreign = shop.wallet_process_psbt(&funded.psbt, None, None, None)?;
    assert!(!foreign.complete);
    let signed = payer.wallet_process_psbt(&funded.psbt, None, None, None)?;
    assert!(signed.complete);
    let whole = payer.finalize_psbt(&payer.combine_psbt(&[foreign.psbt, signed.psbt])?, None)?;
    let transaction = whole.transaction().ok_or("the PSBT is not complete")??;
    assert_eq!(payer.send_raw_transaction(&transaction)?, transaction.compute_txid());
    assert_eq!(shop.get_balances()?.mine.untrusted_pending, Amount::from_sat(PAID));
    Ok(())
}

/// Wallets go and come back, and are searched for anew.
fn move_wallets(node: &Client, payer: &Client, shop: &Client) -> Done {
    let before = payer.get_balances()?.mine;
    payer.unload_wallet(None)?;
    assert_eq!(node.list_wallets()?, ["shop"]);
    assert_eq!(node.load_wallet("payer")?.name, "payer");
    assert_eq!(payer.get_balances()?.mine, before);
    assert_eq!(shop.rescan_blockchain(Some(0), None)?, (0, Some(102)));
    refused(node.load_wallet("payer"), -35);
    refused(node.load_wallet("nobody"), -18);
    Ok(())
}

/// importmulti and the other former imports, which bitcoind has no more.
fn watch(node: &Client, till: &Address) -> Done {
    node.call::<serde_json::Value>(
        "createwallet",
        &["watch".into(), true.into(), true.into(), "".into(), false.into(), false.into()],
    )?;
    let watch = client("/wallet/watch")?;
    let request = ImportMultiRequest {
        timestamp: Timestamp::Time(0),
        script_pubkey: Some(ImportMultiRequestScriptPubkey::Address(till)),
        watchonly: Some(true),
        label: Some("till"),
        ..ImportMultiRequest::default()
    };
    let imported = watch.import_multi(&[request], Some(&ImportMultiOptions { rescan: Some(true) }))?;
    assert!(imported[0].success);
    assert_eq!(watch.get_received_by_address(till, None)?, Amount::from_sat(PAID));
    assert_eq!(watch.list_transactions(Some("till"), None, None, Some(true))?.len(), 2);
    Ok(())
}
