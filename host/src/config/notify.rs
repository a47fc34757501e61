//! Notifications: ZMQ messages, and started programs. The keys are bitcoind's.

use std::path::Path;

use outrigger_zmq::{BadZmqEndpoint, ZmqEndpoint};
use rustix::fs::{Access, access};
use serde::{Deserialize, Deserializer};

use super::paths::program;

/// bitcoind's prefix of a Unix domain socket, and ZMQ's.
const UNIX: &str = "unix:";
const IPC: &str = "ipc://";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    HashBlock,
    /// The id of a transaction in the mempool, or in a connected or disconnected block.
    HashTx,
    /// The block of a new tip.
    RawBlock,
    /// The transaction itself.
    RawTx,
    /// Additions and removals of blocks and transactions, in order.
    Sequence,
}

impl Topic {
    /// The first part of its messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::HashBlock => "hashblock",
            Self::HashTx => "hashtx",
            Self::RawBlock => "rawblock",
            Self::RawTx => "rawtx",
            Self::Sequence => "sequence",
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publication {
    pub topic: Topic,
    pub address: String,
    pub endpoint: ZmqEndpoint,
    /// The most messages queued for a subscriber; further ones are dropped.
    pub high_water_mark: u32,
}

#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// The endpoint or endpoints for the hashes of new tips.
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubhashblock: Vec<String>,
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubhashtx: Vec<String>,
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubrawblock: Vec<String>,
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubrawtx: Vec<String>,
    /// For additions and removals of blocks and transactions, in order.
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubsequence: Vec<String>,
    /// The most messages queued for a subscriber; further ones are dropped.
    pub zmqpubhashblockhwm: u32,
    pub zmqpubhashtxhwm: u32,
    pub zmqpubrawblockhwm: u32,
    pub zmqpubrawtxhwm: u32,
    pub zmqpubsequencehwm: u32,
    /// The program, and its arguments, that is started at a new tip; `%s` is its hash.
    #[serde(deserialize_with = "program")]
    pub blocknotify: Vec<String>,
    /// At a change of a wallet's transaction: `%s` is its id, `%w` the wallet, `%b` the block and `%h` its height.
    #[serde(deserialize_with = "program")]
    pub walletnotify: Vec<String>,
    #[serde(deserialize_with = "program")]
    pub startupnotify: Vec<String>,
    /// When the host begins to stop; it waits for the program's end.
    #[serde(deserialize_with = "program")]
    pub shutdownnotify: Vec<String>,
}

impl NotifyConfig {
    /// All topics with their keys and settings, in the order in which bitcoind serves them.
    fn topics(&self) -> [(Topic, &'static str, &[String], u32); 5] {
        [
            (Topic::HashBlock, "zmqpubhashblock", &self.zmqpubhashblock, self.zmqpubhashblockhwm),
            (Topic::HashTx, "zmqpubhashtx", &self.zmqpubhashtx, self.zmqpubhashtxhwm),
            (Topic::RawBlock, "zmqpubrawblock", &self.zmqpubrawblock, self.zmqpubrawblockhwm),
            (Topic::RawTx, "zmqpubrawtx", &self.zmqpubrawtx, self.zmqpubrawtxhwm),
            (Topic::Sequence, "zmqpubsequence", &self.zmqpubsequence, self.zmqpubsequencehwm),
        ]
    }

    /// The configured publications.
    ///
    /// # Errors
    /// The key of an invalid address, and the reason.
    pub fn publications(&self) -> Result<Vec<Publication>, (&'static str, BadZmqEndpoint)> {
        let mut publications = Vec::new();
        for (topic, key, addresses, high_water_mark) in self.topics() {
            for address in addresses {
                let address = match address.strip_prefix(UNIX) {
                    Some(path) => format!("{IPC}{path}"),
                    None => address.clone(),
                };
                let endpoint = address.parse().map_err(|error| (key, error))?;
                publications.push(Publication { topic, address, endpoint, high_water_mark });
            }
        }
        Ok(publications)
    }

    /// The key of a program that cannot be started, and the reason.
    pub fn program_fault(&self) -> Option<(&'static str, String)> {
        let programs = [
            ("blocknotify", &self.blocknotify),
            ("walletnotify", &self.walletnotify),
            ("startupnotify", &self.startupnotify),
            ("shutdownnotify", &self.shutdownnotify),
        ];
        let set = programs.into_iter().filter_map(|(key, words)| Some((key, words.first()?)));
        let mut missing = set.filter(|(_, program)| !is_program(program));
        missing.next().map(|(key, program)| {
            let advice =
                "write a list of a program and its arguments, each as a separate string, since no shell splits them";
            (key, format!("there is no program '{program}'; {advice}"))
        })
    }

    /// The keys of the high-water marks with their values.
    pub fn high_water_marks(&self) -> [(String, u64); 5] {
        self.topics().map(|(_, key, _, mark)| (format!("notify.{key}hwm"), mark.into()))
    }
}

/// Whether the system finds a program of this name, as a path or in `PATH`.
fn is_program(name: &str) -> bool {
    let is_executable = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    match name.contains('/') {
        true => is_executable(Path::new(name)),
        false => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            !name.is_empty() && std::env::split_paths(&folders).any(|folder| is_executable(&folder.join(name)))
        }
    }
}

fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected an endpoint as \"tcp://127.0.0.1:28332\", or a list of these")]
    enum Addresses {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Addresses::deserialize(deserializer)? {
        Addresses::One(address) => vec![address],
        Addresses::Several(addresses) => addresses,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_program(line: &str) -> Option<(&'static str, String)> {
        toml::from_str::<NotifyConfig>(line).unwrap().program_fault()
    }

    #[test]
    fn publications_are_in_bitcoinds_order_with_zmqs_addresses() {
        let config: NotifyConfig = toml::from_str(
            "zmqpubsequence = 'unix:/run/b'\nzmqpubsequencehwm = 7\n\
             zmqpubhashtx = ['tcp://127.0.0.1:1', 'tcp://[::1]:2']\nzmqpubhashtxhwm = 5",
        )
        .unwrap();
        let told = config.publications().unwrap();
        let told: Vec<_> = told.iter().map(|one| (one.topic.name(), &*one.address, one.high_water_mark)).collect();
        let expected =
            [("hashtx", "tcp://127.0.0.1:1", 5), ("hashtx", "tcp://[::1]:2", 5), ("sequence", "ipc:///run/b", 7)];
        assert_eq!(told, expected);
        assert_eq!(told_program("blocknotify = ['sh', '-c', 'true']"), None);
        assert_eq!(told_program("startupnotify = ['/bin/sh']"), None);
        for wrong in ["sh -c true", "", "/nonexistent", "/"] {
            let (key, reason) = told_program(&format!("walletnotify = ['{wrong}']")).unwrap();
            assert!(key == "walletnotify" && reason.starts_with(&format!("there is no program '{wrong}'")), "{reason}");
        }
        let wrong: NotifyConfig = toml::from_str("zmqpubrawtx = 'localhost'").unwrap();
        assert_eq!(wrong.publications().unwrap_err().0, "zmqpubrawtx");
    }
}
