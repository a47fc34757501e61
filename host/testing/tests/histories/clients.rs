use std::time::{Duration, Instant};

use outrigger_service::events::Event;
use outrigger_service::wallet::{ImportOutcome, Ownership};
use serde_json::json;

use super::cast::Late;
use super::world::{World, nth};

impl World {
    pub fn abandon(&mut self, number: usize) -> Result<(), String> {
        let Some(named) = nth(self.made.clone(), number) else { return Ok(()) };
        let expected = self.naive.abandon(named.txid).map(|()| "null".to_owned()).map_err(str::to_owned);
        let answer = self.ask("abandontransaction", json!([named.txid.to_string()]));
        if answer == expected { Ok(()) } else { Err(format!("abandontransaction: {answer:?}, wanted {expected:?}")) }
    }

    pub fn label(&mut self, role: usize, label: &str) {
        let role = &self.roles[role];
        self.view().wallet().set_label(role.script.clone(), label.into()).unwrap();
        if let Some(address) = role.address_script.clone() {
            self.naive.labels.insert(address, label.into());
        }
    }

    pub fn remark(&mut self, which: usize, key: &str, value: &str) {
        let Some(met) = nth(&self.naive.met, which) else { return };
        let txid = met.named.txid;
        self.view().wallet().set_metadata(txid, key.into(), value.into()).unwrap();
        let remarks = self.naive.remarks.entry(txid).or_default();
        remarks.remove(key);
        if !value.is_empty() {
            remarks.insert(key.into(), value.into());
        }
    }

    pub fn import(&mut self, late: Late) {
        let outcome = self.view().wallet().import(vec![late.import]).unwrap().remove(0);
        if let Some(role) = late.unless_spendable
            && self.naive.owned.get(&self.roles[role].script).is_some_and(|(own, _)| *own == Ownership::Spendable)
        {
            assert_eq!(outcome, ImportOutcome::AlreadyOwned { script: self.roles[role].script.clone() });
            return;
        }
        assert_eq!(outcome, ImportOutcome::Imported { missing_private_keys: false, unknown_output_type: false });
        if late.activates {
            self.naive.next_index = Some(0);
        }
        for owned in late.owned {
            self.naive.own(&self.roles[owned.role].script.clone(), owned.ownership, owned.parent);
        }
        if let Some((role, label)) = late.label
            && let Some(address) = self.roles[role].address_script.clone()
        {
            self.naive.labels.insert(address, label.into());
        }
    }

    pub fn rescan(&mut self) {
        let view = self.view();
        let rescan = view.wallet().rescan_reserve().unwrap();
        view.wallet().rescan_start(rescan, 0).unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        let ended = |event: &Event| matches!(event, Event::RescanFinished { rescan: number, .. } if *number == rescan);
        while !self.host.take_events().iter().any(ended) {
            assert!(Instant::now() < deadline, "the rescan does not end");
            std::thread::sleep(Duration::from_micros(200));
        }
        self.naive.rescan(self.now());
    }
}
