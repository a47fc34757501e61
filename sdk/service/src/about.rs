//! `host/1`: what the host tells each plugin of itself and of the plugin. Every plugin has it, without a grant.
//!
//! The example `folder` of the SDK shows it in use.

use bitcoin::Network;

use super::service;
use crate::wire::wire_struct;

wire_struct! {
    /// A plugin and its host.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct About {
        /// The plugin's id.
        pub plugin: String,
        /// The network of the node's chain.
        pub network: Network,
        /// The release of Bitcoin Core whose answers clients expect now.
        pub release: u32,
        /// The plugin's private folder, if its manifest has `folder`.
        pub folder: Option<String>,
        /// After how many seconds the host answers the plugin's calls in its place; none if it does not.
        pub deadline_seconds: Option<u64>,
        /// The longest answer of the plugin, in bytes; none for any.
        pub max_answer_bytes: Option<u64>,
        /// The Unix socket at which the host makes the connections and listening sockets of the plugin's `reach`; none if it has no
        /// such entries. `net` of the SDK uses it.
        pub sockets: Option<String>,
    }
}

service! {
    /// The host and the plugin.
    pub trait HostInfo as HostInfoClient = "host/1" {
        /// Tells them. Nothing but the release changes while the plugin runs.
        #[since(1)]
        fn about() -> About;

        /// Says how far the call of this token is, for `getrpcinfo` and `outrigger call`: `done` of `total`, in any unit. Methods that are
        /// `long_running` show it. Nothing happens for a call that has ended.
        #[since(1)]
        fn progress(token: u64, done: u64, total: u64) -> ();
    }
}
