//! A third party's signing plugin: the host's wallet knows the outputs and watches them, and the keys are in a daemon behind a
//! Unix socket, which stands for a hardware module. It behaves for clients as the group that it replaces.

use std::io::{self, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use outrigger_sdk::methods::SecretTexts;
use outrigger_sdk::options::PluginOptions;
use outrigger_sdk::params::{decode_hex, encode_hex};
use outrigger_sdk::script::TxContext;
use outrigger_sdk::service::log::Level;
use outrigger_sdk::service::signer::{SignRequest, Signed};
use outrigger_sdk::service::{ErrorKind, Result, ServiceError};
use outrigger_sdk::sign::methods::{self, SigningResult, Unsigned};
use outrigger_sdk::sign::{KeySource, digest};
use outrigger_sdk::wire::Blob;
use outrigger_sdk::{Call, Host, Plugin, RpcError, plugin};
use serde_json::Value;

pub mod wire;

use wire::{Answer, Digest, Request};

/// How long the daemon may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(PluginOptions)]
pub struct Options {
    /// The Unix socket that the daemon listens on.
    #[option(default = "/run/vault.sock")]
    socket: String,
}

pub struct VaultSigning {
    host: Host,
    socket: PathBuf,
}

#[plugin(
    id = "vault-signing",
    version = "1.3.0",
    summary = "Signs raw transactions by keys that a daemon keeps, and by keys that come with the request.",
    services = ["chain/1", "wallet-read/1"],
    optional = ["mempool/1", "log/1"],
    reach = ["connect:unix:{socket}" = "The daemon that has the keys."],
    restartable
)]
impl Plugin for VaultSigning {
    type Options = Options;

    fn new(host: Host, options: Options) -> std::result::Result<Self, String> {
        Ok(Self { host, socket: options.socket.into() })
    }
}

#[outrigger_sdk::methods]
impl VaultSigning {
    /// Signs the inputs of a raw transaction with the given private keys only.
    ///
    /// The spent outputs come from the mempool and the chain. prevtxs adds other outputs, and the scripts of script hashes.
    /// Existing signatures stay if they verify.
    ///
    /// * `hexstring` - The transaction.
    /// * `privkeys` - Private keys in wallet import format.
    /// * `prevtxs` (default: null) - Spent outputs, each an object with txid, vout, scriptPubKey, redeemScript (for P2SH),
    ///   witnessScript (for P2WSH, also in P2SH) and amount (for witness inputs).
    /// * `sighashtype` (default: DEFAULT for taproot inputs, ALL for others) - The signature hash type: DEFAULT, ALL, NONE, SINGLE,
    ///   ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY.
    ///
    /// # Result
    /// {"hex": "hex", "complete": true|false, "errors": [{...}, ...]}    (json object) hex: the transaction with its signatures. complete:
    /// whether every input verifies. errors: an object for each input that does not verify, with txid, vout, witness, scriptSig,
    /// sequence and error.
    ///
    /// # Example
    /// "020000000001..." "[\"cSfcV...\"]"
    #[method(category = "Rawtransactions")]
    fn signrawtransactionwithkey(
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: &str,
        privkeys: SecretTexts<'_>,
        prevtxs: Option<&[Value]>,
        sighashtype: Option<&str>,
    ) -> std::result::Result<SigningResult, RpcError> {
        let unsigned = Unsigned { transaction: hexstring, prevtxs, sighash: sighashtype };
        methods::with_key(call.host, call.scope, &unsigned, &privkeys, &|| call.is_wanted())
    }

    /// Signs the inputs of a raw transaction with the wallet's keys. An encrypted wallet must be unlocked with walletpassphrase
    /// first.
    ///
    /// The spent outputs come from the mempool and the chain. prevtxs adds other outputs. Existing signatures stay if they verify.
    ///
    /// * `hexstring` - The transaction.
    /// * `prevtxs` (default: null) - Spent outputs, each an object with txid, vout, scriptPubKey and amount (for witness inputs).
    ///   The scripts of script hashes come from the wallet.
    /// * `sighashtype` (default: DEFAULT for taproot inputs, ALL for others) - The signature hash type: DEFAULT, ALL, NONE, SINGLE,
    ///   ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY.
    ///
    /// # Result
    /// {"hex": "hex", "complete": true|false, "errors": [{...}, ...]}    (json object) hex: the transaction with its signatures. complete:
    /// whether every input verifies. errors: an object for each input that does not verify, with txid, vout, witness, scriptSig,
    /// sequence and error.
    ///
    /// # Example
    /// "020000000001..."
    #[method(category = "Wallet")]
    fn signrawtransactionwithwallet(
        &self,
        call: &Call<'_>,
        #[arg(kind = "hex")] hexstring: &str,
        prevtxs: Option<&[Value]>,
        sighashtype: Option<&str>,
    ) -> std::result::Result<SigningResult, RpcError> {
        let unsigned = Unsigned { transaction: hexstring, prevtxs, sighash: sighashtype };
        methods::with_wallet(call.host, call.scope, &unsigned, |_| Vault(self), &|| call.is_wanted())
    }
}

struct Vault<'a>(&'a VaultSigning);

impl Vault<'_> {
    /// Asks the daemon. Each request opens a new connection, so it works after the daemon has restarted.
    fn ask(&self, request: &Request) -> Result<Answer> {
        self.exchange(request).map_err(|error| {
            let message = format!("the signing daemon at {}: {error}", self.0.socket.display());
            self.0.host.log(Level::Warn, message);
            ServiceError::new(ErrorKind::Refused, "The signing daemon cannot be reached")
        })
    }

    fn exchange(&self, request: &Request) -> io::Result<Answer> {
        let mut stream = UnixStream::connect(&self.0.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(&wire::line(request)?)?;
        wire::read(BufReader::new(stream))
    }
}

/// An answer that does not fit the question.
fn nonsense() -> ServiceError {
    ServiceError::new(ErrorKind::Refused, "The signing daemon gave no proper answer")
}

impl KeySource for Vault<'_> {
    fn available(&self, public_keys: Vec<Blob>) -> Result<Vec<bool>> {
        match self.ask(&Request::Available(public_keys.iter().map(|key| encode_hex(key)).collect()))? {
            Answer::Available(available) => Ok(available),
            _ => Err(nonsense()),
        }
    }

    fn sign(&self, context: &TxContext<'_>, requests: Vec<SignRequest>) -> Result<Vec<Option<Signed>>> {
        let digests: Vec<Option<[u8; 32]>> = requests.iter().map(|request| digest(context, request)).collect();
        let wanted =
            requests.iter().zip(&digests).filter_map(|(request, digest)| Some(Digest::new(request, (*digest)?)));
        let Answer::Signatures(signatures) = self.ask(&Request::Sign(wanted.collect()))? else {
            return Err(nonsense());
        };
        let mut signatures = signatures.into_iter();
        let signed = |digest: Option<[u8; 32]>| {
            let Some(digest) = digest else { return Ok(None) };
            let Some(text) = signatures.next().flatten() else { return Ok(None) };
            let signature = Blob(decode_hex(&text).ok_or_else(nonsense)?);
            Ok(Some(Signed { signature, digest }))
        };
        digests.into_iter().map(signed).collect()
    }
}

// Requests contain keys, and parsed requests are copies of them.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(VaultSigning);
