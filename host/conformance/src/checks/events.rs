//! Sends many events while calls run.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use outrigger_sdk::manifest::WrapperKind;
use outrigger_service::events::{Event, RescanOutcome};

use super::Outcome;
use crate::arguments;
use crate::session::{Harness, Session};

/// How often each kind of event is sent.
const ROUNDS: u32 = 200;

/// Sends events from another thread while this one makes calls. The plugin receives only the topics of its manifest, its timers, and
/// calls if it observes.
pub fn events(session: &Session<'_>) -> Outcome {
    let harness = session.bring_up()?;
    std::thread::scope(|scope| {
        scope.spawn(|| (0..ROUNDS).for_each(|round| harness.tell(&all_kinds(session, &harness, round))));
        for (method, set) in session.calls(arguments::few) {
            harness.call(method, &set);
        }
    });
    let calls = harness.calls();
    harness.tell(&[Event::ShuttingDown]);
    harness.finish();
    let asked = match session.manifest().events.as_slice() {
        [] => "none asked for".to_owned(),
        topics => format!("asked for: {}", topics.join(" ")),
    };
    Ok(format!("{ROUNDS} of each kind beside {calls} calls; {asked}"))
}

fn all_kinds(session: &Session<'_>, harness: &Harness<'_>, round: u32) -> Vec<Event> {
    let hash = harness.behind.chain.mine(vec![]);
    let txid = Txid::from_byte_array(hash.to_byte_array());
    let is_odd = round % 2 == 1;
    let wallet = if is_odd { "ä wallet that is not loaded".to_owned() } else { "check".to_owned() };
    let outcome = match round % 3 {
        0 => RescanOutcome::Complete,
        1 => RescanOutcome::Unreadable { block_time: round },
        _ => RescanOutcome::Aborted,
    };
    let timers = session.manifest().timers.iter().map(|timer| Event::Timer { name: timer.name.clone() });
    let ended = (session.manifest().wrapper == Some(WrapperKind::Observe)).then(|| Event::CallEnded {
        method: "getblockcount".to_owned(),
        user: "check".to_owned(),
        wallet: Some(wallet.clone()),
        code: -i32::from(is_odd),
        microseconds: u64::from(round),
    });
    let subscribed = [
        Event::TipChanged { hash, height: round },
        Event::MempoolChanged { sequence: u64::from(round) },
        Event::WalletTransaction { wallet: wallet.clone(), txid },
        Event::RescanFinished {
            wallet: wallet.clone(),
            rescan: u64::from(round),
            outcome,
            last_height: Some(round),
            widened: is_odd,
        },
        Event::WalletLockChanged { wallet: wallet.clone(), locked: is_odd },
        Event::WalletLogged { wallet: wallet.clone(), last: u64::from(round) },
        Event::WalletReorganised { wallet, blocks: round, transactions: vec![txid] },
    ];
    subscribed.into_iter().chain(timers).chain(ended).collect()
}
