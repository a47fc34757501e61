//! `outrigger plugin store`: exports, imports or removes a plugin's store while no host runs.
//!
//! An export is text with one JSON object per line. The first line has the plugin and the version of the store's content. The last line
//! has the number of rows. Each line between them is a row, in hexadecimal.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::ops::Bound;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bitcoin::hex::{DisplayHex as _, FromHex as _};
use clap::{Args, Subcommand};
use outrigger_services::{STORE_FOLDER, StoreFile, StoreFileError};
use serde::{Deserialize, Serialize};

use super::call::place;
use crate::run::{PLUGINS_FOLDER, lock_folder};

/// The arguments of `outrigger plugin store`.
#[derive(Args)]
pub struct StoreArgs {
    /// The plugin's id.
    id: String,
    /// The host's data directory.
    #[arg(long, global = true, default_value = "~/.outrigger")]
    datadir: PathBuf,
    /// The network of the host; by default the only network with data in the data directory.
    #[arg(long, global = true)]
    network: Option<String>,
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Subcommand)]
enum StoreCommand {
    /// Writes the store to a new file, as JSON lines.
    Export {
        /// The file, which must not exist.
        file: PathBuf,
    },
    /// Creates the store from an exported file. The plugin must not have a store.
    Import {
        /// The exported file.
        file: PathBuf,
    },
    /// Removes the store.
    Drop,
}

/// The first line of an export.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    plugin: String,
    version: u32,
}

/// A line after the first.
#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "neither a row nor the number of rows")]
enum Line {
    Row {
        key: String,
        value: String,
    },
    /// The last line.
    End {
        rows: u64,
    },
}

/// Runs the command. Returns a message for the operator.
///
/// # Errors
/// The id is invalid, a host is running, or the store or the file cannot be used.
pub fn run(args: &StoreArgs) -> Result<String, String> {
    let id = &args.id;
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        return Err(format!("'{id}' is not a valid plugin id: an id consists of lower-case letters, digits and '-'"));
    }
    let data = place::folder(&args.datadir, args.network.as_deref()).map_err(|error| error.to_string())?;
    let _lock = lock_folder(&data).map_err(|error| error.to_string())?;
    let folder = data.join(PLUGINS_FOLDER).join(id).join(STORE_FOLDER);
    // A failed import leaves an empty folder.
    let exists = folder.join(outrigger_disk::DATA_FILE).exists();
    match &args.command {
        StoreCommand::Import { .. } if exists => {
            Err(format!("The plugin '{id}' has a store, {}; drop it first", folder.display()))
        }
        StoreCommand::Import { file } => {
            let rows = import(id, &folder, file).map_err(|error| in_file(file, &error))?;
            Ok(format!("The store of the plugin '{id}' has {rows} rows"))
        }
        _ if !exists => Err(format!("The plugin '{id}' has no store in {}", data.display())),
        StoreCommand::Export { file } => {
            let rows = export(id, &folder, file)?;
            Ok(format!("{} has {rows} rows", file.display()))
        }
        StoreCommand::Drop => {
            std::fs::remove_dir_all(&folder).map_err(|error| in_file(&folder, &error))?;
            Ok(format!("The store of the plugin '{id}' was removed"))
        }
    }
}

fn in_file(file: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", file.display())
}

fn export(id: &str, folder: &Path, path: &Path) -> Result<u64, String> {
    let store = StoreFile::open(folder).map_err(|error| error.to_string())?;
    let head = Head { plugin: id.to_owned(), version: store.version().map_err(|error| error.to_string())? };
    let failed = |error: std::io::Error| in_file(path, &error);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let mut rows = 0;
    line(&mut out, &head).map_err(failed)?;
    let all = (Bound::Unbounded, Bound::Unbounded);
    let written = store.walk(all, false, |key, value| {
        rows += 1;
        line(&mut out, &Line::Row { key: key.to_lower_hex_string(), value: value.to_lower_hex_string() }).map(|()| true)
    });
    written.map_err(|error| error.to_string())?;
    line(&mut out, &Line::End { rows })
        .and_then(|()| out.flush())
        .and_then(|()| out.get_ref().sync_all())
        .map_err(failed)?;
    Ok(rows)
}

