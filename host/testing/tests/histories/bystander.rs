//! A client of an encrypted wallet while the node hangs: walletpassphrase, getnewaddress, setlabel and walletlock do not
//! need the node, and must take at most a tenth of a second.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bitcoin::ScriptBuf;
use outrigger_scripted_node::ScriptedNode;
use outrigger_service::Result as ServiceResult;
use outrigger_service::wallet::AddressType;
use outrigger_service::wire::Secret;
use outrigger_testing::TestHost;
use outrigger_wallet_engine::{WalletManager, WalletView};

const ENCRYPTED: &str = "encrypted";
const PASSPHRASE: &str = "pass";
/// Longer than the test, in seconds.
const UNLOCKED_SECONDS: u64 = 100_000;

/// The time limit of a call that does not need the node.
const AT_ONCE: Duration = Duration::from_millis(100);
/// How often a slow call is tried: a busy machine hardly delays a thread several times in a row, but a hanging node does.
const TRIES: usize = 5;
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Bystander {
    wallets: Arc<WalletManager>,
    script: ScriptBuf,
}

fn new_address(view: &WalletView) -> ServiceResult<ScriptBuf> {
    view.wallet().new_address(AddressType::Bech32, false, Some("rent".into()))
}

impl Bystander {
    pub fn new(host: &TestHost<ScriptedNode>) -> Self {
        host.create_wallet(ENCRYPTED, |options| options.passphrase = Secret::new(PASSPHRASE.into())).unwrap();
        let script = new_address(&host.wallet(ENCRYPTED).unwrap()).unwrap();
        Self { wallets: host.wallets.clone(), script }
    }

    /// Uses the wallets of the restarted host.
    pub fn start(&mut self, host: &TestHost<ScriptedNode>) {
        self.wallets = host.wallets.clone();
    }

    /// Makes all calls that must not wait for the node. The error names a call that failed or was slow.
    pub fn works(&self) -> Result<(), String> {
        let script = self.script.clone();
        self.at_once("walletpassphrase", |view| {
            view.wallet().unlock(Secret::new(PASSPHRASE.into()), UNLOCKED_SECONDS)
        })?;
        self.at_once("getnewaddress", |view| new_address(view).map(drop))?;
        self.at_once("setlabel", move |view| view.wallet().set_label(script.clone(), "food".into()))?;
        self.at_once("walletlock", |view| view.wallet().lock())
    }

    /// Runs `work` on the wallet without waiting for the tip, and checks the time that it takes.
    fn at_once<F>(&self, method: &str, work: F) -> Result<(), String>
    where
        F: Fn(&WalletView) -> ServiceResult<()> + Clone + Send + 'static,
    {
        for _ in 0..TRIES {
            let (wallets, work, (answer, answered)) = (self.wallets.clone(), work.clone(), channel());
            let began = Instant::now();
            thread::spawn(move || {
                let outcome = wallets.select_as_it_stands(Some(ENCRYPTED)).and_then(|view| work(&view));
                let _ = answer.send((outcome, began.elapsed()));
            });
            let (outcome, time) =
                answered.recv_timeout(PATIENCE).map_err(|_| format!("{method} waits for the node that hangs"))?;
            outcome.map_err(|error| format!("{method}: {error}"))?;
            if time <= AT_ONCE {
                return Ok(());
            }
        }
        Err(format!("{method} takes longer than {AT_ONCE:?} while the node hangs"))
    }
}
