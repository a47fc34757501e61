//! Coalesces short calls into batches while a request is in flight.
//!
//! A request costs the node several times as much as a short call. So a call that arrives while its thread has a
//! request in flight waits for that request, then goes in a batch with all others that arrived meanwhile. Batches grow
//! with the load. A call without a request in flight does not wait, and none waits longer than [`PATIENCE`].

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outrigger_rpc::{Call, Failure, ResultText};
use outrigger_upstream::Upstream;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::batch::forward_all;
use super::forward::forward;

/// How long a call waits for a request in flight: the node may be slow or gone.
const PATIENCE: Duration = Duration::from_millis(1);

/// The most calls in a batch: each waits for all of them.
const MAX_TOGETHER: usize = 64;

/// The longest parameters of a batched call, in bytes.
const MAX_PARAMS: usize = 512;

/// The path of all batched calls. Calls to the node's wallets have other paths.
const PATH: &str = "/";

type Answer = Result<ResultText, Failure>;

thread_local! {
    /// This thread's instances, by the address of their node, which they keep alive. A batch across threads would have to
    /// wake each of them.
    static OF_THREAD: RefCell<HashMap<*const Upstream, Arc<Gather>>> = RefCell::default();
}

/// Whether a call may go in a batch: it has the common path and short parameters, and no plugin was asked about it.
pub(crate) fn may_gather(path: &str, call: &Call) -> bool {
    call.through.is_empty() && path == PATH && call.params.as_bytes().len() <= MAX_PARAMS
}

/// Calls a short method of the node without effects.
pub(crate) async fn forward_gathered(upstream: &Arc<Upstream>, call: &Call) -> Answer {
    let gather = Gather::of_thread(upstream);
    let Some(mut answer) = gather.enter(call) else {
        let _under_way = UnderWay(gather);
        return forward(upstream, PATH, &call.method, call.params.as_bytes(), false).await;
    };
    let answered = match timeout(PATIENCE, &mut answer).await {
        Ok(answered) => answered,
        Err(_) => {
            gather.send_waiting();
            answer.await
        }
    };
    // The sender is dropped only when the host stops.
    answered.unwrap_or(Err(Failure::Overloaded))
}

struct Waiting {
    call: Call,
    answer: oneshot::Sender<Answer>,
}

#[derive(Default)]
struct GatherState {
    under_way: usize,
    waiting: Vec<Waiting>,
}

struct Gather {
    upstream: Arc<Upstream>,
    state: Mutex<GatherState>,
}

impl Gather {
    /// This thread's instance for a node. A call keeps its instance, since it may end on another thread.
    fn of_thread(upstream: &Arc<Upstream>) -> Arc<Self> {
        let new = || Arc::new(Self { upstream: upstream.clone(), state: Mutex::default() });
        OF_THREAD.with_borrow_mut(|all| all.entry(Arc::as_ptr(upstream)).or_insert_with(new).clone())
    }

