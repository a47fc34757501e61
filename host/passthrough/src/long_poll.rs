//! Long polls wait in the host, so that thousands of them occupy none of the node's few threads.
//!
//! getblocktemplate with a `longpollid` (BIP 22) is answered by a plain getblocktemplate once the template changes;
//! waitfornewblock, waitforblock and waitforblockheight by the tip that the host knows.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bitcoin::BlockHash;
use bytes::Bytes;
use futures_util::FutureExt;
use outrigger_rpc::{Client, Failure, HALF_CLOSED_PATIENCE, half_closed};
use outrigger_upstream::Upstream;
use outrigger_values::{RpcError, RpcErrorCode};
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::forward::whole;
use super::shared::SingleFlight;
use super::taps::Taps;

/// When a long poll first checks for changes of the mempool alone, and the interval of further checks, as in bitcoind.
const MEMPOOL_AFTER: Duration = Duration::from_secs(60);
const MEMPOOL_EVERY: Duration = Duration::from_secs(10);

/// The delay before the next request if the node still returns the template of the former tip.
const NEW_TIP_AGAIN: Duration = Duration::from_millis(50);

/// A `longpollid` begins with the block hash, of this many hex digits.
const HASH_DIGITS: usize = 64;

/// The member of a template request. bitcoind's errors about its value begin with the name.
const LONG_POLL_ID: &str = "longpollid";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// A template other than that of `id`. `params` lack the id.
    Template { id: String, params: Bytes },
    /// A tip other than `known`, or than the current one.
    NewBlock { known: Option<BlockHash>, limit: Option<Duration> },
    /// This block as tip.
    Block { hash: BlockHash, limit: Option<Duration> },
    /// A tip of at least this height.
    Height { height: u32, limit: Option<Duration> },
}

