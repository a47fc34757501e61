//! Calls that wait for a block: `waitfornewblock`, `waitforblock` and `waitforblockheight`. The tip event answers them.

use std::time::Instant;

use bitcoin::BlockHash;
use outrigger_kit::waits::{Waiter, Waits, deadline};
use outrigger_sdk::service::Scope;
use outrigger_sdk::service::chain::Tip;
use outrigger_sdk::{Call, Reply, RpcError, methods, params, typed};
use serde_json::{Value, json};

use crate::ChainPlugin;

/// The condition on the best block that ends a wait.
#[derive(Clone, Copy)]
pub enum Until {
    /// Any other block.
    Other(BlockHash),
    Block(BlockHash),
    /// A block of at least this height.
    Height(i64),
}

impl Until {
    fn is_met(self, tip: &Tip) -> bool {
        match self {
            Self::Other(hash) => tip.hash != hash,
            Self::Block(hash) => tip.hash == hash,
            Self::Height(height) => i64::from(tip.height) >= height,
        }
    }
}

/// Answers the calls whose condition is met or whose timeout has expired, with the current best block.
pub fn answer_due(waits: &Waits<Until>) {
    let tip = waits.host.chain.tip(Scope::NONE);
    // If the node cannot be read, the calls keep waiting.
    let due = waits.take_due(|until| tip.as_ref().is_ok_and(|tip| until.is_met(tip)));
    for waiter in due {
        let tip = tip.as_ref().map(|tip| json!({"hash": tip.hash, "height": tip.height}));
        waiter.reply.send(tip.map_err(|error| error.clone().into()));
    }
}

/// The condition and the deadline of a call.
type Request = (Until, Option<Instant>);

#[methods(category = "Blockchain", inline, long_running)]
impl ChainPlugin {
    /// Answers an invalid call at once, and any other call when its condition is met or its timeout expires.
    fn wait(&self, request: Result<Request, RpcError>, reply: Reply) {
        match request {
            Ok((wanted, deadline)) => {
                self.waits.keep(Waiter { reply, wanted, deadline });
                self.waits.look();
            }
            Err(error) => {
                reply.fail(error);
            }
        }
    }

    /// Waits for another best block.
    ///
    /// * `timeout` - The timeout in milliseconds; 0 for none.
    ///
    /// # Result
    /// {"hash": "hash", "height": n}    (json object) The best block after the wait.
    ///
    /// # Example
    /// 1000
    #[method]
    fn waitfornewblock(&self, call: &Call<'_>, #[arg(default = 0)] timeout: i32, reply: Reply) {
        let request =
            deadline(timeout).and_then(|deadline| Ok((Until::Other(call.host.chain.tip(call.scope)?.hash), deadline)));
        self.wait(request, reply);
    }

    /// Waits until a block is the best one.
    ///
    /// * `blockhash` - The block.
    /// * `timeout` (default: 0) - The timeout in milliseconds; 0 for none.
    ///
    /// # Result
    /// {"hash": "hash", "height": n}    (json object) The best block after the wait.
    ///
    /// # Example
    /// 00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09 1000
    #[method]
    fn waitforblock(&self, blockhash: &str, #[arg(kind = "numeric")] timeout: Option<&Value>, reply: Reply) {
        let request = params::hash_text(blockhash, "blockhash").and_then(|hash| {
            let timeout = timeout.map_or(Ok(0), typed::integer)?;
            Ok((Until::Block(hash), deadline(timeout)?))
        });
        self.wait(request, reply);
    }

    /// Waits until the best chain has a height.
    ///
    /// * `height` - The height.
    /// * `timeout` - The timeout in milliseconds; 0 for none.
    ///
    /// # Result
    /// {"hash": "hash", "height": n}    (json object) The best block after the wait.
    ///
    /// # Example
    /// 100 1000
    #[method]
    fn waitforblockheight(&self, height: i32, #[arg(default = 0)] timeout: i32, reply: Reply) {
        let request = deadline(timeout).map(|deadline| (Until::Height(height.into()), deadline));
        self.wait(request, reply);
    }
}
