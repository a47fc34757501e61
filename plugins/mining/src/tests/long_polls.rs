use super::*;

fn long_poll(plugin: &TestPlugin<MiningPlugin>, id: Value) -> PendingCall {
    plugin.begin("getblocktemplate", json!([{"rules": ["segwit"], "longpollid": id}]))
}

/// Waits up to ten seconds for an answer from another thread.
fn eventually(call: &PendingCall) -> Option<Result<Value, RpcError>> {
    let end = Instant::now() + Duration::from_secs(10);
    while call.answer().is_none() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    call.answer()
}

#[test]
fn getblocktemplate_longpoll_ignores_an_outdated_tip_event() {
    let host = StubHost::new();
    let plugin = start(&host);
    let old = host.chain.mine(vec![]);
    host.chain.mine(vec![]);
    let call = long_poll(&plugin, template(&plugin)["longpollid"].clone());
    plugin.tell(Event::TipChanged { hash: old, height: 1 });
    assert!(call.answer().is_none());
    plugin.stop();
}

#[test]
fn getblocktemplate_longpoll_ends_at_the_check_after_a_change_of_the_mempool() {
    let host = StubHost::new();
    let options = json!({"longpoll_mempool_wait_seconds": 0, "longpoll_mempool_repeat_seconds": 1});
    let plugin: TestPlugin<MiningPlugin> = host.start(options);
    let call = long_poll(&plugin, template(&plugin)["longpollid"].clone());
    std::thread::sleep(Duration::from_millis(200));
    assert!(call.answer().is_none());
    host.mempool.add(spend(OutPoint::new(Txid::all_zeros(), 0)), Amount::from_sat(100));
    assert!(eventually(&call).unwrap().is_ok());
    plugin.stop();
}

#[test]
fn getblocktemplate_longpoll_is_dropped_when_its_client_disconnects() {
    let host = StubHost::new();
    let plugin = start(&host);
    let id = template(&plugin)["longpollid"].clone();
    let (kept, gone) = (long_poll(&plugin, id.clone()), long_poll(&plugin, id));
    plugin.cancel(&gone);
    let hash = host.chain.mine(vec![]);
    host.chain.disconnect();
    plugin.tell(Event::TipChanged { hash, height: 1 });
    assert!(kept.answer().is_none());
    plugin.tell(Event::ShuttingDown);
    assert_eq!(kept.answer().unwrap().unwrap_err().code.0, -9);
    assert_ne!(gone.answer().map(|outcome| outcome.unwrap_err().code.0), Some(-9));
    plugin.stop();
}

#[test]
fn getblocktemplate_longpoll_ends_with_a_template_when_the_instance_is_replaced() {
    let host = StubHost::new();
    let plugin = start(&host);
    let template = template(&plugin);
    let id = template["longpollid"].clone();
    let kept = long_poll(&plugin, id.clone());
    let without_segwit = plugin.begin("getblocktemplate", json!([{"longpollid": id.clone()}]));
    plugin.quiesce();
    assert_eq!(kept.answer().unwrap().unwrap()["longpollid"], id);
    assert_eq!(without_segwit.answer().unwrap().unwrap_err().code.0, -8);
    assert_eq!(long_poll(&plugin, id.clone()).answer().unwrap().unwrap()["longpollid"], id);
    plugin.stop();
}
