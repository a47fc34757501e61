//! What an operator's tools need: a service manager's notices, a description of all methods.

use std::os::unix::net::UnixDatagram;

use outrigger_tests::{Host, HostOptions};
use serde_json::json;

#[test]
fn the_service_manager_hears_of_readiness_and_of_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let environment = vec![("NOTIFY_SOCKET".to_owned(), path.display().to_string())];
    let mut host = Host::start_with(HostOptions { environment, ..HostOptions::default() });
    let hear = || {
        let mut buffer = [0; 64];
        let len = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..len].to_vec()).unwrap()
    };
    assert_eq!(hear(), "READY=1");
    host.client().call("getblockcount", json!([]));
    assert!(host.terminate().success());
    assert_eq!(hear(), "STOPPING=1");
}

#[test]
fn all_methods_are_discovered_with_their_parameters() {
    let host = Host::start();
    let mut client = host.client();
    let document = client.call("rpc.discover", json!([]));
    let methods = document["methods"].as_array().unwrap();
    let help = client.call("help", json!([]));
    let listed = help.as_str().unwrap().lines().filter(|line| !line.is_empty() && !line.starts_with("==")).count();
    assert_eq!(methods.len(), listed);
    let sign = methods.iter().find(|method| method["name"] == "signrawtransactionwithkey").unwrap();
    let names: Vec<_> = sign["params"].as_array().unwrap().iter().map(|param| param["name"].clone()).collect();
    assert_eq!(json!(names), json!(["hexstring", "privkeys", "prevtxs", "sighashtype"]));
}
