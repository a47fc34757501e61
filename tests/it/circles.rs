//! The files of a crate do not depend on each other in a cycle, so each file can be read without the whole cycle.
//!
//! The test searches the files for paths that begin with `crate`, `super` or `self`. The crate's root may use all files and be
//! used by all, and a parent may name items of its children, which it re-exports. Code compiled only for tests does not
//! count.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use outrigger_tests::files_below;

/// A module's path in its crate; the root's is empty.
type Module = Vec<String>;

/// The start of a file's unit tests.
const OWN_TESTS: &str = "#[cfg(test)]\nmod tests";
const FOR_TESTS: &str = "#[cfg(test)]";

/// The folders `src` of the crates below a folder.
fn source_folders(folder: &Path) -> Vec<PathBuf> {
    let mut folders = files_below(folder, &["src", "target"]);
    folders.retain(|file| file.ends_with("Cargo.toml") && file.with_file_name("src").exists());
    folders.iter().map(|file| file.with_file_name("src")).collect()
}

fn module(path: &Path) -> Option<Module> {
    let mut names: Module = path.with_extension("").iter().map(|name| name.to_str().unwrap().to_owned()).collect();
    if names.iter().any(|name| name == "tests") {
        return None;
    }
    names.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
    Some(names)
}

/// The text of each module's file below `src`.
fn read_modules(src: &Path) -> BTreeMap<Module, String> {
    let mut files = files_below(src, &[]);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    let read = |file: &PathBuf| {
        let module = module(file.strip_prefix(src).unwrap())?;
        Some((module, compiled(&std::fs::read_to_string(file).unwrap())))
    };
    files.iter().filter_map(read).collect()
}

/// A file's text without comments and unit tests.
fn compiled(text: &str) -> String {
    let text = text.split(OWN_TESTS).next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.map(|line| format!("{line}\n")).collect()
}

/// The rest of a line after `use`; `None` if the line is no `use` declaration.
fn begins_use(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let public = line.strip_prefix("pub").map(|rest| match rest.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or("", |(_, rest)| rest),
        None => rest,
    });
    public.unwrap_or(line).trim_start().strip_prefix("use ")
}

fn split_uses(text: &str) -> (Vec<String>, String) {
    let (mut uses, mut rest, mut for_tests) = (Vec::new(), String::new(), false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(first) = begins_use(line) {
            let mut tree = first.to_owned();
            while !tree.contains(';') {
                let Some(next) = lines.next() else { break };
                tree.push_str(next.trim());
            }
            if !for_tests {
                uses.push(tree.split(';').next().unwrap_or_default().to_owned());
            }
        } else {
            rest.push_str(line);
            rest.push('\n');
        }
        for_tests = line.trim() == FOR_TESTS;
    }
    (uses, rest)
}

fn list(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn names(path: &str) -> Module {
    let path = path.split(" as ").next().unwrap_or_default();
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The paths of the tree of a `use` declaration.
fn expand(before: &[String], tree: &str, paths: &mut Vec<Module>) {
    for part in list(tree) {
        let (path, inner) = part.split_once('{').unwrap_or((part, ""));
        let path = [before, &names(path)].concat();
        match inner.rsplit_once('}') {
            Some((inner, _)) => expand(&path, inner, paths),
            None => paths.push(path),
        }
    }
}

/// The paths that begin with `crate` or `super` outside `use` declarations.
fn inline_paths(text: &str, paths: &mut Vec<Module>) {
    let is_of_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let words = text.split(|letter: char| !is_of_path(letter));
    paths.extend(words.filter(|word| word.starts_with("crate::") || word.starts_with("super::")).map(names));
}

/// The module that a path names, without the item at its end; `None` for a path into another crate.
fn target(from: &Module, path: &[String], modules: &BTreeMap<Module, String>) -> Option<Module> {
    let mut at = from.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => (at, rest) = (Module::new(), &path[1..]),
        "self" => rest = &path[1..],
        "super" => {}
        _ => return None,
    }
    while let Some((_, behind)) = rest.split_first().filter(|(first, _)| *first == "super") {
        at.pop();
        rest = behind;
    }
    for name in rest {
        at.push(name.clone());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
    }
    Some(at)
}

/// The modules that a module uses, except the root and the module's descendants.
fn used(from: &Module, modules: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let (uses, rest) = split_uses(&modules[from]);
    let mut paths = Vec::new();
    uses.iter().for_each(|tree| expand(&[], tree, &mut paths));
    inline_paths(&rest, &mut paths);
    let targets = paths.iter().filter_map(|path| target(from, path, modules));
    targets.filter(|to| !to.is_empty() && modules.contains_key(to) && !to.starts_with(from)).collect()
}

fn reached(from: &Module, edges: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<Module> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        for next in &edges[module] {
            if found.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    found
}

/// The cycles among a crate's modules: the sets of modules that reach each other.
fn cycles(modules: &BTreeMap<Module, String>) -> BTreeSet<BTreeSet<String>> {
    let edges: BTreeMap<Module, _> = modules.keys().map(|module| (module.clone(), used(module, modules))).collect();
    let reach: BTreeMap<&Module, _> = edges.keys().map(|module| (module, reached(module, &edges))).collect();
    let mutual = |module: &Module| {
        let back = reach[module].iter().filter(|other| reach[other].contains(module));
        back.map(|module| module.join("::")).collect::<BTreeSet<_>>()
    };
    reach.keys().map(|module| mutual(module)).filter(|cycle| !cycle.is_empty()).collect()
}

/// Modules with these paths and texts.
fn sample(files: &[(&str, &str)]) -> BTreeMap<Module, String> {
    files.iter().map(|(path, text)| (module(Path::new(path)).unwrap(), compiled(text))).collect()
}

#[test]
fn a_cycle_of_files_is_found_in_each_form_of_a_path() {
    let cycle = |one: &str, other: &str| {
        let root = ("lib.rs", "mod a;\nmod b;\npub use a::X;");
        cycles(&sample(&[root, ("a/mod.rs", "pub mod c;\npub use c::Y;"), ("a/c.rs", one), ("b.rs", other)])).len()
    };
    let back = "use crate::{\n    a::{self, c::Y as Z},\n};\n";
    for one in ["use crate::b::X;", "use super::super::b;", "pub(crate) use crate::b;", "fn f(_: &crate::b::X) {}"] {
        assert_eq!(cycle(one, back), 1, "{one}");
    }
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::b;\n}";
    for one in ["use crate::X;", "// crate::b", "#[cfg(test)]\nuse crate::b;", "use other::b;", tests] {
        assert_eq!(cycle(one, back), 0, "{one}");
    }
}

#[test]
fn files_of_a_crate_have_no_cycle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["host", "sdk"].map(|folder| source_folders(&root.join(folder))).concat();
    assert!(folders.len() > 20, "{folders:?}");
    let found = folders.iter().map(|src| (src, cycles(&read_modules(src))));
    let found: Vec<_> = found.filter(|(_, cycles)| !cycles.is_empty()).collect();
    assert!(found.is_empty(), "files that use one another: {found:#?}");
}
