//! Absolute paths.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// `HOME` names no folder for a path in the home directory.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} is in the home directory, and HOME does not name one: give an absolute path (--datadir for data)", .0.display())]
pub struct NoHome(PathBuf);

/// A path of the configuration, which parsing makes [absolute].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PathBuf")]
pub struct AbsolutePath(PathBuf);

impl TryFrom<PathBuf> for AbsolutePath {
    type Error = NoHome;

    fn try_from(path: PathBuf) -> Result<Self, NoHome> {
        absolute(&path).map(Self)
    }
}

impl Deref for AbsolutePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

/// Replaces a leading `~` by the home directory, and makes the path absolute, since an isolated plugin has another
/// working directory.
///
/// # Errors
/// [`NoHome`] if `HOME` is not an absolute path.
pub fn absolute(path: &Path) -> Result<PathBuf, NoHome> {
    absolute_in(path, std::env::var_os("HOME").map(PathBuf::from))
}

/// [`absolute`] for a path in a text.
pub fn absolute_text(path: &str) -> Result<String, NoHome> {
    absolute(Path::new(path)).map(|path| path.display().to_string())
}

/// A path or a name, quoted for a shell if necessary.
#[must_use]
pub fn quoted(path: impl AsRef<Path>) -> String {
    let path = path.as_ref().display().to_string();
    let is_plain = !path.is_empty() && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    if is_plain { path } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

fn absolute_in(path: &Path, home: Option<PathBuf>) -> Result<PathBuf, NoHome> {
    let Ok(rest) = path.strip_prefix("~") else {
        return Ok(std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    };
    let home = home.filter(|home| home.is_absolute()).ok_or_else(|| NoHome(path.to_owned()))?;
    Ok(home.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_quoted_paths() {
        assert_eq!(quoted("/home/a/x-1.so"), "/home/a/x-1.so");
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }

    #[test]
    fn a_folder_in_the_home_directory_needs_one() {
        let of = |path: &str, home: Option<&str>| absolute_in(Path::new(path), home.map(PathBuf::from)).ok();
        assert_eq!(of("~/.outrigger", Some("/home/a")), Some("/home/a/.outrigger".into()));
        assert_eq!(of("/x/~/y", None), Some("/x/~/y".into()));
        assert_eq!(of("~x", None), Some(std::env::current_dir().unwrap().join("~x")));
        for home in [None, Some(""), Some("home/a")] {
            assert_eq!(of("~/.outrigger", home), None, "{home:?}");
        }
    }
}
