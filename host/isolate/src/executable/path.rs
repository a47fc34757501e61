//! A program by its path, on systems that cannot start a descriptor. It works as long as the file is the same.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

#[derive(Debug)]
pub struct Executable {
    file: File,
    path: PathBuf,
}

impl Executable {
    pub fn current() -> std::io::Result<Self> {
        Self::at(std::env::current_exe()?)
    }

    fn at(path: PathBuf) -> std::io::Result<Self> {
        Ok(Self { file: File::open(&path)?, path })
    }

    /// The path to start.
    ///
    /// # Errors
    /// The path names another file now.
    pub(super) fn place(&self) -> std::io::Result<PathBuf> {
        let which = |one: Metadata| (one.dev(), one.ino(), one.len(), one.mtime(), one.mtime_nsec());
        if which(self.file.metadata()?) == which(std::fs::metadata(&self.path)?) {
            return Ok(self.path.clone());
        }
        let why = format!("{} is another file than when the host was started: restart the host", self.path.display());
        Err(std::io::Error::other(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_file_in_its_place_is_seen() {
        assert!(Executable::current().unwrap().place().is_ok());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "one").unwrap();
        let program = Executable::at(path.clone()).unwrap();
        assert_eq!(program.place().unwrap(), path);
        std::fs::rename(&path, folder.path().join("former")).unwrap();
        assert!(program.place().is_err(), "nothing is there");
        std::fs::write(&path, "two").unwrap();
        let refusal = program.place().unwrap_err().to_string();
        assert!(refusal.ends_with("is another file than when the host was started: restart the host"), "{refusal}");
    }
}
