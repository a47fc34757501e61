//! Plugins in C, built by the machine's compiler with warnings as errors.

use std::path::{Path, PathBuf};
use std::process::Command;

use outrigger_header::{FILE, header};
use tempfile::TempDir;

use crate::HostOptions;

/// The compiler's flags for a plugin, besides the header's folder.
const FLAGS: [&str; 8] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"];

/// The compilers, each with its standard.
const C: (&str, &str) = ("cc", "-std=c11");
const CPP: (&str, &str) = ("c++", "-std=c++17");

/// A plugin's library. The file is deleted when the value is dropped.
pub struct CPlugin {
    folder: TempDir,
}

/// The sample plugin of `tests/c`, built against a header with these definitions (`NAME=VALUE`).
pub fn c_sample(header: &str, defines: &[&str]) -> CPlugin {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("c");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&sample).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "c"));
    files.sort();
    try_compile(C, header, &files, &sample, defines, &[]).unwrap_or_else(|said| panic!("{said}"))
}

pub fn c_plugin(source: &str) -> CPlugin {
    one_source(C, source, &[]).unwrap_or_else(|said| panic!("{said}"))
}

pub fn cpp_plugin(source: &str) -> CPlugin {
    one_source(CPP, source, &[]).unwrap_or_else(|said| panic!("{said}"))
}

/// A plugin in C linked with system libraries (`-lNAME`), or the compiler's output if one is missing.
pub fn linked_c_plugin(source: &str, libraries: &[&str]) -> Result<CPlugin, String> {
    one_source(C, source, libraries)
}

fn one_source(compiler: (&str, &str), source: &str, libraries: &[&str]) -> Result<CPlugin, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(if compiler == C { "plugin.c" } else { "plugin.cpp" });
    std::fs::write(&file, source).unwrap();
    try_compile(compiler, &header(), &[file], folder.path(), &[], libraries)
}

fn try_compile(
    (compiler, standard): (&str, &str),
    header: &str,
    files: &[PathBuf],
    include: &Path,
    defines: &[&str],
    libraries: &[&str],
) -> Result<CPlugin, String> {
    let plugin = CPlugin { folder: tempfile::tempdir().unwrap() };
    std::fs::write(plugin.folder.path().join(FILE), header).unwrap();
    let mut command = Command::new(compiler);
    command.arg(standard).args(FLAGS).args(defines.iter().map(|define| format!("-D{define}")));
    command.arg("-I").arg(plugin.folder.path()).arg("-I").arg(include).args(files);
    let output = command.arg("-o").arg(plugin.library()).arg("-pthread").args(libraries).output().unwrap();
    if output.status.success() { Ok(plugin) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

impl CPlugin {
    pub fn library(&self) -> PathBuf {
        self.folder.path().join("liboutrigger_sample.so")
    }

    /// A host with this configuration, and the plugin with `rest` in its section.
    pub fn options(&self, configuration: &str, rest: &str) -> HostOptions {
        HostOptions::with_plugin(configuration, &self.library(), rest)
    }
}
