//! The host's program by its path, for systems that cannot execute a descriptor. Fails once the file is replaced.

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
    /// The path now names another file.
    pub(super) fn place(&self) -> std::io::Result<PathBuf> {
        let which = |one: Metadata| (one.dev(), one.ino(), one.len(), one.mtime(), one.mtime_nsec());
        if which(self.file.metadata()?) == which(std::fs::metadata(&self.path)?) {
            return Ok(self.path.clone());
        }
        let why = format!("{} was replaced after the host had started: restart the host", self.path.display());
        Err(std::io::Error::other(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_refused() {
        assert!(Executable::current().unwrap().place().is_ok());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "one").unwrap();
        let program = Executable::at(path.clone()).unwrap();
        assert_eq!(program.place().unwrap(), path);
        std::fs::rename(&path, folder.path().join("former")).unwrap();
        assert!(program.place().is_err(), "the file is missing");
        std::fs::write(&path, "two").unwrap();
        let refusal = program.place().unwrap_err().to_string();
        assert!(refusal.ends_with("was replaced after the host had started: restart the host"), "{refusal}");
    }
}
