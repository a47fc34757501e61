//! Paths of wallets on disk, and the list of wallets to load at startup.
//!
//! Clients may name a wallet by an absolute path, as bitcoind allows. The host never writes to that path. It keeps the folders of these
//! wallets side by side in [`ABSOLUTE`], each named after its wallet's escaped name.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};

use bitcoin::hashes::{Hash, sha256};
use outrigger_service::wallet::check_name;
use outrigger_service::{ErrorKind, ServiceError};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::{Result, WalletError};
use super::store::{DATA_FILE, LOCK_FILE};
use outrigger_base::replace::{FRESH, replace_file, unless_absent};
use outrigger_disk::MAKING;

const LOAD_FILE: &str = "load.json";
/// Lists clients' unfinished files.
pub const NOTES_FILE: &str = "unfinished.json";
/// The policies of each key of guarded wallets.
pub const GUARDED_FILE: &str = "guarded.json";
const LISTS: [&str; 3] = [LOAD_FILE, NOTES_FILE, GUARDED_FILE];
/// A marker file beside a wallet's data file: that file may contain a former key. A mark inside it identifies the key.
const FORMER_KEY_FILE: &str = "former-key";
/// The parent of these folders, inside the wallets' folder. The names of other wallets cannot contain it.
const ABSOLUTE: &str = "outrigger.absolute";
/// The file with a wallet's name, in a folder whose own name is a hash.
const NAME_FILE: &str = "wallet-name";
/// The longest escaped name, in bytes. Most systems allow 255.
const MAX_ESCAPED: usize = 200;
/// The characters that are not escaped. All others are invalid in file names on some system, or part of an escape.
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// Names that no wallet's folder may have.
const OWN_FILES: [&str; 5] = [ABSOLUTE, MAKING, DATA_FILE, LOCK_FILE, FORMER_KEY_FILE];
/// The maximum depth of a wallet below the wallets' folder.
const MAX_DEPTH: usize = 8;

/// Refuses the names that Bitcoin Core 32 refuses, with its messages.
pub fn check_normal(name: &str) -> Result<()> {
    let absolute = name.starts_with('/');
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    let leading = parts.iter().take_while(|part| **part == "..").count();
    let below = parts.iter().skip(leading).any(|part| *part == ".." || (*part == "." && name != "."));
    let reason = if below || (leading > 0 && (absolute || (name.ends_with('/') && leading == parts.len()))) {
        "Wallet name given as a path must be normalized"
    } else if leading > 0 || name == "." {
        "Wallet name given as a relative path cannot begin with ./ or ../, for wallets not in the walletdir, please use an absolute path."
    } else if absolute && parts.is_empty() {
        "Wallet name cannot be the root path"
    } else {
        return Ok(());
    };
    Err(ServiceError::new(ErrorKind::Refused, format!("Wallet file verification failed. {reason}")).into())
}

/// The folder of the wallet `name` below `dir`. The empty name is the wallet in `dir` itself. A name that is an
/// absolute path has its folder below `dir`, too.
///
/// Refuses a name that leads out of `dir`, is not a plain path, or is the name of one of the program's own files.
pub fn folder(dir: &Path, name: &str) -> Result<PathBuf> {
    let refuse = |why: &str| {
        let detail = format!("Wallet file verification failed. The wallet name '{name}' is not allowed: {why}.");
        Err(ServiceError::new(ErrorKind::Refused, detail).into())
    };
    check_name(name)?;
    if name.chars().any(char::is_control) {
        return refuse("it holds a control character");
    }
    let path = Path::new(name);
    let is_absolute = path.is_absolute();
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(part) if !is_absolute && is_own(part) => {
                return refuse("a file of this program has that name");
            }
            Component::Normal(_) => plain.push(component),
            Component::RootDir if path.parent().is_some() => plain.push(component),
            _ => return refuse("it must be a path without '..', absolute or below the folder of the wallets"),
        }
    }
    // `components` drops parts of `a//b`, `a/` and `a/./b`, so one folder would have several names.
    if plain.as_os_str() != path.as_os_str() {
        return refuse("it is not in its shortest form");
    }
    if is_absolute {
        return Ok(dir.join(ABSOLUTE).join(absolute_folder_name(name)));
    }
    if plain.components().count() > MAX_DEPTH {
        return refuse("it has too many parts");
    }
    Ok(dir.join(plain))
}

