// A type that is exported and does not implement `Plugin`.
//~ `Hello` is not a plugin
//~ this type does not implement `outrigger_sdk::Plugin`
//~ write `#[outrigger_sdk::plugin(id = "...", summary = "...")] impl outrigger_sdk::Plugin for Hello` with a function `new`

struct Hello;

outrigger_sdk::export_plugin!(Hello);
