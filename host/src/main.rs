//! The program `outrigger`. All of it is in the library beside it, where tests and fuzz targets reach it.

// Keys and passphrases pass through buffers of libraries and parsed texts, which nobody else wipes.
outrigger_sdk::wipe_freed_memory!();

fn main() -> std::process::ExitCode {
    outrigger_host::main()
}
