//! Where the host searches for plugins.

use std::path::{Path, PathBuf};

use outrigger_plugins::linked::Sources;

use super::RunArgs;
use crate::groups;

/// Where the host searches for plugins: in the given folders, in [`own_folders`], and finally in the program itself.
pub(super) fn sources(args: &RunArgs) -> Sources {
    let folders = args.plugin_dir.iter().chain(&args.dev_dir).cloned().chain(own_folders()).collect();
    Sources { folders, linked: &groups::GROUPS, are_named: !args.plugin_dir.is_empty() }
}

/// The folders of the installation's libraries: the executable's folder, and `../lib/outrigger` relative to that.
pub(super) fn own_folders() -> impl Iterator<Item = PathBuf> {
    let own = std::env::current_exe().ok().and_then(|path| path.parent().map(Path::to_owned));
    let installed = own.as_deref().and_then(Path::parent).map(|top| top.join("lib/outrigger"));
    own.into_iter().chain(installed)
}