impl Wait {
    /// `None` if the call is not a long poll, or if the node must check its parameters.
    pub fn of(method: &str, params: &[u8]) -> Option<Self> {
        let names: &[&str] = match method {
            "getblocktemplate" => &["template_request"],
            "waitfornewblock" => &["timeout", "current_tip"],
            "waitforblock" => &["blockhash", "timeout"],
            "waitforblockheight" => &["height", "timeout"],
            _ => return None,
        };
        let arguments = Arguments { values: serde_json::from_slice(params).ok()?, names };
        match method {
            "getblocktemplate" => template(arguments.values),
            "waitfornewblock" => Some(Self::NewBlock { known: arguments.hash(1)?, limit: arguments.limit(0)? }),
            "waitforblock" => Some(Self::Block { hash: arguments.hash(0)??, limit: arguments.limit(1)? }),
            _ => Some(Self::Height { height: int32(arguments.get(0)?)?, limit: arguments.limit(1)? }),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeTip {
    pub hash: BlockHash,
    pub height: u32,
}

pub(crate) struct LongPolls {
    upstream: Arc<Upstream>,
    taps: Arc<dyn Taps>,
    tip: watch::Receiver<NodeTip>,
    stop: watch::Receiver<bool>,
    places: Semaphore,
    /// Requests for templates in flight, by parameters.
    templates: SingleFlight<Bytes, Result<Bytes, Failure>>,
    /// Waits for the host to catch up with the node, by the number of node answers that clients had seen.
    catching_up: SingleFlight<u64, ()>,
}

impl LongPolls {
    /// `most` limits concurrent long polls. `stop` becomes true when the host stops.
    pub fn new(
        upstream: Arc<Upstream>,
        taps: Arc<dyn Taps>,
        tip: watch::Receiver<NodeTip>,
        stop: watch::Receiver<bool>,
        most: usize,
    ) -> Self {
        let (templates, catching_up) = Default::default();
        Self { upstream, taps, tip, stop, places: Semaphore::new(most), templates, catching_up }
    }

    /// Waits, then answers.
    ///
    /// # Errors
    /// 503 for too many long polls; -9 when the host stops or the client closes its sending side; for a template, the
    /// node's error.
    pub async fn answer(&self, wait: Wait, client: Option<&Client>) -> Result<Bytes, Failure> {
        let _place = self.places.try_acquire().map_err(|_| Failure::Overloaded)?;
        let mut stop = self.stop.clone();
        let left = async {
            match client {
                Some(client) => client.sends_no_more().await,
                None => pending().await,
            }
            sleep(HALF_CLOSED_PATIENCE).await;
        };
        tokio::select! {
            answer = self.wait(wait) => answer,
            _ = stop.wait_for(|stop| *stop) => {
                Err(Failure::Rpc(RpcError::new(RpcErrorCode::CLIENT_NOT_CONNECTED, "Shutting down")))
            }
            () = left => Err(Failure::Rpc(half_closed())),
        }
    }

    async fn wait(&self, wait: Wait) -> Result<Bytes, Failure> {
        if let Wait::Template { params, .. } = &wait {
            self.check_template(params).await?;
        }
        self.catch_up().await;
        match wait {
            Wait::Template { id, params } => self.another_template(&id, params).await,
            Wait::NewBlock { known, limit } => {
                let known = known.unwrap_or(self.tip.borrow().hash);
                Ok(self.wait_for_tip(limit, |tip| tip.hash != known).await)
            }
            Wait::Block { hash, limit } => Ok(self.wait_for_tip(limit, |tip| tip.hash == hash).await),
            Wait::Height { height, limit } => Ok(self.wait_for_tip(limit, |tip| tip.height >= height).await),
        }
    }

    /// Updates the tip until it is no older than the blocks that clients have seen.
    async fn catch_up(&self) {
        if let Some(shown) = self.taps.unconfirmed() {
            self.catching_up.run(shown, || self.taps.caught_up()).await;
        }
    }

    async fn wait_for_tip(&self, limit: Option<Duration>, matches: impl Fn(&NodeTip) -> bool) -> Bytes {
        let found = wait_for_tip(self.tip.clone(), limit, &matches).await;
        // The client may have seen a later block in another call meanwhile.
        self.catch_up().await;
        let now = *self.tip.borrow();
        // A block that was the tip only briefly still ends the wait.
        tip_json(if matches(&now) || !matches(&found) { now } else { found })
    }

    /// Refuses a long poll that the node would refuse at once, for example without peers. The host sends an invalid
    /// `longpollid`: the node makes its other checks first, and builds no template.
    async fn check_template(&self, params: &Bytes) -> Result<(), Failure> {
        match whole(&self.upstream, "getblocktemplate", &with_id(params, "")).await {
            Err(Failure::Rpc(error)) if error.message.starts_with(LONG_POLL_ID) => Ok(()),
            // A node that accepts the id returns a template, and the long poll may wait.
            answer => answer.map(drop),
        }
    }

    /// The node's template once it differs from that of `id`.
    async fn another_template(&self, id: &str, params: Bytes) -> Result<Bytes, Failure> {
        let mut tip = self.tip.clone();
        let named: Option<BlockHash> = id.get(..HASH_DIGITS).and_then(|hash| hash.parse().ok());
        let known = named.or(Some(tip.borrow().hash));
        let mut look = Instant::now() + MEMPOOL_AFTER;
        loop {
            let moved = |tip: &NodeTip| Some(tip.hash) != known;
            let is_new = timeout_at(look, tip.wait_for(moved)).await.is_ok();
            let template = self.template(params.clone()).await?;
            if !names_template(&template, id) {
                return Ok(template);
            }
            // The shared request may have begun before the tip moved.
            look = Instant::now() + if is_new { NEW_TIP_AGAIN } else { MEMPOOL_EVERY };
            if is_new {
                sleep_until(look).await;
            }
        }
    }

    /// Requests a template. Concurrent calls with the same parameters share one request.
    async fn template(&self, params: Bytes) -> Result<Bytes, Failure> {
        let (upstream, asked) = (self.upstream.clone(), params.clone());
        let begin = move || async move { whole(&upstream, "getblocktemplate", &asked).await }.boxed();
        self.templates.run(params, begin).await
    }
}

/// A call's arguments, by position or by name.
struct Arguments<'n> {
    values: Value,
    names: &'n [&'n str],
}

impl Arguments<'_> {
    /// Null if omitted. `None` if the parameters are invalid or have unknown members.
    fn get(&self, position: usize) -> Option<&Value> {
        match &self.values {
            Value::Array(values) if values.len() <= self.names.len() => {
                Some(values.get(position).unwrap_or(&Value::Null))
            }
            Value::Object(values) if values.keys().all(|key| self.names.contains(&key.as_str())) => {
                Some(values.get(*self.names.get(position)?).unwrap_or(&Value::Null))
            }
            _ => None,
        }
    }

