use std::fs;
use std::io::Write;
use std::path::Path;

use outrigger_sandbox::Policy;

use super::cases::combinations;
use super::host::{Confined, plan, reduced};

fn build(at: &Path, source: &str, options: &[&str]) -> bool {
    use std::process::{Command, Stdio};
    let folders = "/usr/local/bin:/usr/bin:/bin";
    let spawned = Command::new("cc")
        .args(["-shared", "-fPIC", "-nostartfiles", "-x", "c", "-", "-x", "none", "-Wl,--no-as-needed", "-o"])
        .arg(at)
        .args(options)
        .env("PATH", folders)
        .env("TMPDIR", at.parent().unwrap())
        .stdin(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else { return false };
    child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    child.wait().unwrap().success()
}

pub fn a_library_is_opened_with_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = |name: &str| at(name).to_str().unwrap().to_owned();
    fs::create_dir(at("sub")).unwrap();
    let names = ["sub/libinner.so", "sub/libmiddle.so"].map(text);
    let sub = format!("-L{}", text("sub"));
    // libmiddle finds libinner by the RPATH of outer.so, or because outer.so has loaded it.
    for tags in ["-Wl,--disable-new-dtags", "-Wl,--enable-new-dtags"] {
        let built = build(&at("sub/libinner.so"), "int inner(void) { return 1; }", &["-Wl,-soname,libinner.so"])
            && build(
                &at("sub/libmiddle.so"),
                "int inner(void); int middle(void) { return inner(); }",
                &["-Wl,-soname,libmiddle.so", &sub, "-linner"],
            )
            && build(
                &at("outer.so"),
                "int middle(void); int outer(void) { return middle(); }",
                &[tags, "-Wl,-rpath,$ORIGIN/sub", &sub, "-lmiddle", "-linner"],
            );
        if !built {
            println!("skipped: there is no C compiler");
            return;
        }
        let (mut own, _) = plan(&[], &[], Policy::BestEffort);
        own.library = Some(at("outer.so"));
        own.closure = outrigger_sandbox::library_closure(&at("outer.so")).unwrap();
        for name in &names {
            assert!(own.closure.contains(&name.into()), "{name} {:?}", own.closure);
        }
        for without in combinations() {
            let mut confined = Confined::start("ordinary", &(own.clone(), reduced(&without)));
            assert_eq!(confined.results()["dlopen"], 0, "{tags}");
            assert!(confined.denied.try_iter().all(|denial| denial.argument.contains("libnone")));
            confined.end();
        }
    }
    fs::remove_file(&names[0]).unwrap();
    let error = outrigger_sandbox::library_closure(&at("outer.so")).unwrap_err().to_string();
    assert!(error.ends_with("needs the library 'libinner.so', which is not found"), "{error}");
}
