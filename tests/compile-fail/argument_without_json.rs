// An argument of a type that cannot be read from JSON.
//~ the trait bound `Filter: serde::Deserialize<'de>` is not satisfied
//~ for local types consider adding `#[derive(serde::Deserialize)]` to your `Filter` type

use outrigger_sdk::RpcError;
use outrigger_sdk::params::Params;

pub struct Filter {
    pub label: String,
}

pub fn label(params: &Params) -> Result<String, RpcError> {
    Ok(params.read::<Filter>(0, "filter")?.label)
}