    /// Queues a call while a request is in flight, and returns the receiver of its answer. `None` if the caller must send
    /// it at once.
    fn enter(&self, call: &Call) -> Option<oneshot::Receiver<Answer>> {
        let mut state = self.state.lock();
        if state.under_way == 0 {
            state.under_way = 1;
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push(Waiting { call: call.clone(), answer: sender });
        Some(receiver)
    }

    /// Sends the waiting calls whose clients are still there.
    fn send_waiting(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        let group: Vec<Waiting> = {
            let mut state = self.state.lock();
            state.waiting.retain(|waiting| !waiting.answer.is_closed());
            let count = state.waiting.len().min(MAX_TOGETHER);
            if count == 0 {
                return;
            }
            state.under_way += 1;
            state.waiting.drain(..count).collect()
        };
        let under_way = UnderWay(self.clone());
        runtime.spawn(async move { under_way.0.send(group).await });
    }

    async fn send(&self, group: Vec<Waiting>) {
        let (calls, senders): (Vec<Call>, Vec<_>) = group.into_iter().map(|one| (one.call, one.answer)).unzip();
        let answers = match &*calls {
            [call] => vec![forward(&self.upstream, PATH, &call.method, call.params.as_bytes(), false).await],
            calls => forward_all(&self.upstream, PATH, calls).await,
        };
        for (sender, answer) in senders.into_iter().zip(answers) {
            // The client may have gone.
            let _ = sender.send(answer);
        }
    }
}

/// A request in flight. Dropping it sends the waiting calls.
struct UnderWay(Arc<Gather>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.state.lock().under_way -= 1;
        self.0.send_waiting();
    }
}

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;
    use std::slice;

    use outrigger_rpc::{Origin, Params};
    use outrigger_upstream::Login;
    use serde_json::Value;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::sync::Notify;

    use super::*;

    /// The method that the node forbids (`-rpcwhitelist`), and the parameter of its call.
    const FORBIDDEN: (&str, u64) = ("getnettotals", 9);

    /// A node that answers each call with its parameter, and delays the answer to parameter 0 until `go`.
    #[derive(Default)]
    struct FakeNode {
        came: Notify,
        go: Notify,
        requests: Mutex<Vec<Value>>,
    }

    impl FakeNode {
        async fn start() -> (Arc<Self>, Arc<Upstream>, tempfile::TempDir) {
            let folder = tempfile::tempdir().unwrap();
            let cookie = folder.path().join("cookie");
            std::fs::write(&cookie, "__cookie__:one").unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
            let node = Arc::<Self>::default();
            let accepting = node.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(accepting.clone().serve(stream));
                }
            });
            (node, Arc::new(Upstream::new(endpoint, Login::Cookie(cookie), 16)), folder)
        }

        async fn serve(self: Arc<Self>, mut stream: TcpStream) {
            while let Some(request) = read(&mut stream).await {
                // In bitcoind's form.
                let answered = |call: &Value| format!("{{\"result\":{},\"error\":null,\"id\":1}}", call["params"][0]);
                self.requests.lock().push(request.clone());
                let calls = request.as_array().map_or(slice::from_ref(&request), Vec::as_slice);
                if calls.iter().any(|call| call["method"] == FORBIDDEN.0) {
                    let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
                    stream.write_all(refusal).await.unwrap();
                    continue;
                }
                let body = match &request {
                    Value::Array(calls) => {
                        format!("[{}]\n", calls.iter().map(answered).collect::<Vec<_>>().join(","))
                    }
                    call => {
                        if call["params"][0] == 0 {
                            self.came.notify_one();
                            self.go.notified().await;
                        }
                        answered(call) + "\n"
                    }
                };
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all((head + &body).as_bytes()).await.unwrap();
            }
        }
    }

    async fn read(stream: &mut TcpStream) -> Option<Value> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let (_, length) = head.split_once("content-length: ").unwrap();
        let mut body = vec![0; length.lines().next().unwrap().parse().unwrap()];
        stream.read_exact(&mut body).await.ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// Calls with this number, and expects it as the answer, or the refusal of the forbidden method.
    fn ask(upstream: &Arc<Upstream>, number: u64) -> tokio::task::JoinHandle<()> {
        let upstream = upstream.clone();
        tokio::spawn(async move {
            let params = Params::from_text(&format!("[{number}]"));
            let origin = Arc::new(Origin::of_user("a"));
            let is_forbidden = number == FORBIDDEN.1;
            let call = Call {
                progress: None,
                held: None,
                method: if is_forbidden { FORBIDDEN.0 } else { "getblockhash" }.to_owned(),
                params,
                origin,
                may_stream: true,
                through: Vec::new(),
                makers: 0,
                nested: None,
            };
            match forward_gathered(&upstream, &call).await {
                Ok(ResultText::Bytes(text)) if !is_forbidden => assert_eq!(text, number.to_string()),
                Err(Failure::Forbidden) if is_forbidden => {}
                _ => panic!("{number} has another answer"),
            }
        })
    }

    #[tokio::test]
    async fn calls_are_batched_while_a_request_is_in_flight() {
        let (node, upstream, _folder) = FakeNode::start().await;
        let first = ask(&upstream, 0);
        node.came.notified().await;
        let others: Vec<_> = (1..=5).map(|number| ask(&upstream, number)).collect();
        let gone = ask(&upstream, 6);
        tokio::task::yield_now().await;
        gone.abort();
        // They do not wait for the first call: the node may be slow.
        for call in others {
            call.await.unwrap();
        }
        node.go.notify_one();
        first.await.unwrap();
        ask(&upstream, 7).await.unwrap();
        // The node refuses a batch as a whole for a forbidden method. Only the call of that method is refused to its client.
        let first = ask(&upstream, 0);
        node.came.notified().await;
        for call in [8, 9, 10].map(|number| ask(&upstream, number)) {
            call.await.unwrap();
        }
        node.go.notify_one();
        first.await.unwrap();
        let requests = node.requests.lock();
        let asked = |request: &Value| -> Vec<Value> {
            let calls = request.as_array().cloned().unwrap_or_else(|| vec![request.clone()]);
            calls.iter().map(|call| call["params"][0].clone()).collect()
        };
        let asked: Vec<_> = requests.iter().map(asked).collect();
        let numbers = |range: RangeInclusive<u64>| range.map(Value::from).collect::<Vec<_>>();
        assert_eq!(asked[..5], [0..=0, 1..=5, 7..=7, 0..=0, 8..=10].map(numbers));
        assert!(requests[2].is_object(), "a single call is not sent as a batch");
        let mut alone = asked[5..].concat();
        alone.sort_by_key(Value::as_u64);
        assert_eq!((alone, asked.len()), (numbers(8..=10), 8));
    }
}
