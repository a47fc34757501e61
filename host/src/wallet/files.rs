//! Where wallets lie on disk, and the list of those that are loaded at every start.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use outrigger_sdk::service::{ErrorKind, ServiceError};

use super::error::Result;
use super::load_list::{self, ListError};
use super::store::{DATA_FILE, LOCK_FILE};
use crate::disk::MAKING;

/// The list of wallets to load, beside the wallets' folders.
const LOAD_FILE: &str = "load.json";
/// How deep below the wallets' folder a wallet may lie.
const MAX_DEPTH: usize = 8;
/// The longest name of a wallet, in bytes.
const MAX_NAME: usize = 1024;

/// The folder of the wallet `name` below `dir`. The empty name is a wallet's too, in `dir` itself.
///
/// # Errors
/// `Refused` for a name that would lead out of `dir`, is no plain relative path, or is a file of this program's.
pub fn folder(dir: &Path, name: &str) -> Result<PathBuf> {
    let refuse = |why: &str| {
        let detail = format!("Wallet file verification failed. The wallet name '{name}' is not allowed: {why}.");
        Err(ServiceError::new(ErrorKind::Refused, detail).into())
    };
    if name.len() > MAX_NAME {
        return refuse("it is too long");
    }
    if name.chars().any(char::is_control) {
        return refuse("it holds a control character");
    }
    let path = Path::new(name);
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(part) if [LOAD_FILE, DATA_FILE, LOCK_FILE, MAKING].iter().any(|file| part == *file) => {
                return refuse("a file of this program has that name");
            }
            Component::Normal(part) => plain.push(part),
            _ => return refuse("it must be a path below the folder of the wallets"),
        }
    }
    // What components drop (`a//b`, `a/`, `a/./b`) would give one folder several names.
    if plain.as_os_str() != path.as_os_str() {
        return refuse("it is not in its shortest form");
    }
    if plain.components().count() > MAX_DEPTH {
        return refuse("it has too many parts");
    }
    Ok(dir.join(plain))
}

/// The names of all wallets below `dir`, sorted.
pub fn list(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    collect(dir, "", 0, &mut names)?;
    names.sort_unstable();
    Ok(names)
}

fn collect(folder: &Path, name: &str, depth: usize, names: &mut Vec<String>) -> Result<()> {
    if folder.join(DATA_FILE).is_file() {
        names.push(name.to_owned());
    }
    if depth == MAX_DEPTH {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Ok(part) = entry.file_name().into_string() else { continue };
        if entry.file_type()?.is_dir() && part != MAKING {
            let inner = if name.is_empty() { part } else { format!("{name}/{part}") };
            collect(&entry.path(), &inner, depth + 1, names)?;
        }
    }
    Ok(())
}

/// The wallets to load at start.
pub fn load_list(dir: &Path) -> Result<Vec<String>> {
    match fs::read(dir.join(LOAD_FILE)) {
        Ok(text) => Ok(load_list::read(&text).map_err(|error| unusable(dir, &error))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn unusable(dir: &Path, error: &ListError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", dir.join(LOAD_FILE).display()))
}

/// Adds a wallet to the list or takes it off. The file is replaced in one step.
pub fn set_load_on_startup(dir: &Path, name: &str, load: bool) -> Result<()> {
    let mut names = load_list(dir)?;
    if names.iter().any(|other| other == name) == load {
        return Ok(());
    }
    names.retain(|other| other != name);
    if load {
        names.push(name.to_owned());
    }
    let fresh = dir.join("load.json.new");
    let mut file = fs::File::create(&fresh)?;
    file.write_all(&load_list::write(&names).map_err(io::Error::from)?)?;
    file.sync_all()?;
    fs::rename(&fresh, dir.join(LOAD_FILE))?;
    Ok(fs::File::open(dir)?.sync_all()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_folder() {
        let dir = Path::new("/wallets");
        assert_eq!(folder(dir, "a/b c").unwrap(), Path::new("/wallets/a/b c"));
        assert_eq!(folder(dir, "").unwrap(), Path::new("/wallets"));
        for name in ["..", "a/../..", "/etc", "a\0b", "a//b", "a/", "./a", ".", "data.mdb", "load.json", "a/lock.mdb"] {
            assert!(folder(dir, name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_load_list_keeps_its_order_and_has_no_name_twice() {
        let dir = tempfile::tempdir().unwrap();
        for (name, load) in [("b", true), ("a", true), ("b", true), ("c", true), ("a", false)] {
            set_load_on_startup(dir.path(), name, load).unwrap();
        }
        assert_eq!(load_list(dir.path()).unwrap(), ["b", "c"]);
    }
}
