//! Floods of events while calls run: those that the manifest asks for, the others, and some that no host of today sends.

use bitcoin::Txid;
use bitcoin::hashes::Hash;
use outrigger_service::events::{Event, RescanOutcome};
use outrigger_service::wire;

use super::Outcome;
use crate::arguments;
use crate::session::{Harness, Session, Shape};

/// How often every kind of event is told.
const ROUNDS: u32 = 200;

/// Events of a kind that does not exist, cut off, and empty.
const UNKNOWN: [&[u8]; 3] = [&[0xfe, 1, 2, 3], &[0, 7], &[]];

/// The events, from one thread as a host tells them, while another makes calls.
pub fn events(session: &Session<'_>) -> Outcome {
    let Some(harness) = session.bring_up(Shape::USUAL) else { return Outcome::Done("it does not start".to_owned()) };
    std::thread::scope(|scope| {
        scope.spawn(|| flood(&harness));
        for method in session.methods() {
            for set in arguments::few(method)
                .iter()
                .chain(&arguments::extra(&method.name, &session.job.calls).collect::<Vec<_>>())
            {
                harness.probe.call(&method.name, set);
            }
        }
    });
    let calls = harness.probe.host.calls();
    tell(&harness, &Event::ShuttingDown);
    session.finish(harness);
    let asked = match session.file.manifest.events.as_slice() {
        [] => "none asked for".to_owned(),
        topics => format!("asked for: {}", topics.join(" ")),
    };
    Outcome::Done(format!("{ROUNDS} of each kind beside {calls} calls; {asked}"))
}

fn flood(harness: &Harness<'_>) {
    for round in 0..ROUNDS {
        let hash = harness.behind.chain.mine(vec![]);
        let txid = Txid::from_byte_array(hash.to_byte_array());
        let wallet = if round % 2 == 0 { "check".to_owned() } else { "ä wallet that is not loaded".to_owned() };
        let outcome = match round % 3 {
            0 => RescanOutcome::Complete,
            1 => RescanOutcome::Unreadable { block_time: round },
            _ => RescanOutcome::Aborted,
        };
        for event in [
            Event::TipChanged { hash, height: round },
            Event::MempoolChanged { sequence: u64::from(round) },
            Event::WalletTransaction { wallet: wallet.clone(), txid },
            Event::RescanFinished {
                wallet: wallet.clone(),
                rescan: u64::from(round),
                outcome,
                last_height: Some(round),
                widened: round % 2 == 1,
            },
            Event::WalletLockChanged { wallet, locked: round % 2 == 1 },
        ] {
            tell(harness, &event);
        }
    }
    for bytes in UNKNOWN {
        harness.probe.event(bytes, "of an unknown kind");
    }
}

fn tell(harness: &Harness<'_>, event: &Event) {
    harness.probe.event(&wire::to_bytes(event), event.topic().unwrap_or("shutdown"));
}
