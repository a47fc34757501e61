//! Misuse of the SDK fails to compile with advice: the test compiles each file in `compile-fail/` against the SDK, and the error
//! must contain the phrase of each `//~` line. Most cases change one place of a file that compiles.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use outrigger_tests::built;

const AT_ONCE: usize = 2;

const PLUGIN: &str = "good.rs";
const METHODS: &str = "method_good.rs";
const ANSWER: &str = "reply.send(Ok(call.method));";

/// A file that compiles, the text to replace, its replacement, and phrases of the error.
const CHANGED: [(&str, &str, &str, &[&str]); 8] = [
    // A borrow from a call is used on another thread, after the call.
    (
        PLUGIN,
        ANSWER,
        "std::thread::spawn(move || reply.send(Ok(call.method)));",
        &["borrowed data escapes outside of method", "`call` is a reference that is only valid in the method body"],
    ),
    (
        PLUGIN,
        ANSWER,
        "reply.send(Ok(1)); reply.send(Ok(2));",
        &["use of moved value: `reply`", "takes ownership of the receiver `self`, which moves `reply`"],
    ),
    (
        PLUGIN,
        "    fn call(&self, call: Call<'_>, reply: Reply) {\n        reply.send(Ok(call.method));\n    }\n",
        "",
        &["not all trait items implemented, missing: `call`"],
    ),
    (
        PLUGIN,
        "outrigger_sdk::export_plugin!(Hello);",
        "outrigger_sdk::export_plugin!(Hello); outrigger_sdk::export_plugin!(Hello);",
        &[
            "the name `outrigger_plugin` is defined multiple times",
            "the name `outrigger_manifest` is defined multiple times",
        ],
    ),
    (METHODS, "id = \"hello\", ", "", &["the plugin has no id"]),
    (
        METHODS,
        "    ///\n    /// * `name` - To whom.\n",
        "",
        &["the documentation has no line for `name`: * `name` - ..."],
    ),
    (METHODS, "* `name`", "* `nmae`", &["the documentation describes `nmae` where `name` stands"]),
    (
        METHODS,
        "inline",
        "quick",
        &["expected name, category, unchecked, inline, long_running, private_keys, wallet_only or needs_tip"],
    ),
];

/// The files of `compile-fail/` and the changed files, which are written to `out`.
fn cases(out: &Path) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("compile-fail");
    let mut cases: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    for (number, &(file, from, to, phrases)) in CHANGED.iter().enumerate() {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let phrases: String = phrases.iter().map(|phrase| format!("//~ {phrase}\n")).collect();
        let case = out.join(format!("changed_{number}.rs"));
        fs::write(&case, phrases + &text.replace(from, to)).unwrap();
        cases.push(case);
    }
    cases
}

/// Compiles a file; returns the compiler's output and whether it succeeded.
fn compile(case: &Path, out: &Path) -> (String, bool) {
    let sdk = &built().sdk;
    let mut command = Command::new(std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned()));
    command.args(["--edition", "2024", "--crate-type", "cdylib", "--emit", "metadata", "--color", "never"]);
    command.arg("--extern").arg(format!("outrigger_sdk={}", sdk.display()));
    command.arg("-L").arg(format!("dependency={}", sdk.parent().unwrap().join("deps").display()));
    let output = command.arg("--out-dir").arg(out).arg(case).output().unwrap();
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.success())
}

/// The problem with a case; `None` if it fails with its phrases, or compiles and has no phrase.
fn judge(case: &Path, out: &Path) -> Option<String> {
    let text = fs::read_to_string(case).unwrap();
    let phrases: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//~ ")).collect();
    let (said, compiled) = compile(case, out);
    let name = case.file_name().unwrap().to_string_lossy();
    if compiled != phrases.is_empty() {
        return Some(format!("{name} {}: {said}", if compiled { "compiles" } else { "does not compile" }));
    }
    // The compiler may wrap its lines anywhere.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said_words = words(&said);
    let missing: Vec<_> = phrases.iter().filter(|phrase| !said_words.contains(&words(phrase))).collect();
    (!missing.is_empty()).then(|| format!("{name}: the error does not say {missing:?}: {said}"))
}

#[test]
fn sdk_misuse_fails_to_compile_with_advice() {
    let out = tempfile::tempdir().unwrap();
    let cases = cases(out.path());
    assert!(cases.len() > CHANGED.len(), "{cases:?}");
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
