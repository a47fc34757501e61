//! Wrong uses of the SDK do not compile, and the compiler says what to do: each file in `compile-fail/` is compiled against the
//! SDK, and every line that begins with `//~` is a phrase of the error.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use outrigger_tests::built;

const AT_ONCE: usize = 2;

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("compile-fail");
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

/// Compiles a file; what the compiler says, and whether it compiled.
fn compile(case: &Path, out: &Path) -> (String, bool) {
    let sdk = &built().sdk;
    let mut command = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()));
    command.args(["--edition", "2024", "--crate-type", "cdylib", "--emit", "metadata", "--color", "never"]);
    command.arg("--extern").arg(format!("outrigger_sdk={}", sdk.display()));
    command.arg("-L").arg(format!("dependency={}", sdk.parent().unwrap().join("deps").display()));
    let output = command.arg("--out-dir").arg(out).arg(case).output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}

/// What is wrong with a case; none when it fails as it says, or compiles where it names no phrase.
fn judge(case: &Path, out: &Path) -> Option<String> {
    let text = fs::read_to_string(case).unwrap();
    let phrases: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//~ ")).collect();
    let (said, compiled) = compile(case, out);
    let name = case.file_name().unwrap().to_string_lossy();
    if compiled != phrases.is_empty() {
        return Some(format!("{name} {}: {said}", if compiled { "compiles" } else { "does not compile" }));
    }
    // The compiler breaks its lines where it likes.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said_words = words(&said);
    let missing: Vec<_> = phrases.iter().filter(|phrase| !said_words.contains(&words(phrase))).collect();
    (!missing.is_empty()).then(|| format!("{name}: the error does not say {missing:?}: {said}"))
}

#[test]
fn sdk_wrong_uses_do_not_compile_and_are_given_advice() {
    let cases = cases();
    assert!(cases.len() > 10, "{cases:?}");
    let out = tempfile::tempdir().unwrap();
    let (next, wrong) = (Mutex::new(cases.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(case) = next.lock().unwrap().next() else { return };
                    if let Some(what) = judge(case, out.path()) {
                        wrong.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
