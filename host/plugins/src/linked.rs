//! Plugins linked into the program, and the search for a configured plugin's code: in files, then in the program.

use std::path::PathBuf;

use outrigger_abi::{ManifestHeader, PluginTable};
use outrigger_sdk::Plugin;
use outrigger_sdk::entry::plugin_table;
use outrigger_sdk::manifest::Manifest;

use crate::PluginConfig;
use crate::file::{FileError, PluginFile, candidates};

/// The forms of a plugin: its code is in the program, or in a library.
pub const BUILT_IN: &str = "built-in";
pub const LIBRARY: &str = "library";

/// A plugin linked into the program. Its library would export the same table and manifest.
#[derive(Clone, Copy)]
pub struct LinkedPlugin {
    /// Its bare name in the configuration.
    pub name: &'static str,
    pub table: &'static PluginTable,
    manifest: &'static str,
}

impl LinkedPlugin {
    pub const fn of<P: Plugin>(name: &'static str) -> Self {
        Self { name, table: const { &plugin_table::<P>(0) }, manifest: P::MANIFEST }
    }

    /// # Errors
    /// The manifest is invalid. Such a plugin's library could not be built.
    pub fn manifest(&self) -> Result<Manifest, FileError> {
        let failed = |source| FileError::Manifest { path: PathBuf::from(self.name), source };
        Manifest::parse(self.manifest.as_bytes()).map_err(failed)
    }

    /// The ABI that it was built for.
    pub fn header(&self) -> ManifestHeader {
        let PluginTable { abi_major, abi_minor_needed, abi_minor_built, .. } = *self.table;
        ManifestHeader { abi_major, abi_minor_needed, abi_minor_built, len: self.manifest.len() as u32 }
    }
}

/// Where to search for the code of plugins.
#[derive(Clone, Default)]
pub struct Sources {
    /// The folders for bare names.
    pub folders: Vec<PathBuf>,
    /// Used for bare names that no folder has.
    pub linked: &'static [LinkedPlugin],
    /// Whether the operator named the folders, which must then have the files.
    pub are_named: bool,
}

impl Sources {
    /// Finds a configured plugin and reads its manifest, without executing any of its code. Uses the program's own code only
    /// if the operator gave neither folders nor a `sha256`.
    ///
    /// # Errors
    /// [`FileError::NotFound`] with every path that was tried, or why the file is not a plugin.
    pub fn read(&self, config: &PluginConfig) -> Result<Found, FileError> {
        let looked_for = candidates(&config.file, &self.folders);
        if let Some(path) = looked_for.iter().find(|path| path.is_file()) {
            return PluginFile::read(path).map(|file| Found::File(Box::new(file)));
        }
        let linked = self.linked.iter().find(|linked| linked.name == config.file);
        let why = match linked {
            Some(_) if self.are_named => "; the program's own copy is not used with --plugin-dir",
            Some(_) if config.sha256.is_some() => "; the program's own copy is not used with sha256",
            Some(linked) => return linked.manifest().map(|manifest| Found::Linked(*linked, Box::new(manifest))),
            None => "",
        };
        Err(FileError::NotFound { name: config.file.clone(), looked_for, why })
    }
}

/// The code of a configured plugin. None of it has been executed.
pub enum Found {
    File(Box<PluginFile>),
    Linked(LinkedPlugin, Box<Manifest>),
}

impl Found {
    pub fn manifest(&self) -> &Manifest {
        match self {
            Self::File(file) => &file.manifest,
            Self::Linked(_, manifest) => manifest,
        }
    }

    /// The path of its file; `None` if it is in the program.
    pub fn path(&self) -> Option<PathBuf> {
        match self {
            Self::File(file) => Some(file.path.clone()),
            Self::Linked(..) => None,
        }
    }
}
