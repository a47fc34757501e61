// The session with the types of one release: main.rs includes this file for each, with its client module as `typed`.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Debug;
use std::path::PathBuf;

use corepc_client::bitcoin::{Address, Amount, Network, PrivateKey, SignedAmount, Txid};
use corepc_client::client_sync::{Auth, Error as ClientError};
use corepc_client::types::model::TransactionCategory;
use typed::{Client, ImportDescriptorsRequest, Input, Output, TemplateRequest, TemplateRules};

const KEY: &str = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v";
const DESCRIPTOR: &str = "wpkh(cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v)#pdry7alk";

type Done<T = ()> = Result<T, Box<dyn Error>>;

fn client(path: &str) -> Done<Client> {
    let url = std::env::var("OUTRIGGER_URL")?;
    let cookie = PathBuf::from(std::env::var("OUTRIGGER_COOKIE")?);
    Ok(Client::new_with_auth(&format!("{url}{path}"), Auth::CookieFile(cookie))?)
}

#[track_caller]
fn refused<T: Debug>(outcome: Result<T, ClientError>, code: i32) {
    let text = match outcome {
        Err(ClientError::JsonRpc(error)) => format!("{error:?}"),
        other => panic!("no refusal: {other:?}"),
    };
    assert!(text.contains(&format!("code: {code},")), "{text} does not have the code {code}");
}

/// Whether the host stands in front of a Bitcoin Knots, which has a version of its own and not all methods of Bitcoin Core.
fn in_front() -> bool {
    std::env::var_os("OUTRIGGER_IN_FRONT").is_some_and(|value| !value.is_empty())
}

pub fn run() -> Done {
    let node = client("/")?;
    if !in_front() {
        node.check_expected_server_version()?;
    }
    look_around(&node)?;

    // Wallets and blocks.
    assert_eq!(node.create_wallet("payer")?.name, "payer");
    node.call::<serde_json::Value>("createwallet", &["shop".into(), false.into(), true.into()])?;
    let (payer, shop) = (client("/wallet/payer")?, client("/wallet/shop")?);
    let mine = payer.new_address()?;
    let blocks = node.generate_to_address(101, &mine)?.into_model()?.0;
    assert_eq!(node.best_block_hash()?, blocks[100]);
    let balances = payer.get_balances()?.into_model()?.mine;
    assert_eq!((balances.trusted, balances.immature), (Amount::from_int_btc(50), Amount::from_int_btc(5000)));
    assert!(payer.get_address_info(&mine)?.into_model()?.is_mine);
    payer.get_wallet_info()?.into_model()?;

    // Import.
    let imported = shop.import_descriptors(&[ImportDescriptorsRequest::new(DESCRIPTOR, "now")])?;
    assert!(imported.0[0].success);
    let till = node.derive_addresses(DESCRIPTOR)?.into_model()?.addresses[0].clone().assume_checked();

    // Send.
    let paid = payer.send_to_address(&till, Amount::from_sat(125_000_000))?.into_model()?.txid;
    let sent = payer.get_transaction(paid)?.into_model()?;
    assert_eq!((sent.amount, sent.confirmations), (SignedAmount::from_sat(-125_000_000), 0));
    assert_eq!(sent.details[0].category, TransactionCategory::Send);
    assert_eq!(sent.tx.compute_txid(), paid);
    refused(payer.send_to_address(&till, Amount::from_int_btc(100_000)), -6);

    let returned = sign(&node, &shop, &mine)?;

    // The mempool, in each of its shapes.
    let entry = node.get_mempool_entry(returned)?.into_model()?.0;
    assert_eq!((entry.ancestor_count, entry.depends), (2, vec![paid]));
    assert_eq!(node.get_mempool_ancestors(returned)?.into_model()?.0, [paid]);
    assert_eq!(node.get_mempool_descendants(paid)?.into_model()?.0, [returned]);
    assert_eq!(node.get_raw_mempool_verbose()?.into_model()?.0.len(), 2);
    assert_eq!(node.get_mempool_info()?.into_model()?.size, 2);

    // Template.
    let request = TemplateRequest { rules: vec![TemplateRules::Segwit], ..TemplateRequest::default() };
    let template = node.get_block_template(&request)?.into_model()?;
    assert_eq!(template.transactions.iter().map(|entry| entry.txid).collect::<Vec<_>>(), [paid, returned]);
    let fees: SignedAmount = template.transactions.iter().map(|entry| entry.fee).sum();
    assert_eq!(template.coinbase_value, SignedAmount::from_sat(5_000_000_000) + fees);
    assert_eq!((template.height, template.previous_block_hash), (102, blocks[100]));

    // A block, and history.
    let block = node.generate_to_address(1, &mine)?.into_model()?.0[0];
    let found = node.get_block_verbose_two(block)?.into_model()?;
    assert_eq!((found.height, found.tx.len()), (102, 3));
    assert_eq!(node.get_block(block)?.txdata[1].compute_txid(), paid);
    let since = shop.list_since_block()?.into_model()?;
    let seen: BTreeSet<_> = since.transactions.iter().map(|entry| (entry.txid, entry.confirmations)).collect();
    assert_eq!(seen, BTreeSet::from([(Some(paid), 1), (Some(returned), 1)]));
    assert_eq!(shop.list_transactions()?.into_model()?.0.len(), 2);
    refused(payer.get_transaction("11".repeat(32).parse()?), -5);
    refused(node.get_block_hash(1_000_000), -8);
    Ok(())
}