    fn hash(&self, position: usize) -> Option<Option<BlockHash>> {
        match self.get(position)? {
            Value::Null => Some(None),
            Value::String(text) => text.parse().ok().map(Some),
            _ => None,
        }
    }

    /// In milliseconds; 0 or omitted is no limit.
    fn limit(&self, position: usize) -> Option<Option<Duration>> {
        match self.get(position)? {
            Value::Null => Some(None),
            value => {
                let milliseconds = int32(value)?;
                Some((milliseconds > 0).then(|| Duration::from_millis(milliseconds.into())))
            }
        }
    }
}

/// A number that bitcoind accepts: it reads heights and timeouts as 32-bit integers. `None` also if it is negative.
fn int32(value: &Value) -> Option<u32> {
    i32::try_from(value.as_u64()?).ok().map(i32::unsigned_abs)
}

fn template_request(params: &mut Value) -> Option<&mut Map<String, Value>> {
    let request = match params {
        Value::Array(values) => values.first_mut()?,
        Value::Object(values) => values.get_mut("template_request")?,
        _ => return None,
    };
    request.as_object_mut()
}

/// Adds an id to the parameters of a [`Wait::Template`].
fn with_id(params: &[u8], id: &str) -> Bytes {
    let mut values: Value = serde_json::from_slice(params).unwrap_or_default();
    if let Some(request) = template_request(&mut values) {
        request.insert(LONG_POLL_ID.to_owned(), id.into());
    }
    Bytes::from(values.to_string())
}

fn template(mut values: Value) -> Option<Wait> {
    let request = template_request(&mut values)?;
    // A proposal does not wait.
    if request.get("mode").is_some_and(|mode| !mode.is_null() && mode != "template") {
        return None;
    }
    let id = match request.remove(LONG_POLL_ID)? {
        Value::Null => return None,
        // The node refuses an id of another form at once.
        Value::String(id) => {
            id.get(..HASH_DIGITS)?.parse::<BlockHash>().ok()?;
            id
        }
        // bitcoind treats any other value as the current tip.
        _ => String::new(),
    };
    Some(Wait::Template { id, params: Bytes::from(values.to_string()) })
}

fn names_template(template: &[u8], id: &str) -> bool {
    let member = format!("\"longpollid\":\"{id}\"");
    template.windows(member.len()).any(|window| window == member.as_bytes())
}

/// The first matching tip, or the tip at the end of the limit.
async fn wait_for_tip(
    mut tip: watch::Receiver<NodeTip>,
    limit: Option<Duration>,
    matches: impl Fn(&NodeTip) -> bool,
) -> NodeTip {
    let over = async {
        match limit.and_then(|limit| Instant::now().checked_add(limit)) {
            Some(deadline) => sleep_until(deadline).await,
            None => pending().await,
        }
    };
    tokio::select! {
        // Without a sender the host is stopping.
        found = tip.wait_for(matches) => { let _ = found; }
        () = over => {}
    }
    *tip.borrow()
}

