//! The program `outrigger`. All of it is in the library beside it, where tests and fuzz targets reach it.

fn main() -> std::process::ExitCode {
    outrigger_host::main()
}
