//! Disturbances during the load: reloads of the configuration, crashes of an isolated plugin, restarts of the node.

use std::sync::atomic::Ordering;
use std::time::Duration;

use outrigger_tests::{Bitcoind, Gate, built, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::Load;
use super::calls::{Caller, Way};

/// How often the configuration changes and the plugin's process is killed, and how often the node restarts.
const TROUBLE_EVERY: Duration = Duration::from_secs(5);
/// The plugin's option changes in one of this many reloads. The host keeps a few KiB of each instance for good.
const OPTION_EVERY: u64 = 5;
const RESTART_EVERY: Duration = Duration::from_secs(20);

/// The part of the configuration that changes: a user's rights, and the option of an isolated plugin.
pub(super) fn changing(number: u64, gate: &Gate) -> String {
    let (file, rights) = (built().library("outrigger_faulty").display(), ["getblockcount", "uptime"]);
    let (salt, hmac, reach) = ("0123456789abcdef", "0".repeat(64), Gate::reach(&[gate]));
    let label = number / OPTION_EVERY;
    let method = if number.is_multiple_of(2) { rights[0] } else { rights[1] };
    format!(
        "[[rpc.users]]\nrpcauth = \"alice:{salt}${hmac}\"\nmethods = [\"{method}\"]\n\n[[plugins]]\nfile = \"{file}\"\nisolated = true\n\
         sandbox = \"best-effort\"\n{reach}grants = [\"chain/1\", \"log/1\"]\noptions = {{ label = \"{label}\" }}\n"
    )
}

impl Load {
    /// Reloads changed settings, alternately with the method and SIGHUP, and kills the plugin's process each time during a call.
    pub(super) fn reload_and_kill(&self) {
        let mut client = self.caller(Way::Tls, "");
        for number in 1.. {
            std::thread::sleep(TROUBLE_EVERY);
            if !self.goes_on() {
                return;
            }
            std::fs::write(self.host.config_file().path(), self.text.clone() + &changing(number, &self.gate)).unwrap();
            if number.is_multiple_of(2) {
                client.call("reload", json!([]));
            } else {
                self.host.hang_up();
            }
            let label = json!((number / OPTION_EVERY).to_string());
            wait_for("the plugin has its new option", || {
                client.call("faultwho", json!([])).filter(|who| who["label"] == label)
            });
            self.reloads.fetch_add(1, Ordering::Relaxed);
            let former = pid(&mut client);
            self.tally.kills.fetch_add(1, Ordering::Relaxed);
            std::thread::scope(|scope| {
                scope.spawn(|| self.caller(Way::Tls, "").call("faultblocked", json!([self.gate.address()])));
                let _at_the_plugin = self.gate.wait();
                kill_process(former, Signal::KILL).unwrap();
            });
            wait_for("the plugin has another process", || {
                let plugins = client.call("listplugins", json!([]))?;
                pid_in(&plugins).filter(|pid| *pid != former)
            });
        }
    }

    /// Stops the node cleanly, and starts it again.
    pub(super) fn restart_node(&self, node: &mut Bitcoind) {
        while self.goes_on() {
            std::thread::sleep(RESTART_EVERY);
            self.tally.node_goes();
            node.stop();
            node.start_again();
            self.tally.node_is_back();
        }
    }
}

fn pid(client: &mut Caller<'_>) -> Pid {
    wait_for("the plugin has a process", || pid_in(&client.call("listplugins", json!([]))?))
}

fn pid_in(plugins: &Value) -> Option<Pid> {
    let faulty = plugins.as_array()?.iter().find(|plugin| plugin["id"] == "faulty")?;
    Pid::from_raw(i32::try_from(faulty["pid"].as_i64()?).ok()?)
}
