//! `outrigger auth`: makes a user of the RPC interface.

use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bitcoin::key::rand::RngCore;
use bitcoin::key::rand::rngs::OsRng;
use zeroize::Zeroizing;

use crate::rpc::RpcUser;

/// The bytes of chance in a password.
const PASSWORD_BYTES: usize = 32;

/// Prints the configuration's lines for a user, and the password that goes with them. The password is stored nowhere.
pub fn auth(name: &str) -> ExitCode {
    let mut bytes = Zeroizing::new([0; PASSWORD_BYTES]);
    OsRng.fill_bytes(&mut *bytes);
    let password = Zeroizing::new(URL_SAFE_NO_PAD.encode(*bytes));
    match RpcUser::with_password(name, &password) {
        Ok(user) => {
            println!("[[rpc.users]]\nrpcauth = \"{}\"\n\n# password: {}", user.entry(), *password);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("outrigger: {error}");
            ExitCode::FAILURE
        }
    }
}
