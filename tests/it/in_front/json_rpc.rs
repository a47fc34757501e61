//! The envelope of JSON-RPC as the node reads it.

use super::start;

#[test]
fn requests_of_other_versions_are_answered_as_by_the_node() {
    let Some(host) = start(&[]) else { return };
    let mut clients = [host.client(), host.node.as_ref().unwrap().client()];
    let of = |version: &str| format!(r#"{{"jsonrpc":{version},"method":"getblockcount","id":1}}"#);
    let versions = [r#""1.0""#, r#""2.0""#, "null", r#""1.1""#, r#""3.0""#, r#""""#, "1", "2.0", "true", "[]", "{}"];
    let mut bodies: Vec<String> = versions.iter().map(|version| of(version)).collect();
    bodies.push(format!("[{}]", versions.map(of).join(",")));
    // The version is checked before the method and after the id.
    bodies.push(r#"{"jsonrpc":"1.1","method":5,"id":"a"}"#.to_owned());
    bodies.push(r#"{"jsonrpc":5}"#.to_owned());
    for body in bodies {
        let [ours, theirs] = clients.each_mut().map(|client| client.post(&body));
        assert_eq!((ours.status, ours.body), (theirs.status, theirs.body), "{body}");
    }
}
