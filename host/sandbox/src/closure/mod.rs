//! The libraries that a library needs, found as glibc's loader finds them.
//!
//! The search order: the RPATHs of the library and of its dependents, unless it has a RUNPATH; its RUNPATH; the
//! loader's cache; the default folders. If the loader would choose by processor (`glibc-hwcaps`), the result includes
//! all choices, so it may be larger than the loader's, and is never smaller. `$ORIGIN` is replaced; folders with `$LIB`
//! or `$PLATFORM` are skipped. The environment is ignored: a confined process starts without one.

mod cache;
mod elf;

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};

use elf::Needs;

const CACHE: &str = "/etc/ld.so.cache";

/// The loader's last folders. On multi-architecture systems two others precede them.
const DEFAULT_FOLDERS: [&str; 5] = ["/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"];

const MAX_LIBRARIES: usize = 512;

/// In bytes.
const MAX_CACHE_BYTES: u64 = 64 << 20;

/// A library with its own and inherited RPATHs.
struct Found {
    path: PathBuf,
    needs: Needs,
    rpath: Vec<PathBuf>,
}

impl Found {
    fn new(path: PathBuf, needs: Needs, inherited: &[PathBuf]) -> Self {
        let mut rpath = Vec::new();
        // A RUNPATH disables the library's own RPATH.
        if needs.runpath.is_none() {
            rpath.extend(needs.rpath.iter().flat_map(|text| folders(text, &path)));
        }
        rpath.extend_from_slice(inherited);
        Self { path, needs, rpath }
    }

    /// The folders to search for its dependencies. A RUNPATH disables inherited RPATHs.
    fn searched(&self) -> Vec<PathBuf> {
        match &self.needs.runpath {
            Some(text) => folders(text, &self.path),
            None => self.rpath.clone(),
        }
    }
}

/// All files that loading a library needs, except the library: its direct and indirect dependencies, and the loader's
/// cache. The paths are unresolved, as the loader opens them.
///
/// # Errors
/// The file that is missing, unreadable or no library for this program's processor; or there are too many libraries.
pub fn library_closure(library: &Path) -> Result<Vec<PathBuf>, String> {
    let library = std::path::absolute(library).map_err(|error| format!("{}: {error}", library.display()))?;
    let first = elf::read(&library)?;
    let machine = first.machine;
    let cache = cache::Cache::open(Path::new(CACHE));
    let mut closure: BTreeSet<PathBuf> = first.interpreter.iter().cloned().collect();
    // A name is searched only once.
    let mut names = HashSet::new();
    let mut queue = VecDeque::from([Found::new(library.clone(), first, &[])]);
    while let Some(found) = queue.pop_front() {
        let searched = found.searched();
        for needed in &found.needs.needed {
            if !names.insert(needed.clone()) {
                continue;
            }
            let paths = find(needed, &searched, cache.as_ref(), machine);
            if paths.is_empty() {
                return Err(format!("{} needs the library '{needed}', which is not found", found.path.display()));
            }
            for path in paths {
                if closure.insert(path.clone()) {
                    if closure.len() > MAX_LIBRARIES {
                        return Err(format!("{} needs more than {MAX_LIBRARIES} libraries", library.display()));
                    }
                    let needs = elf::read(&path)?;
                    queue.push_back(Found::new(path, needs, &found.rpath));
                }
            }
        }
    }
    if cache.is_some() {
        closure.insert(PathBuf::from(CACHE));
    }
    closure.remove(&library);
    Ok(closure.into_iter().collect())
}

/// The absolute folders of an RPATH or a RUNPATH.
fn folders(text: &str, library: &Path) -> Vec<PathBuf> {
    let origin = library.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let replaced = text.split(':').map(|folder| folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin));
    // A relative folder would depend on the process's working folder.
    replaced.filter(|folder| folder.starts_with('/') && !folder.contains('$')).map(PathBuf::from).collect()
}

/// All files that the loader may open for a needed library: the matching files in the first place with a match.
fn find(needed: &str, searched: &[PathBuf], cache: Option<&cache::Cache>, machine: elf::Machine) -> Vec<PathBuf> {
    if needed.contains('/') {
        return if needed.starts_with('/') { vec![PathBuf::from(needed)] } else { Vec::new() };
    }
    let fits = |path: &PathBuf| elf::read(path).is_ok_and(|needs| needs.machine == machine);
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let multiarch = ["/lib", "/usr/lib"].map(|folder| Path::new(folder).join(&triplet));
    let defaults = multiarch.into_iter().chain(DEFAULT_FOLDERS.map(PathBuf::from));
    let cached = || cache.map_or_else(Vec::new, |cache| cache.paths(needed));
    let own = searched.iter().map(|folder| variants(folder, needed));
    let places = own.chain(std::iter::once_with(cached)).chain(defaults.map(|folder| variants(&folder, needed)));
    let mut found = places.map(|paths| paths.into_iter().filter(fits).collect::<Vec<_>>());
    found.find(|paths| !paths.is_empty()).unwrap_or_default()
}

/// A library in a folder, and in its subfolders for newer processors.
fn variants(folder: &Path, needed: &str) -> Vec<PathBuf> {
    let mut paths = vec![folder.join(needed)];
    if let Ok(entries) = std::fs::read_dir(folder.join("glibc-hwcaps")) {
        paths.extend(entries.flatten().map(|entry| entry.path().join(needed)));
    }
    paths.retain(|path| path.is_file());
    paths
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_closure_of_this_program_is_what_the_loader_mapped() {
        let program = std::env::current_exe().unwrap();
        let closure = library_closure(&program).unwrap();
        let canonical: BTreeSet<PathBuf> = closure.iter().map(|path| path.canonicalize().unwrap()).collect();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped: BTreeSet<PathBuf> = maps
            .lines()
            .filter_map(|line| line.split_whitespace().nth(5))
            .filter(|path| path.contains(".so"))
            .map(PathBuf::from)
            .collect();
        assert!(!mapped.is_empty());
        assert_eq!(mapped.difference(&canonical).collect::<Vec<_>>(), Vec::<&PathBuf>::new());
        assert!(closure.contains(&PathBuf::from(CACHE)) || !Path::new(CACHE).exists());
    }

    #[test]
    fn folders_of_a_runpath_are_absolute_and_know_the_origin() {
        let found = folders("$ORIGIN/../lib:${ORIGIN}:relative::/opt/$LIB:/opt/x", Path::new("/a/b/c.so"));
        assert_eq!(found, ["/a/b/../lib", "/a/b", "/opt/x"].map(PathBuf::from));
    }

    #[test]
    fn what_is_no_library_is_told_and_not_read_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lib.so");
        assert!(library_closure(&path).unwrap_err().starts_with(&format!("{}: No such file", path.display())));
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        for bytes in [&b""[..], b"\x7fELF", &own[..64], &own[..200], &[0xff; 4096]] {
            std::fs::write(&path, bytes).unwrap();
            let refused = library_closure(&path).unwrap_err();
            assert!(refused.contains(" is not a shared library: "), "{} bytes: {refused}", bytes.len());
        }
    }
}