/// What a node is asked before anything is done with it.
fn look_around(node: &Client) -> Done {
    let info = node.get_blockchain_info()?.into_model()?;
    assert_eq!((info.chain, info.blocks), (Network::Regtest, 0));
    node.get_network_info()?.into_model()?;
    node.get_mining_info()?.into_model()?;
    node.get_deployment_info_tip()?.into_model()?;
    node.get_chain_tips()?.into_model()?;
    assert!(node.get_peer_info()?.0.is_empty() && node.get_node_addresses()?.0.is_empty());
    assert_eq!((node.get_net_totals()?.total_bytes_received, node.get_connection_count()?.0), (0, 0));
    assert!(node.get_index_info()?.0["txindex"].synced);
    assert!(node.estimate_smart_fee(6)?.into_model()?.fee_rate.is_none());
    assert!(in_front() || node.get_difficulty()?.0 < 1e-9);
    assert_eq!(node.get_network_hash_ps()?, 0.0);
    assert!(node.uptime()? < 3600);
    Ok(())
}

/// Spends the imported coin with the key alone, and with the wallet that has it; both come to the same.
fn sign(node: &Client, shop: &Client, to: &Address) -> Done<Txid> {
    let coin = shop.call::<serde_json::Value>("listunspent", &[0.into()])?[0].clone();
    let txid: Txid = coin["txid"].as_str().unwrap_or_default().parse()?;
    let input = Input { txid, vout: coin["vout"].as_u64().unwrap_or_default(), sequence: None };
    let output = Output::new(to.clone(), Amount::from_sat(124_990_000));
    let unsigned = node.create_raw_transaction(&[input], &[output])?.into_model()?.0;
    let by_key = node.sign_raw_transaction_with_key(&unsigned, &[PrivateKey::from_wif(KEY)?])?.into_model()?;
    let by_wallet = shop.sign_raw_transaction_with_wallet(&unsigned)?.into_model()?;
    assert!(by_key.complete && by_wallet.complete && by_wallet.errors.is_empty());
    let tried = node.test_mempool_accept(std::slice::from_ref(&by_key.tx))?.into_model()?;
    assert!(tried.results[0].allowed);
    let sent = node.send_raw_transaction(&by_key.tx)?.into_model()?.0;
    assert_eq!(sent, by_wallet.tx.compute_txid());
    Ok(sent)
}
