//! A session of corepc-client, which reads every answer into the types of one release of Bitcoin Core.
//!
//! `OUTRIGGER_RELEASE` names the release, 29 to 31: the crate has no types of later ones.

mod v29 {
    use corepc_client::client_sync::v29 as typed;
    include!("session.rs");
}

mod v30 {
    use corepc_client::client_sync::v30 as typed;
    include!("session.rs");
}

mod v31 {
    use corepc_client::client_sync::v31 as typed;
    include!("session.rs");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::var("OUTRIGGER_RELEASE")?.as_str() {
        "29" => v29::run(),
        "30" => v30::run(),
        "31" => v31::run(),
        other => Err(format!("no types of release {other}").into()),
    }
}
