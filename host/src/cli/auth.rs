//! `outrigger auth`: creates an RPC user, as bitcoind's `rpcauth.py` does.

use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bitcoin::key::rand::RngCore;
use bitcoin::key::rand::rngs::OsRng;
use zeroize::Zeroizing;

use super::{EXIT_FAILED, refused, show};
use outrigger_rpc::RpcUser;

const PASSWORD_BYTES: usize = 32;

/// The configuration lines for a user, whose name may contain quotes and backslashes.
fn config_lines(user: &RpcUser) -> String {
    format!("[[rpc.users]]\nrpcauth = {}", toml::Value::String(user.entry()))
}

/// Prints the configuration lines for a user to standard output, so that they can be redirected to a file, and the password to
/// standard error. The password is stored nowhere.
pub fn auth(name: &str) -> ExitCode {
    let mut bytes = Zeroizing::new([0; PASSWORD_BYTES]);
    OsRng.fill_bytes(&mut *bytes);
    let password = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
    let user = match RpcUser::with_password(name, &password) {
        Ok(user) => user,
        Err(error) => return refused(&error, EXIT_FAILED),
    };
    let shown = show(&config_lines(&user));
    if shown == ExitCode::SUCCESS {
        eprintln!("\nThe password, which is stored nowhere:\n{}", *password);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_lines_are_toml_whatever_the_name() {
        for name in ["alice", "a\"b", "a'b\"c", "a\\b", "a\tb\nc", "é"] {
            let user = RpcUser::with_password(name, "x").unwrap();
            let table: toml::Table = config_lines(&user).parse().unwrap_or_else(|error| panic!("{name:?}: {error}"));
            assert_eq!(table["rpc"]["users"][0]["rpcauth"].as_str(), Some(user.entry().as_str()), "{name:?}");
        }
    }
}
