#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| outrigger_parsers::run("proxy_header", bytes));