fn line(out: &mut impl std::io::Write, json: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, json)?;
    out.write_all(b"\n")
}

/// Creates the store from an export. After an error, there is no store.
fn import(id: &str, folder: &Path, path: &Path) -> Result<u64, StoreFileError> {
    let mut lines = BufReader::new(std::fs::File::open(path)?).lines().enumerate();
    let content =
        |number: usize, error: &dyn std::fmt::Display| StoreFileError::Content(format!("line {}: {error}", number + 1));
    let (_, first) = lines.next().ok_or_else(|| content(0, &"the file is empty"))?;
    let head: Head = serde_json::from_str(&first?).map_err(|error| content(0, &error))?;
    if head.plugin != id {
        return Err(content(0, &format!("this is the store of the plugin '{}'", head.plugin)));
    }
    let mut rows = 0;
    StoreFile::create(folder, head.version, |put| {
        for (number, text) in lines {
            let error = |error: &dyn std::fmt::Display| content(number, error);
            match serde_json::from_str(&text?).map_err(|reason| error(&reason))? {
                Line::Row { key, value } => {
                    let bytes = |hex: &str| Vec::from_hex(hex).map_err(|reason| error(&reason));
                    put(&bytes(&key)?, &bytes(&value)?)?;
                    rows += 1;
                }
                Line::End { rows: written } if written == rows => return Ok(()),
                Line::End { .. } => return Err(error(&"rows are missing")),
            }
        }
        Err(StoreFileError::Content("the file is cut off: its last line has no number of rows".to_owned()))
    })?;
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use outrigger_service::store::{KeyRange, StoreChange, StoreRow};
    use outrigger_service::wire::Blob;

    use super::*;

    #[test]
    fn an_export_is_the_store_again_and_a_cut_one_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = |name: &str| place.path().join(name);
        let store = StoreFile::open(&folder("a")).unwrap();
        let row = |key: &[u8], value: &[u8]| StoreRow { key: Blob(key.to_vec()), value: Blob(value.to_vec()) };
        let puts = vec![row(b"one", b""), row(&[0xff; 511], &[7; 5000])];
        let change = StoreChange { puts: puts.clone(), version: Some(4), ..StoreChange::default() };
        store.commit(&change, |_, _| Ok(())).unwrap();
        drop(store);
        let file = folder("export");
        assert_eq!(export("acme", &folder("a"), &file), Ok(2));
        assert!(export("acme", &folder("a"), &file).is_err(), "an existing file is kept");
        assert_eq!(import("acme", &folder("b"), &file).unwrap(), 2);
        let again = StoreFile::open(&folder("b")).unwrap();
        let rows = again.range(&KeyRange::default(), 10, false).unwrap().read().unwrap().rows;
        assert_eq!((rows, again.version().unwrap()), (puts, 4));
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "{\"plugin\":\"acme\",\"version\":4}");
        assert_eq!(lines[1], "{\"key\":\"6f6e65\",\"value\":\"\"}");
        let refused = |content: String| {
            std::fs::write(&file, content).unwrap();
            let refused = import("acme", &folder("c"), &file).unwrap_err().to_string();
            assert!(!folder("c").join("data.mdb").exists(), "nothing is made");
            refused
        };
        assert!(refused(lines[..3].join("\n")).contains("cut off"));
        assert_eq!(refused([lines[0], lines[1], lines[3]].join("\n")), "line 3: rows are missing");
        assert_eq!(refused([lines[0], "{}"].join("\n")), "line 2: neither a row nor the number of rows");
        assert!(refused(text.replace("6f6e65", "")).contains("A key has 1 to 511 bytes"));
        assert!(refused(text.replace("6f6e65", "6f6e6")).starts_with("line 2: "));
        assert!(refused(text.replace("acme", "other")).contains("this is the store of the plugin 'other'"));
    }
}
