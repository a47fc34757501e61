//! The methods that the node's -rpcwhitelist allows the host's user.

use outrigger_bitcoind::{AskError, NEEDS, Rpc};
use outrigger_upstream::Login;

use super::{RunError, failed};
use crate::config::LoadedConfig;

/// Refuses a node whose -rpcwhitelist lacks a method that the host cannot work without. One that cannot be asked is not refused.
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

/// The methods that the node's -rpcwhitelist refuses to the host's user, as lines with the remedy.
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
            "rpcwhitelist: the host asks for no more with this line in bitcoin.conf, in the place of all others for '{user}', since the \
             node takes what is common to them; add the methods that clients call through the host:\nrpcwhitelist={user}:{}",
            all.join(",")
        ));
    }
    Ok(lines.join("\n"))
}
