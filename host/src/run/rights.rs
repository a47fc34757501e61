//! Checks which methods the node's -rpcwhitelist allows the host's user to call.

use outrigger_bitcoind::{AskError, NEEDS, Rpc};
use outrigger_upstream::Login;

use super::{RunError, failed};
use crate::config::LoadedConfig;

/// Refuses a node whose -rpcwhitelist lacks a method that the host cannot work without. If the node does not answer, it is not refused.
pub fn refuse_lacking(loaded: &LoadedConfig, rpc: &Rpc, login: &Login) -> Result<(), RunError> {
    let vital = NEEDS.iter().filter(|need| need.is_vital).flat_map(|need| need.methods);
    for method in vital {
        match rpc.may_call(method) {
            Ok(true) => {}
            Ok(false) => {
                let told = refused(rpc, login).map_err(|error| failed("backend")(error.into()))?;
                return Err(loaded.error("backend", "", told).into());
            }
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Lines about the methods that the node's -rpcwhitelist refuses to the host's user, with the remedy; empty if there are none.
pub fn refused(rpc: &Rpc, login: &Login) -> Result<String, AskError> {
    let (mut lines, user) = (Vec::new(), login.user());
    for need in &NEEDS {
        let mut refused = Vec::new();
        for &method in need.methods {
            if !rpc.may_call(method)? {
                refused.push(method);
            }
        }
        if !refused.is_empty() {
            lines.push(format!(
                "rpcwhitelist: the node does not allow its user '{user}' to call {} ({})",
                refused.join(", "),
                need.purpose
            ));
        }
    }
    if !lines.is_empty() {
        let mut all: Vec<_> = NEEDS.iter().flat_map(|need| need.methods).copied().collect();
        all.sort_unstable();
        all.dedup();
        lines.push(format!(
            "rpcwhitelist: to allow all methods that the host calls, replace all lines for '{user}' in bitcoin.conf with this one, since \
             the node intersects them; add the methods that clients call through the host:\nrpcwhitelist={user}:{}",
            all.join(",")
        ));
    }
    Ok(lines.join("\n"))
}
