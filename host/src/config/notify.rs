//! What is told to others: messages over ZMQ, and programs that are started. The keys are bitcoind's.

use outrigger_zmq::{BadZmqEndpoint, ZmqEndpoint};
use serde::{Deserialize, Deserializer};

/// How many messages wait for a subscriber where nothing is configured, as in bitcoind.
const HIGH_WATER_MARK: u32 = 1000;

/// What bitcoind writes before the path of a Unix domain socket, and what ZMQ does.
const UNIX: &str = "unix:";
const IPC: &str = "ipc://";

/// What is published.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topic {
    /// The hash of a new tip.
    HashBlock,
    /// The id of a transaction that enters the mempool, or a block that is connected or disconnected.
    HashTx,
    /// A new tip as a whole.
    RawBlock,
    /// Such a transaction as a whole.
    RawTx,
    /// What came and what left, blocks and transactions.
    Sequence,
}

impl Topic {
    /// What its messages begin with.
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

/// One topic at one address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Publication {
    /// What is published.
    pub topic: Topic,
    /// Where, as it is told.
    pub address: String,
    /// Where.
    pub endpoint: ZmqEndpoint,
    /// How many messages wait for a subscriber; further ones are dropped.
    pub high_water_mark: u32,
}

/// What is told to others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyConfig {
    /// Where the hashes of new tips are published: an endpoint, or several.
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubhashblock: Vec<String>,
    /// Where the ids of transactions are.
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubhashtx: Vec<String>,
    /// Where new tips are.
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubrawblock: Vec<String>,
    /// Where transactions are.
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubrawtx: Vec<String>,
    /// Where the order of blocks and transactions is.
    #[serde(deserialize_with = "one_or_several")]
    pub zmqpubsequence: Vec<String>,
    /// How many messages of each wait for a subscriber; further ones are dropped.
    pub zmqpubhashblockhwm: u32,
    /// See there.
    pub zmqpubhashtxhwm: u32,
    /// See there.
    pub zmqpubrawblockhwm: u32,
    /// See there.
    pub zmqpubrawtxhwm: u32,
    /// See there.
    pub zmqpubsequencehwm: u32,
    /// The program, and its arguments, that is started at a new tip; `%s` is its hash.
    pub blocknotify: Vec<String>,
    /// The one at a change of a wallet's transaction: `%s` is its id, `%w` the wallet, `%b` the block and `%h` its height.
    pub walletnotify: Vec<String>,
    /// The one that is started when the host is ready.
    pub startupnotify: Vec<String>,
    /// The one when it begins to stop, which waits for its end.
    pub shutdownnotify: Vec<String>,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        let [zmqpubhashblock, zmqpubhashtx, zmqpubrawblock, zmqpubrawtx, zmqpubsequence] = Default::default();
        let [blocknotify, walletnotify, startupnotify, shutdownnotify] = Default::default();
        Self {
            zmqpubhashblock,
            zmqpubhashtx,
            zmqpubrawblock,
            zmqpubrawtx,
            zmqpubsequence,
            zmqpubhashblockhwm: HIGH_WATER_MARK,
            zmqpubhashtxhwm: HIGH_WATER_MARK,
            zmqpubrawblockhwm: HIGH_WATER_MARK,
            zmqpubrawtxhwm: HIGH_WATER_MARK,
            zmqpubsequencehwm: HIGH_WATER_MARK,
            blocknotify,
            walletnotify,
            startupnotify,
            shutdownnotify,
        }
    }
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

    /// What is published where.
    ///
    /// # Errors
    /// The key of an address that is none, and why.
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

    /// The keys of the high-water marks with their values.
    pub fn high_water_marks(&self) -> [(&'static str, u64); 5] {
        [
            ("notify.zmqpubhashblockhwm", self.zmqpubhashblockhwm.into()),
            ("notify.zmqpubhashtxhwm", self.zmqpubhashtxhwm.into()),
            ("notify.zmqpubrawblockhwm", self.zmqpubrawblockhwm.into()),
            ("notify.zmqpubrawtxhwm", self.zmqpubrawtxhwm.into()),
            ("notify.zmqpubsequencehwm", self.zmqpubsequencehwm.into()),
        ]
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

    #[test]
    fn publications_are_in_bitcoinds_order_with_zmqs_addresses() {
        let config: NotifyConfig = toml::from_str(
            "zmqpubsequence = 'unix:/run/b'\nzmqpubhashtx = ['tcp://127.0.0.1:1', 'tcp://[::1]:2']\nzmqpubhashtxhwm = 5",
        )
        .unwrap();
        let told = config.publications().unwrap();
        let told: Vec<_> = told.iter().map(|one| (one.topic.name(), &*one.address, one.high_water_mark)).collect();
        let expected = [
            ("hashtx", "tcp://127.0.0.1:1", 5),
            ("hashtx", "tcp://[::1]:2", 5),
            ("sequence", "ipc:///run/b", HIGH_WATER_MARK),
        ];
        assert_eq!(told, expected);
        let wrong: NotifyConfig = toml::from_str("zmqpubrawtx = 'localhost'").unwrap();
        assert_eq!(wrong.publications().unwrap_err().0, "zmqpubrawtx");
    }
}
