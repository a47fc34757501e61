// A type that is exported and does not implement `Plugin`.
//~ `Hello` is not a plugin
//~ this type does not implement `outrigger_sdk::Plugin`
//~ write `impl outrigger_sdk::Plugin for Hello`: `new` makes it of a host and options, `call` answers its methods

struct Hello;

outrigger_sdk::export_plugin!(Hello, r#"{"id": "hello", "version": "1", "summary": "Says hello", "methods": []}"#);
