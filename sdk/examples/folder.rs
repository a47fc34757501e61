//! A private folder: a plugin that keeps its data in a file of its own format, which one instance has open at a time.
//!
//! ```toml
//! [[plugins]]
//! file = "notes"
//! reload = "after"   # the file is closed before the next instance opens it
//! ```
#![allow(clippy::unwrap_used, reason = "a broken expectation fails the example")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use outrigger_sdk::options::NoOptions;
use outrigger_sdk::serde_json::json;
use outrigger_sdk::testing::StubHost;
use outrigger_sdk::{Host, Plugin, RpcError, methods, plugin};

/// Appends lines to a file.
struct Notes {
    path: PathBuf,
    file: Mutex<File>,
}

#[plugin(id = "notes", summary = "Keeps notes", folder)]
impl Plugin for Notes {
    fn new(host: Host, _: NoOptions) -> Result<Self, String> {
        let about = host.about().map_err(|error| error.to_string())?;
        // The host has created the folder. In a sandbox, the plugin can write to no other.
        let folder = about.folder.ok_or("the host gave no folder")?;
        let path = Path::new(&folder).join("notes");
        let file = File::options().append(true).create(true).open(&path);
        let file = Mutex::new(file.map_err(|error| format!("{}: {error}", path.display()))?);
        Ok(Self { path, file })
    }
}

#[methods(category = "Test")]
impl Notes {
    /// Adds a note.
    ///
    /// * `note` - The text.
    #[method]
    fn addnote(&self, note: String) -> Result<(), RpcError> {
        let mut file = self.file.lock().map_err(|_| RpcError::internal("a note was not written"))?;
        let written = writeln!(file, "{}", note.escape_default()).and_then(|()| file.sync_data());
        written.map_err(|error| RpcError::internal(error.to_string()))
    }

    /// Gives the notes.
    #[method]
    fn getnotes(&self) -> Result<Vec<String>, RpcError> {
        let text = fs::read_to_string(&self.path).map_err(|error| RpcError::internal(error.to_string()))?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

fn main() {
    let folder = std::env::temp_dir().join(format!("outrigger-notes-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let test = StubHost::new();
    test.info.set(|about| about.folder = Some(folder.to_str().unwrap().to_owned()));
    test.start::<Notes>(json!({})).call("addnote", json!(["rent"])).unwrap();
    let again = test.start::<Notes>(json!({}));
    again.call("addnote", json!(["salary"])).unwrap();
    assert_eq!(again.call("getnotes", json!([])), Ok(json!(["rent", "salary"])));
    fs::remove_dir_all(folder).unwrap();
}
