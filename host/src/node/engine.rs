//! The script engine: what the node uses of it.

pub use outrigger_sdk::script::{
    Flags, ScriptError, TxContext, legacy_sigop_count, script_sigop_count, transaction_sigop_cost, verify_input,
};
