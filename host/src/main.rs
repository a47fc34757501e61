//! The program `outrigger`. Its code is in the library, for tests and fuzz targets.

// Keys and passphrases pass through buffers of libraries and parsed texts, which are not wiped otherwise.
outrigger_memory::wipe_freed_memory!();

fn main() -> std::process::ExitCode {
    outrigger_host::main()
}