fn tip_json(tip: NodeTip) -> Bytes {
    Bytes::from(json!({"hash": tip.hash.to_string(), "height": tip.height}).to_string())
}

#[cfg(test)]
mod tests {
    use bitcoin::hashes::Hash;

    use super::*;

    #[test]
    fn long_polls_are_recognised() {
        let of = |method: &str, params: Value| Wait::of(method, params.to_string().as_bytes());
        let hash = BlockHash::from_byte_array([7; 32]);
        let second = Some(Duration::from_secs(1));
        assert_eq!(of("waitfornewblock", json!([])), Some(Wait::NewBlock { known: None, limit: None }));
        assert_eq!(
            of("waitfornewblock", json!([1000, hash])),
            Some(Wait::NewBlock { known: Some(hash), limit: second })
        );
        assert_eq!(
            of("waitforblock", json!({"blockhash": hash, "timeout": 0})),
            Some(Wait::Block { hash, limit: None })
        );
        assert_eq!(of("waitforblockheight", json!([5, 1000])), Some(Wait::Height { height: 5, limit: second }));
        // The node refuses these.
        for wrong in [json!([-1]), json!(["x"]), json!([0, "x"]), json!([0, null, 0]), json!({"a": 1})] {
            assert_eq!(of("waitfornewblock", wrong.clone()), None, "{wrong}");
        }
        let (most, over) = (i32::MAX.unsigned_abs(), 1_u64 << 31);
        assert_eq!(of("waitforblockheight", json!([most])), Some(Wait::Height { height: most, limit: None }));
        for (method, wrong) in [
            ("waitforblockheight", json!([over])),
            ("waitforblockheight", json!([5, over])),
            ("waitforblock", json!([hash, over])),
            ("waitfornewblock", json!([1_u64 << 40])),
            ("waitfornewblock", json!([1.0])),
        ] {
            assert_eq!(of(method, wrong.clone()), None, "{method} {wrong}");
        }
        let id = format!("{hash}12");
        let waits = of("getblocktemplate", json!([{"rules": ["segwit"], "longpollid": id}]));
        assert_eq!(waits, Some(Wait::Template { id, params: r#"[{"rules":["segwit"]}]"#.into() }));
        assert_eq!(of("getblocktemplate", json!([{"rules": ["segwit"]}])), None);
        assert_eq!(of("getblocktemplate", json!([{"longpollid": "x"}])), None);
        assert_eq!(of("getblocktemplate", json!([{"longpollid": ""}])), None);
        assert_eq!(of("getblocktemplate", json!([{"longpollid": null}])), None);
        assert!(of("getblocktemplate", json!([{"longpollid": 5, "mode": null}])).is_some());
        assert_eq!(with_id(br#"[{"rules":[]}]"#, ""), r#"[{"rules":[],"longpollid":""}]"#);
        assert_eq!(with_id(br#"{"template_request":{}}"#, ""), r#"{"template_request":{"longpollid":""}}"#,);
        assert!(Wait::of("getblocktemplate", br#"[{"longpoll\u0069d":"x","longpollid":7}]"#).is_some());
        assert_eq!(of("getblock", json!([hash])), None);
    }

    #[tokio::test(start_paused = true)]
    async fn tip_is_awaited_until_the_limit() {
        let (first, second) = (BlockHash::all_zeros(), BlockHash::from_byte_array([1; 32]));
        let (sender, tip) = watch::channel(NodeTip { hash: first, height: 1 });
        let limit = Some(Duration::from_secs(5));
        assert_eq!(wait_for_tip(tip.clone(), limit, |tip| tip.height > 1).await.height, 1);
        let waiting = tokio::spawn(wait_for_tip(tip, None, move |tip| tip.hash == second));
        tokio::task::yield_now().await;
        sender.send_replace(NodeTip { hash: second, height: 2 });
        assert_eq!(waiting.await.unwrap().height, 2);
    }
}