/// The name of a wallet's folder: the wallet's name with `%` escapes, or its SHA-256 if that is too long. Two wallets
/// never share a folder: escaped names begin with `%2F`, hashes do not.
fn absolute_folder_name(name: &str) -> String {
    let escaped = utf8_percent_encode(name, UNESCAPED).to_string();
    if escaped.len() <= MAX_ESCAPED { escaped } else { sha256::Hash::hash(name.as_bytes()).to_string() }
}

/// Creates a wallet's folder, with the wallet's name in it if the folder's own name is a hash.
fn make_absolute(folder: &Path, name: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    if utf8_percent_encode(name, UNESCAPED).to_string().len() > MAX_ESCAPED {
        let mut file = fs::File::create(folder.join(NAME_FILE))?;
        file.write_all(name.as_bytes())?;
        file.sync_all()?;
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The name of the wallet in a folder named `called`. `None` if the file with the name is missing or does not match.
fn absolute_name(folder: &Path, called: &str) -> Option<String> {
    let decoded = || percent_decode_str(called).decode_utf8().ok().map(String::from);
    let name = fs::read_to_string(folder.join(NAME_FILE)).ok().or_else(decoded)?;
    // A hash decodes to itself, without a leading slash.
    (name.starts_with('/') && absolute_folder_name(&name) == called).then_some(name)
}

/// As [`folder`], but creates the folder if it is missing.
pub fn make_folder(dir: &Path, name: &str) -> Result<PathBuf> {
    let folder = folder(dir, name)?;
    if Path::new(name).is_absolute() {
        make_absolute(&folder, name)?;
    } else {
        fs::create_dir_all(&folder)?;
    }
    Ok(folder)
}

/// Whether the program has, or could create, a file with this name in a wallet's folder.
fn is_own(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    let list = name.strip_suffix(FRESH).unwrap_or(&name);
    OWN_FILES.contains(&name.as_str()) || LISTS.contains(&list)
}

/// Removes the unfinished files that a killed process left below `dir`.
pub fn remove_unfinished(dir: &Path) -> Result<()> {
    for fresh in LISTS.map(|name| dir.join(format!("{name}{FRESH}"))) {
        if fresh.is_file() {
            fs::remove_file(fresh)?;
        }
    }
    remove_unfinished_in(dir, 0);
    Ok(())
}

/// Logs failures and continues: `folder` may not be a wallet's.
fn remove_unfinished_in(folder: &Path, depth: usize) {
    let entries = match outrigger_disk::finish(folder).and_then(|()| fs::read_dir(folder)) {
        Ok(entries) => entries,
        Err(error) => {
            let path = folder.display();
            return tracing::warn!(%path, %error, "cannot search for unfinished files here, or remove them");
        }
    };
    for entry in entries.flatten() {
        if depth < MAX_DEPTH && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_unfinished_in(&entry.path(), depth + 1);
        }
    }
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
        if !entry.file_type()?.is_dir() || part == MAKING {
            continue;
        }
        if part == ABSOLUTE {
            collect_absolute(&entry.path(), names)?;
        } else {
            let inner = if name.is_empty() { part } else { format!("{name}/{part}") };
            collect(&entry.path(), &inner, depth + 1, names)?;
        }
    }
    Ok(())
}

fn collect_absolute(folder: &Path, names: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.join(DATA_FILE).is_file() {
            continue;
        }
        match path.file_name().and_then(OsStr::to_str).and_then(|called| absolute_name(&path, called)) {
            Some(name) => names.push(name),
            None => tracing::warn!(folder = %path.display(), "the wallet there is not listed: its name cannot be read"),
        }
    }
    Ok(())
}

