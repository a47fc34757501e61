//! The program `outrigger`. Its code is in the library, for tests and fuzz targets.

use std::process::ExitCode;

// Libraries leave keys and passphrases in buffers and parsed text that nothing else wipes.
outrigger_memory::wipe_freed_memory!();

fn main() -> ExitCode {
    outrigger_host::main()
}
