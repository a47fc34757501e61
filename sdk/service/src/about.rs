//! `host/1`: information about the host and the calling plugin. Every plugin may use it without a grant.
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
        /// The release of Bitcoin Core that the host emulates now.
        pub release: u32,
        /// The plugin's private folder, if its manifest has `folder`.
        pub folder: Option<String>,
        /// The plugin's deadline in seconds, after which the host answers a call with an error; none without a deadline.
        pub deadline_seconds: Option<u64>,
        /// The longest answer allowed to the plugin, in bytes; none without a limit.
        pub max_answer_bytes: Option<u64>,
        /// The Unix socket through which the host opens the connections and listening sockets of the plugin's `reach`; none if `reach` has
        /// no such entries. `net` of the SDK uses it.
        pub sockets: Option<String>,
    }
}

service! {
    /// The host and the plugin.
    pub trait HostInfo = "host/1" {
        /// The host and the plugin. Only the release can change while the plugin runs.
        fn about() -> About;

        /// Reports the progress of the call with this token for `getrpcinfo` and `outrigger call`: `done` of `total`, in any unit. The host
        /// shows it for `long_running` methods, and ignores a call that has ended.
        fn progress(token: u64, done: u64, total: u64) -> ();
    }
}