/// Creates and syncs the marker file: the wallet's data file may contain a former key.
pub fn note_former_key(folder: &Path) -> io::Result<()> {
    fs::File::create(folder.join(FORMER_KEY_FILE))?.sync_all()?;
    fs::File::open(folder)?.sync_all()
}

pub fn forget_former_key(folder: &Path) -> io::Result<()> {
    unless_absent(fs::remove_file(folder.join(FORMER_KEY_FILE)))
}

pub fn may_have_former_key(folder: &Path) -> bool {
    folder.join(FORMER_KEY_FILE).exists()
}

/// Removes a wallet's files, and its folder if nothing else is in it.
pub fn discard(folder: &Path) {
    let _ = outrigger_disk::finish(folder);
    for file in [DATA_FILE, LOCK_FILE, FORMER_KEY_FILE, NAME_FILE] {
        let _ = fs::remove_file(folder.join(file));
    }
    let _ = fs::remove_dir(folder);
}

/// Removes a wallet that is not loaded, and the parent folders that this leaves empty.
pub fn remove(dir: &Path, name: &str) -> Result<()> {
    let folder = folder(dir, name)?;
    discard(&folder);
    // A folder with another wallet in it is not empty.
    for above in folder.ancestors().skip(1).take_while(|above| above.starts_with(dir) && *above != dir) {
        if fs::remove_dir(above).is_err() {
            break;
        }
    }
    Ok(())
}

/// The wallets to load at startup: the names in [`LOAD_FILE`], a JSON list.
pub fn load_list(dir: &Path) -> Result<Vec<String>> {
    read(dir, LOAD_FILE, "the list of wallets to load at start")
}

/// Decodes a JSON file; the default if it does not exist. Errors name the file as `list`.
pub fn read<T: DeserializeOwned + Default>(dir: &Path, name: &str, list: &'static str) -> Result<T> {
    let path = dir.join(name);
    let unreadable = |reason: String| WalletError::List { list, path: path.clone(), reason };
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
        Err(error) => Err(unreadable(error.to_string())),
    }
}

/// Adds a wallet to the load list, or removes it.
pub fn set_load_on_startup(dir: &Path, name: &str, load: bool) -> Result<()> {
    let mut names = load_list(dir)?;
    if names.iter().any(|other| other == name) == load {
        return Ok(());
    }
    names.retain(|other| other != name);
    names.extend(load.then(|| name.to_owned()));
    replace(dir, LOAD_FILE, &names)
}

