//! The project's pages describe its crates and files correctly.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_tests::files_below;

/// A crate's name without the project's common prefix; `None` for other crates.
fn short(name: &str) -> Option<&str> {
    name.strip_prefix("outrigger-")
}

/// The crates below a folder, each with its dependencies within the project.
fn crates(folder: &Path) -> Vec<(String, BTreeSet<String>)> {
    let mut files = files_below(folder, &["src", "examples", "cdylib"]);
    files.retain(|file| file.ends_with("Cargo.toml"));
    let read = |file: &PathBuf| {
        let manifest: toml::Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
        let name = short(manifest["package"]["name"].as_str().unwrap()).unwrap().to_owned();
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let own = dependencies.into_iter().flat_map(toml::Table::keys).filter_map(|name| short(name));
        (name, own.map(str::to_owned).collect())
    };
    files.iter().map(read).collect()
}

#[test]
fn architecture_page_lists_the_crates_of_the_manifests_without_a_cycle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let list = text.split("a test compares the list with the manifests):\n\n").nth(1).unwrap();
    let list = list.split("\n\n").next().unwrap();
    let mut written = Vec::new();
    for line in list.lines() {
        let (name, dependencies) = line.trim().split_once(' ').unwrap();
        let dependencies = dependencies.split(',').map(|name| name.trim().to_owned()).filter(|name| name != "-");
        written.push((name.to_owned(), dependencies.collect::<BTreeSet<String>>()));
    }
    let mut found = ["sdk", "host", "plugins"].map(|folder| crates(&root.join(folder))).concat();
    found.sort();
    let mut sorted = written.clone();
    sorted.sort();
    assert_eq!(sorted, found);
    for name in ["descriptor", "psbt-format", "script", "standard"] {
        let (_, dependencies) = found.iter().find(|(found, _)| found == name).unwrap();
        let plugin_half = ["abi", "service", "sdk"].map(str::to_owned);
        assert!(plugin_half.iter().all(|other| !dependencies.contains(other)), "{name} knows the interface of plugins");
    }
    for (line, (name, dependencies)) in written.iter().enumerate() {
        let below: BTreeSet<&String> = written[line + 1..].iter().map(|(name, _)| name).collect();
        assert!(dependencies.iter().all(|on| below.contains(on)), "{name} depends on what does not stand below it");
    }
}

#[test]
fn architecture_published_crates_have_the_licence_and_read_no_file_of_another_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let licence = std::fs::read(root.join("LICENSE")).unwrap();
    let sources = ["host", "plugins", "sdk"].map(|folder| rust_files(&root.join(folder))).concat();
    let mut checked = BTreeSet::new();
    for source in sources {
        let own = Path::new(&source).ancestors().find(|folder| folder.join("Cargo.toml").is_file()).unwrap();
        if std::fs::read_to_string(own.join("Cargo.toml")).unwrap().contains("publish.workspace") {
            continue;
        }
        if checked.insert(own.to_owned()) {
            assert!(std::fs::read(own.join("LICENSE")).is_ok_and(|text| text == licence), "{}", own.display());
        }
        let text = std::fs::read_to_string(&source).unwrap();
        for included in text.split("include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let up = included.split('/').filter(|part| *part == "..").count();
            let folder = Path::new(&source).parent().unwrap().ancestors().nth(up).unwrap();
            assert!(folder.starts_with(own), "{source} includes {included}");
        }
    }
    assert!(checked.len() > 30, "{checked:?}");
}

#[test]
fn architecture_only_one_file_names_groups_and_only_the_program_sets_the_allocator() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let [mut of_host, mut of_groups] = ["host", "plugins"].map(|folder| rust_files(&root.join(folder)));
    let groups = std::fs::read_dir(root.join("plugins")).unwrap().map(|entry| entry.unwrap().path());
    let groups = groups.filter(|path| path.is_dir()).map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
    let paths: Vec<String> = groups.map(|group| format!("outrigger_{group}::")).collect();
    of_groups.retain(|file| !file.contains("/cdylib/"));
    // The tests of the test host crate run groups.
    of_host.retain(|file| !file.contains("/host/testing/tests/"));
    assert!(paths.len() == 8 && of_groups.len() > 50, "{paths:?}");
    for file in of_host.iter().chain(&of_groups) {
        let text = std::fs::read_to_string(file).unwrap();
        // A program can link only one crate that sets a global allocator.
        let is_program = file.ends_with("host/src/main.rs");
        assert_eq!(text.contains("wipe_freed_memory!()"), is_program, "{file}");
        let named = paths.iter().filter(|path| text.contains(*path)).count();
        let lists_groups = file.ends_with("host/src/groups.rs");
        assert_eq!(named, if lists_groups { paths.len() } else { 0 }, "{file} names groups");
    }
}

const PAGES: [&str; 16] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "config/README.md",
    "config/bitcoind.md",
    "config/hardware-wallets.md",
    "config/operate.md",
    "config/plugins.md",
    "config/proxies.md",
    "config/publishing.md",
    "config/security.md",
    "plugins/README.md",
    "sdk/C.md",
    "sdk/README.md",
    "tests/README.md",
];

const SOURCES: [&str; 4] = ["host", "plugins", "sdk", "tests"];

fn rust_files(folder: &Path) -> Vec<String> {
    let mut files = files_below(folder, &["target", "node_modules"]);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.iter().map(|file| file.to_str().unwrap().to_owned()).collect()
}

/// Whether a text is a path below the folder, without a wildcard or braces.
fn is_below(text: &str, folder: &str) -> bool {
    let path = text.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
    path.is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-".contains(letter)))
}

#[test]
fn pages_name_only_existing_files_and_links() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = SOURCES.map(|folder| rust_files(&root.join(folder))).concat();
    let mut missing = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let folder = root.join(page).parent().unwrap().to_owned();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let relative = links.filter(|link| !link.is_empty() && !link.contains("://"));
        missing.extend(relative.filter(|link| !folder.join(link).exists()).map(|link| format!("{page}: {link}")));
        // Every second part is between backticks.
        let paths =
            text.split('`').skip(1).step_by(2).filter(|path| SOURCES.iter().any(|folder| is_below(path, folder)));
        // This is the name of a service.
        let paths = paths.filter(|path| *path != "host/1");
        missing.extend(paths.filter(|path| !root.join(path).exists()).map(|path| format!("{page}: {path}")));
        if page == "ARCHITECTURE.md" {
            // A name with braces means several files.
            let quoted = text.split('`').skip(1).step_by(2);
            let named = quoted.filter(|name| name.ends_with(".rs") && !name.contains('{'));
            let absent = named.filter(|name| !files.iter().any(|file| file.ends_with(&format!("/{name}"))));
            missing.extend(absent.map(|name| format!("{page}: {name}")));
        }
    }
    assert_eq!(missing, [""; 0]);
}
