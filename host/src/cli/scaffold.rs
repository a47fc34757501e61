//! `outrigger plugin new`: writes a crate that builds, with a test that passes on the in-memory host.

use std::fs;
use std::path::{Path, PathBuf};

/// The crate's files, with `{{name}}`, `{{library}}`, `{{type}}` and `{{sdk}}` to be filled in.
const FILES: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("scaffold/Cargo.toml.in")),
    ("manifest.json", include_str!("scaffold/manifest.json.in")),
    ("src/lib.rs", include_str!("scaffold/lib.rs.in")),
];

/// Writes the crate into a new folder of the plugin's name, and says what to do next.
///
/// # Errors
/// A name that no plugin can have, a folder that exists, no SDK, or files that cannot be written.
pub fn create(name: &str, sdk: Option<&Path>) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    if !begins_well || !name.bytes().all(good) {
        return Err(format!("'{name}' is no plugin's name: use lower-case letters, digits and '-', a letter first"));
    }
    let sdk = match sdk {
        Some(sdk) => sdk.canonicalize().map_err(|error| format!("{}: {error}", sdk.display()))?,
        None => find_sdk().ok_or("the SDK's crate was not found; say where it is with --sdk")?,
    };
    let folder = PathBuf::from(name);
    if folder.exists() {
        return Err(format!("{} exists already", folder.display()));
    }
    write(&folder, name, &sdk).map_err(|error| format!("{}: {error}", folder.display()))?;
    let library = name.replace('-', "_");
    Ok(format!(
        "Wrote {name}/. Next:\n\n  cd {name} && cargo test && cargo build --release\n\nand in the host's configuration:\n\n  \
         [[plugins]]\n  file = \"{name}/target/release/liboutrigger_{library}.so\"\n  grants = [\"chain/1\", \"log/1\"]"
    ))
}

fn write(folder: &Path, name: &str, sdk: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    for (file, text) in FILES {
        let text = text
            .replace("{{name}}", name)
            .replace("{{library}}", &name.replace('-', "_"))
            .replace("{{method}}", &name.replace('-', ""))
            .replace("{{type}}", &type_name(name))
            .replace("{{sdk}}", &sdk.display().to_string());
        fs::write(folder.join(file), text)?;
    }
    Ok(())
}

/// `acme-mining` as `AcmeMining`.
fn type_name(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    name.split('-').map(capital).collect()
}

/// The SDK's crate in the checkout that the executable was built in.
fn find_sdk() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    executable.ancestors().map(|folder| folder.join("sdk")).find(|sdk| sdk.join("Cargo.toml").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_anything_is_written() {
        for name in ["", "Acme", "../up", "9lives", "a b"] {
            assert!(create(name, None).unwrap_err().contains("is no plugin's name"), "{name}");
        }
        assert_eq!(type_name("acme-mining2"), "AcmeMining2");
    }
}
