//! The header compiles without warnings as C and as C++, by itself and with all functions used.

use std::path::PathBuf;
use std::process::Command;

use outrigger_abi::DECLARATIONS;
use outrigger_abi::layout::Declaration;

use super::declarations::structs;
use super::names::abi_type;
use super::{FILE, header};

/// The warnings that a strict plugin author enables.
const WARNINGS: [&str; 7] =
    ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wconversion", "-Wshadow", "-Wmissing-field-initializers"];

/// For each language, the compiler and its arguments.
const LANGUAGES: [(&str, &[&str]); 2] = [("cc", &["-std=c11", "-xc"]), ("c++", &["-std=c++17", "-xc++"])];

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

    /// Compiles a source with the header. Returns the path of the output file.
    #[track_caller]
    fn compile(&self, (compiler, language): (&str, &[&str]), source: &str, more: &[&str]) -> PathBuf {
        self.write(FILE, &header());
        let (source, out) = (self.write("source", source), self.0.join("out"));
        let mut command = Command::new(compiler);
        command.args(language).args(WARNINGS).args(more).arg("-I").arg(&self.0).arg(source).arg("-o").arg(&out);
        let output = command.output().unwrap_or_else(|error| panic!("{compiler} is needed: {error}"));
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        out
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The names of the functions in a header.
fn functions(header: &str) -> Vec<&str> {
    let heads = header.lines().filter_map(|line| line.strip_prefix("static inline "));
    heads.filter_map(|head| head.split('(').next()?.rsplit([' ', '*']).next()).collect()
}

#[test]
fn c_header_has_each_field_where_rust_has_it() {
    let mut source = "#include \"outrigger.h\"\n".to_owned();
    for declaration in DECLARATIONS {
        let Declaration::Struct(layout) = declaration else { continue };
        for field in layout.fields {
            let place = format!("offsetof({}, {}) == {}", abi_type(layout.name), field.name, field.offset);
            source += &format!("OUTRIGGER_STATIC_ASSERT({place}, \"{place}\");\n");
        }
    }
    assert!(source.contains("offsetof(outrigger_host_t, ask_json) == "), "{source}");
    let folder = Folder::new("fields");
    LANGUAGES.iter().for_each(|language| drop(folder.compile(*language, &source, &["-c"])));
}

#[test]
fn c_header_compiles_with_everything_used() {
    let folder = Folder::new("used");
    for language in LANGUAGES {
        let header = header();
        let names = functions(&header);
        for known in ["outrigger_ask", "outrigger_json_member", "outrigger_print"] {
            assert!(names.contains(&known), "{known} was not found among {} functions", names.len());
        }
        let table: String = names.iter().map(|name| format!("    (any_function_t){name},\n")).collect();
        let source = format!(
            "#include \"outrigger.h\"
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
    OUTRIGGER_PLUGIN_HEAD(0), create, init, start, call, NULL, NULL, NULL, NULL, destroy,
}};
OUTRIGGER_MANIFEST(0, \"{{}}\");
"
        );
        folder.compile(language, &source, &["-O1", "-shared", "-fPIC", "-fvisibility=hidden"]);
    }
}

const MAX_LINES: usize = 800;

#[test]
fn c_header_is_short() {
    let lines = header().lines().count();
    assert!(lines < MAX_LINES, "{lines} lines");
}

#[test]
fn c_header_says_once_what_holds_for_threads_ownership_and_lifetimes() {
    let functions = structs().matches("(*").count();
    // The comment of each function pointer has these headings. The preface states the rules of the helpers, without colons.
    for subject in ["Threads:", "Ownership:", "Lifetime:"] {
        assert_eq!(header().matches(subject).count(), functions, "{subject}");
    }
}

#[test]
fn c_header_does_not_speak_of_rust() {
    let header = header();
    let comments: String = header.split("/*").skip(1).filter_map(|part| part.split("*/").next()).collect();
    for word in ["[`", "::", "Option<", "Vec<", "usize", "&str"] {
        assert!(!comments.contains(word), "{word} in a comment");
    }
}

#[test]
fn c_header_functions_do_what_they_say() {
    let folder = Folder::new("helpers");
    let sanitized = ["-g", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for language in LANGUAGES {
        let program = folder.compile(language, include_str!("tests/helpers.c"), &sanitized);
        let output = Command::new(program).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
