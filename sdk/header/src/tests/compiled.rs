//! The header compiles, by itself and with everything in it used, as C and as C++, without a warning.

use std::path::PathBuf;
use std::process::Command;

use super::super::comment::Glossary;
use super::super::types::Types;
use super::super::{Part, header, messages};
use super::sample;
use outrigger_abi::ABI_MINOR;
use outrigger_service::wire::{Wire, wire_enum, wire_struct};

/// What a strict plugin author would ask the compiler for.
const WARNINGS: [&str; 7] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wshadow", "-Wmissing-field-initializers"];

/// The languages: the compiler, and what it is told.
const LANGUAGES: [(&str, &[&str]); 2] = [("cc", &["-std=c11", "-xc"]), ("c++", &["-std=c++17", "-xc++"])];

/// A folder for one test, deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("outrigger-header-{}-{name}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Compiles a source beside the header of a minor version, and gives the result's path.
    #[track_caller]
    fn compile(&self, (compiler, language): (&str, &[&str]), source: &str, minor: u32, more: &[&str]) -> PathBuf {
        for part in Part::ALL {
            self.write(part.file(), &header(part, minor));
        }
        let (source, out) = (self.write("source", source), self.0.join("out"));
        let mut command = Command::new(compiler);
        command.args(language).args(WARNINGS).args(more).arg("-I").arg(&self.0).arg(source).arg("-o").arg(&out);
        let output = command.output().unwrap_or_else(|error| panic!("{compiler} is needed: {error}"));
        assert!(output.status.success(), "{compiler}, minor {minor}: {}", String::from_utf8_lossy(&output.stderr));
        out
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All files of the header, one after the other.
fn whole(minor: u32) -> String {
    Part::ALL.map(|part| header(part, minor)).concat()
}

/// The names of the functions that a header defines.
fn functions(header: &str) -> Vec<&str> {
    let heads = header.lines().filter_map(|line| line.strip_prefix("static inline "));
    heads.filter_map(|head| head.split('(').next()?.rsplit([' ', '*']).next()).collect()
}

#[test]
fn c_header_compiles_by_itself() {
    let folder = Folder::new("alone");
    for language in LANGUAGES {
        for minor in 0..=ABI_MINOR {
            for part in Part::ALL {
                folder.compile(language, &format!("#include \"{}\"\n", part.file()), minor, &["-c"]);
            }
        }
    }
}

#[test]
fn c_header_compiles_with_everything_used() {
    let folder = Folder::new("used");
    for language in LANGUAGES {
        for minor in 0..=ABI_MINOR {
            let header = whole(minor);
            let names = functions(&header);
            for known in ["outrigger_get_unsigned", "outrigger_wallet_change_passphrase", "outrigger_put_import"] {
                assert!(names.contains(&known), "{known} was not found among {} functions", names.len());
            }
            let table: String = names.iter().map(|name| format!("    (any_function_t){name},\n")).collect();
            let source = format!(
                "#include \"outrigger_json.h\"
#include \"outrigger_services.h\"
typedef void (*any_function_t)(void);
extern const any_function_t all_functions[];
const any_function_t all_functions[] = {{
{table}}};
static void *create(void) {{ return NULL; }}
static int32_t init(void *i, const outrigger_host_t *h, outrigger_bytes_t o, outrigger_owned_bytes_t *e)
{{ (void)i; (void)h; (void)o; (void)e; return 0; }}
static int32_t start(void *i, outrigger_owned_bytes_t *e) {{ (void)i; (void)e; return 0; }}
static int32_t call(void *i, const outrigger_call_t *c) {{ (void)i; (void)c; return 0; }}
static void destroy(void *i) {{ (void)i; }}
const outrigger_plugin_t outrigger_plugin = {{
    OUTRIGGER_PLUGIN_HEAD({minor}), create, init, start, call, NULL, NULL, NULL, NULL, destroy,
}};
OUTRIGGER_MANIFEST({minor}, \"{{}}\");
"
            );
            folder.compile(language, &source, minor, &["-O1", "-shared", "-fPIC", "-fvisibility=hidden"]);
        }
    }
}

#[test]
fn every_function_says_what_holds_for_threads_ownership_and_lifetimes() {
    let header = whole(ABI_MINOR);
    let mut documented = 0;
    for part in header.split("/**").skip(1) {
        let (comment, code) = part.split_once("*/").unwrap();
        let code = code.trim_start();
        let code = code.strip_prefix("OUTRIGGER_PRINTF(2, 3)\n").unwrap_or(code);
        if code.starts_with("static inline") || code.split('\n').next().unwrap().contains("_fn_t)(") {
            for subject in ["Threads:", "Ownership:", "Lifetime:"] {
                assert!(comment.contains(subject), "{subject} is missing: {comment}{}", code.lines().next().unwrap());
            }
            documented += 1;
        }
    }
    assert_eq!(documented, functions(&header).len() + header.matches("_fn_t)(").count());
}

#[test]
fn c_header_does_not_speak_of_rust() {
    let header = whole(ABI_MINOR);
    let comments: String = header.split("/*").skip(1).filter_map(|part| part.split("*/").next()).collect();
    for word in ["[`", "::", "Option<", "Vec<", "usize", "&str"] {
        assert!(!comments.contains(word), "{word} in a comment");
    }
}

/// The C code reads and writes every message as the Rust code does: a program asks every function of every service with
/// sampled arguments, a stand-in for the host compares the request's bytes and answers with sampled ones, and the program
/// prints what it read.
#[test]
fn every_message_is_read_and_written_as_in_rust() {
    let folder = Folder::new("messages");
    let sanitized = ["-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for (language, seed) in LANGUAGES.into_iter().zip([1, 2]) {
        let sample = sample::program(ABI_MINOR, seed);
        let program = folder.compile(language, &sample.source, ABI_MINOR, &sanitized);
        let output = Command::new(program).output().unwrap();
        let (printed, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{errors}\nafter\n{}", printed.lines().last().unwrap_or_default());
        for (line, expected) in printed.lines().zip(sample.output.lines()) {
            assert_eq!(line, expected);
        }
        assert_eq!(printed.lines().count(), sample.output.lines().count());
    }
}

#[test]
fn c_header_functions_do_what_they_say() {
    let folder = Folder::new("helpers");
    let sanitized = ["-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for language in LANGUAGES {
        let program = folder.compile(language, include_str!("helpers.c"), ABI_MINOR, &sanitized);
        let output = Command::new(program).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

wire_struct! {
    /// A message that has grown.
    #[derive(Debug)]
    pub struct Grown {
        /// What was there from the start.
        pub first: u8,
        /// What was added.
        #[since(1)]
        pub second: u32,
        /// What was added later.
        #[since(2)]
        pub third: Option<u16>,
    }
}

wire_enum! {
    /// A choice that has grown.
    #[derive(Debug)]
    pub enum Wider {
        /// What was there from the start.
        Old = 0,
        /// What was added.
        #[since(1)]
        New {
            /// More of it.
            value: u16,
        } = 1,
    }
}

/// The C code of the two messages in a minor version.
fn grown(minor: u32) -> String {
    let mut types = Types::new(minor);
    types.read(Grown::SHAPE);
    types.read(Wider::SHAPE);
    let glossary = Glossary::new(&[], &[], &types.order);
    messages::declarations(&types, &glossary) + &messages::functions(&types)
}

#[test]
fn messages_that_have_grown_are_read_as_far_as_both_sides_know_them() {
    let older = grown(0);
    assert!(older.contains("first") && !older.contains("second") && !older.contains("NEW"), "{older}");
    let newer = grown(1);
    assert!(newer.contains("What was added. Since minor 1. [u32]") && !newer.contains("third"), "{newer}");
    let folder = Folder::new("grown");
    let sanitized = ["-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    // A message of the first version ends after a byte; one of the next after five; what follows is a newer one's.
    for (code, lengths, knows) in [(older, 0b1_1111_1110, 0), (newer, 0b1_1110_0010, 1)] {
        let source = format!(
            "#include \"outrigger_services.h\"
{}
static int reads(const uint8_t *bytes, size_t len)
{{
    outrigger_bytes_t message = {{ bytes, len }};
    outrigger_reader_t reader = outrigger_read(message);
    outrigger_grown_t grown;
    return outrigger_get_grown(&reader, &grown) && grown.first == 9;
}}
static int chooses(const uint8_t *bytes, size_t len)
{{
    outrigger_bytes_t message = {{ bytes, len }};
    outrigger_reader_t reader = outrigger_read(message);
    outrigger_wider_t wider;
    return outrigger_get_wider(&reader, &wider);
}}
int main(void)
{{
    static const uint8_t grown[] = {{ 9, 1, 0, 0, 0, 1, 2, 0 }}, old[] = {{ 0 }}, new_one[] = {{ 1, 2, 0 }};
    size_t at = 0;
    int read = 0;
    for (at = 0; at <= sizeof grown; at++) {{
        read += reads(grown, at) << at;
    }}
    printf(\"%d %d %d\", read, chooses(old, 1), chooses(new_one, 3));
    return 0;
}}
",
            code
        );
        let program = folder.compile(LANGUAGES[0], &source, ABI_MINOR, &sanitized);
        let output = Command::new(program).output().unwrap();
        let (read, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(read, format!("{lengths} 1 {knows}"), "{errors}");
    }
}