pub fn replace(dir: &Path, name: &str, list: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec(list).map_err(io::Error::from)?;
    Ok(replace_file(&dir.join(name), &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_folder_and_are_none_of_the_hosts_own_files() {
        let dir = Path::new("/wallets");
        assert_eq!(folder(dir, "a/b c").unwrap(), Path::new("/wallets/a/b c"));
        assert_eq!(folder(dir, "").unwrap(), Path::new("/wallets"));
        assert!(folder(dir, "unfinished business").is_ok());
        let own = ["load.json.new", "LOAD.JSON", "a/unfinished.json", "data.mdb.making/y"];
        let paths = ["..", "a/../..", "a\0b", "a//b", "a/", "./a", ".", "data.mdb", "load.json", "a/lock.mdb"];
        for name in paths.into_iter().chain(own) {
            assert!(folder(dir, name).is_err(), "{name:?}");
        }
        assert_eq!(folder(dir, "/etc/data.mdb").unwrap(), Path::new("/wallets/outrigger.absolute/%2Fetc%2Fdata.mdb"));
        for name in ["/", "/..", "/wallets/../x", "//a", "/a//b", "/a/", "/./a", "/a\nb", "outrigger.absolute/%2Fetc"] {
            assert!(folder(dir, name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn wallets_named_by_absolute_paths_are_listed_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path();
        let long = format!("/home/{}", "a".repeat(600));
        let names = ["%2Fa%2Fb", "/a%2Fb", "/a/b", &long, "a/b"];
        for name in names {
            let folder = make_folder(dir, name).unwrap();
            assert!(folder.starts_with(dir), "{}", folder.display());
            assert!(!folder.join(DATA_FILE).exists(), "{name}");
            fs::write(folder.join(DATA_FILE), name).unwrap();
        }
        assert_eq!(list(dir).unwrap(), names);
        names.iter().for_each(|name| remove(dir, name).unwrap());
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
    }

    #[test]
    fn names_are_refused_in_the_words_of_bitcoin_core_32() {
        let normal = "Wallet name given as a path must be normalized";
        let relative = "Wallet name given as a relative path cannot begin with ./ or ../, for wallets not in the walletdir, please use an absolute path.";
        for (names, reason) in [
            (&["a/../b", "a/./b", "./x", "../", "x/..", "/a/../b", "/tmp/./q"][..], normal),
            (&["..", ".", "../x"], relative),
            (&["/"], "Wallet name cannot be the root path"),
        ] {
            for name in names {
                let told = check_normal(name).unwrap_err().to_string();
                assert!(told.ends_with(&format!("Wallet file verification failed. {reason}")), "{name}: {told}");
            }
        }
        for name in ["", "a", "a/b", "a//b", "a/", "/a", "...", "a/...", ".a", "..a"] {
            assert!(check_normal(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn wallet_files_that_a_kill_left_unfinished_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b/data.mdb.making")).unwrap();
        for file in ["load.json.new", "a/b/data.mdb.making/data.mdb", "a/b/data.mdb"] {
            fs::write(dir.path().join(file), "half").unwrap();
        }
        remove_unfinished(dir.path()).unwrap();
        assert_eq!(list(dir.path()).unwrap(), ["a/b"]);
        assert_eq!(fs::read_dir(dir.path().join("a/b")).unwrap().count(), 1);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_unreadable_load_list_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(LOAD_FILE), "[1").unwrap();
        let error = load_list(dir.path()).unwrap_err().to_string();
        let named = format!("the list of wallets to load at start, {}/load.json, cannot be read", dir.path().display());
        assert!(error.starts_with(&named), "{error}");
    }

    #[test]
    fn the_load_list_keeps_its_order_and_has_no_name_twice() {
        let dir = tempfile::tempdir().unwrap();
        for (name, load) in [("b", true), ("a", true), ("b", true), ("c", true), ("a", false)] {
            set_load_on_startup(dir.path(), name, load).unwrap();
        }
        assert_eq!(load_list(dir.path()).unwrap(), ["b", "c"]);
    }

    #[test]
    fn folders_give_the_names_back_and_no_two_names_share_one() {
        let dir = tempfile::tempdir().unwrap();
        let long = format!("/home/{}", "é/".repeat(100));
        let names = ["/a/b", "/a%2Fb", "/a%252Fb", "/a b", "/é", &long, &format!("{long}x")];
        for name in names {
            let called = absolute_folder_name(name);
            assert!(called.len() <= MAX_ESCAPED && !called.contains('/'), "{called}");
            let folder = dir.path().join(&called);
            assert!(!folder.exists(), "{name}");
            make_absolute(&folder, name).unwrap();
            assert_eq!(absolute_name(&folder, &called).as_deref(), Some(name));
        }
    }

    #[test]
    fn a_folder_whose_name_was_lost_or_changed_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let name = format!("/{}", "a".repeat(300));
        let called = absolute_folder_name(&name);
        assert_eq!(absolute_name(dir.path(), &called), None);
        make_absolute(dir.path(), &name).unwrap();
        assert_eq!(absolute_name(dir.path(), &called), Some(name));
        fs::write(dir.path().join(NAME_FILE), "/another").unwrap();
        assert_eq!(absolute_name(dir.path(), &called), None);
    }
}
