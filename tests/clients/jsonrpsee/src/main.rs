//! A session of jsonrpsee's own client over WebSockets: calls, batches, errors, and a refused connection.

use std::error::Error;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use jsonrpsee_core::client::{BatchResponse, ClientT, Error as ClientError};
use jsonrpsee_core::params::{ArrayParams, BatchRequestBuilder};
use jsonrpsee_core::rpc_params;
use jsonrpsee_ws_client::{WsClient, WsClientBuilder};
use serde_json::Value;

type Done<T = ()> = Result<T, Box<dyn Error>>;

async fn client(path: &str, login: &str) -> Done<WsClient> {
    let url = std::env::var("OUTRIGGER_URL")?.replace("http://", "ws://");
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(login)))?);
    Ok(WsClientBuilder::default().set_headers(headers).build(format!("{url}{path}")).await?)
}

#[track_caller]
fn refused(outcome: Result<Value, ClientError>, code: i32) {
    match outcome {
        Err(ClientError::Call(error)) if error.code() == code => {}
        other => panic!("no refusal with {code}: {other:?}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Done {
    let login = std::fs::read_to_string(std::env::var("OUTRIGGER_COOKIE")?)?;
    let node = client("/", &login).await?;
    let made: Value = node.request("createwallet", rpc_params!["w"]).await?;
    assert_eq!(made["name"], "w");
    refused(node.request("nosuchmethod", ArrayParams::new()).await, -32601);
    refused(node.request("getblockhash", rpc_params![1_000_000]).await, -8);
    let wallet = client("/wallet/w", &login).await?;
    let address: String = wallet.request("getnewaddress", ArrayParams::new()).await?;
    let blocks: Vec<String> = wallet.request("generatetoaddress", rpc_params![101, address]).await?;
    let mut batch = BatchRequestBuilder::new();
    batch.insert("getbalance", ArrayParams::new())?;
    batch.insert("getbestblockhash", ArrayParams::new())?;
    batch.insert("nosuchmethod", ArrayParams::new())?;
    let answers: BatchResponse<'_, Value> = wallet.batch_request(batch).await?;
    assert_eq!((answers.num_successful_calls(), answers.num_failed_calls()), (2, 1));
    let results: Vec<_> = answers.into_iter().flatten().collect();
    assert_eq!((results[0].as_f64(), results[1].as_str()), (Some(50.0), blocks.last().map(String::as_str)));
    let since: Value = wallet.request("listsinceblock", ArrayParams::new()).await?;
    assert_eq!(since["transactions"].as_array().map(Vec::len), Some(101));
    assert!(client("/", "nobody:wrong").await.is_err());
    Ok(())
}
