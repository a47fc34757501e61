//! What ARCHITECTURE.md says of the crates is what their manifests say.

use std::collections::BTreeSet;
use std::path::Path;

/// The project's own name of a crate, without what all have.
fn short(name: &str) -> Option<&str> {
    name.strip_prefix("outrigger-")
}

/// The crates below a folder, each with those of the project that it depends on.
fn crates(folder: &Path, found: &mut Vec<(String, BTreeSet<String>)>) {
    if let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) {
        let manifest: toml::Table = manifest.parse().unwrap();
        let name = short(manifest["package"]["name"].as_str().unwrap()).unwrap().to_owned();
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        let own = dependencies.into_iter().flat_map(toml::Table::keys).filter_map(|name| short(name));
        found.push((name, own.map(str::to_owned).collect()));
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "src") {
            crates(&path, found);
        }
    }
}

#[test]
fn the_list_of_crates_is_that_of_their_manifests_and_has_no_circle() {
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
    let mut found = Vec::new();
    crates(&root.join("sdk"), &mut found);
    crates(&root.join("host"), &mut found);
    found.sort();
    let mut sorted = written.clone();
    sorted.sort();
    assert_eq!(sorted, found);
    for (line, (name, dependencies)) in written.iter().enumerate() {
        let below: BTreeSet<&String> = written[line + 1..].iter().map(|(name, _)| name).collect();
        assert!(dependencies.iter().all(|on| below.contains(on)), "{name} depends on what does not stand below it");
    }
}
