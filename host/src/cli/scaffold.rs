//! `outrigger plugin new`: writes a crate that builds, with a test that passes on a real chain.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::groups::is_bundled;

/// The crate's files, with placeholders in double curly brackets.
const FILES: [(&str, &str); 5] = [
    ("Cargo.toml", include_str!("scaffold/Cargo.toml.in")),
    ("src/lib.rs", include_str!("scaffold/lib.rs.in")),
    ("README.md", include_str!("scaffold/README.md.in")),
    ("outrigger.toml", include_str!("scaffold/outrigger.toml.in")),
    (".gitignore", include_str!("scaffold/gitignore.in")),
];

/// The longest name of a new plugin.
const MAX_NAME: usize = 64;

/// Writes the crate into a new folder of the plugin's name. Returns the next steps for the user.
///
/// # Errors
/// A name that no plugin can have, a folder that exists, no SDK, or files that cannot be written.
pub fn create(name: &str, sdk: Option<&Path>) -> Result<String, String> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
    let is_well_formed = begins_well && name.bytes().all(good) && name.split('-').all(|word| !word.is_empty());
    if !is_well_formed || name.len() > MAX_NAME {
        return Err(format!(
            "'{name}' is not a valid plugin name: use at most {MAX_NAME} lower-case letters and digits, a letter first, in \
             words with '-' between them"
        ));
    }
    // The crates that the new one depends on have such names.
    if is_bundled(name) || name.starts_with("outrigger-") {
        return Err(format!("'{name}' is the name of a bundled group or of a crate of the project: use another one"));
    }
    let sdk = match sdk {
        Some(sdk) => sdk.to_owned(),
        None => {
            let executable = std::env::current_exe().map_err(|error| format!("this program's own file: {error}"))?;
            find_sdk(&executable)?
        }
    };
    let sdk = sdk.canonicalize().map_err(|error| format!("{}: {error}", sdk.display()))?;
    if !sdk.join("Cargo.toml").is_file() {
        return Err(format!("{} holds no crate: --sdk is the folder of outrigger-sdk's Cargo.toml", sdk.display()));
    }
    if !testing_beside(&sdk).join("Cargo.toml").is_file() {
        let sdk = sdk.display();
        return Err(format!(
            "{sdk} is not the SDK's folder in a checkout of the project, beside host/testing: --sdk CHECKOUT/sdk"
        ));
    }
    // Without links, since `..` in a relative path follows the real folders.
    let current = std::env::current_dir().and_then(|folder| folder.canonicalize());
    let folder = current.map_err(|error| format!("the current folder: {error}"))?.join(name);
    if folder.exists() {
        return Err(format!("{} exists already", folder.display()));
    }
    write(&names(name, &sdk, &folder), &folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(format!(
        "Wrote {name}/. Next:\n\n  cd {name}\n  cargo test\n  outrigger plugin dev\n\nand in a second terminal:\n\n  \
         outrigger call --datadir ~/.outrigger/dev/{name} {method} 1000\n\nREADME.md in there says more.",
        method = method(name),
    ))
}

/// The placeholders, each with its value.
type Names = [(&'static str, String); 8];

fn names(name: &str, sdk: &Path, folder: &Path) -> Names {
    let library = name.replace('-', "_");
    let library_file = format!("target/release/liboutrigger_{library}{}", std::env::consts::DLL_SUFFIX);
    // Relative to the crate, as a TOML string.
    let path = |to: &Path| toml::Value::String(relative(folder, to).display().to_string()).to_string();
    [
        ("{{name}}", name.to_owned()),
        ("{{library}}", library),
        ("{{library_file}}", library_file),
        ("{{method}}", method(name)),
        ("{{title}}", title(name)),
        ("{{type}}", format!("{}Plugin", title(name))),
        ("{{sdk}}", path(sdk)),
        ("{{testing}}", path(&testing_beside(sdk))),
    ]
}

fn write(names: &Names, folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    for (file, text) in FILES {
        fs::write(folder.join(file), fill(text, names))?;
    }
    Ok(())
}

fn fill(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (mark, name)| text.replace(mark, name))
}

fn method(name: &str) -> String {
    name.replace('-', "")
}

/// The folder of the crate with the hosts for tests, in the checkout that holds the SDK.
fn testing_beside(sdk: &Path) -> PathBuf {
    sdk.parent().unwrap_or(sdk).join("host").join("testing")
}

/// The path from one folder to another. Both are absolute and without links.
fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(from, to)| from == to).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// `acme-mining` as `AcmeMining`.
fn title(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    name.split('-').map(capital).collect()
}

/// The SDK's crate in the checkout that the executable was built in.
fn find_sdk(executable: &Path) -> Result<PathBuf, String> {
    let mut candidates = executable.ancestors().skip(1).map(|folder| folder.join("sdk"));
    candidates.find(|sdk| sdk.join("Cargo.toml").is_file()).ok_or_else(|| {
        format!(
            "{} is not in a checkout of the project, so the SDK's crate was not found; \
             say where it is: --sdk CHECKOUT/sdk",
            executable.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_before_anything_is_written() {
        for name in ["", "Acme", "../up", "9lives", "a b", "acme-", "acme--x", &"a".repeat(65)] {
            assert!(create(name, None).unwrap_err().contains("is not a valid plugin name"), "{name}");
        }
        for name in ["chain", "outrigger-sdk"] {
            assert!(create(name, None).unwrap_err().contains("bundled group"), "{name}");
        }
        assert_eq!(title("acme-mining2"), "AcmeMining2");
    }

    #[test]
    fn the_sdk_is_found_from_within_a_checkout_and_asked_for_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("target/release/outrigger");
        let error = find_sdk(&executable).unwrap_err();
        assert!(
            error.starts_with(&executable.display().to_string()) && error.contains("--sdk CHECKOUT/sdk"),
            "{error}"
        );
        let sdk = folder.path().join("sdk");
        fs::create_dir(&sdk).unwrap();
        fs::write(sdk.join("Cargo.toml"), "").unwrap();
        assert_eq!(find_sdk(&executable), Ok(sdk));
    }

    #[test]
    fn plugin_new_fills_in_every_placeholder() {
        let names = names("acme-mining", Path::new("/a \"b\"/sdk"), Path::new("/c/acme-mining"));
        for (file, text) in FILES {
            let filled = fill(text, &names);
            assert!(!filled.contains("{{"), "{file}: {filled}");
        }
        let code = fill(include_str!("scaffold/lib.rs.in"), &names);
        assert!(code.contains("id = \"acme-mining\"") && code.contains("name = \"acmemining\""), "{code}");
        let cargo: toml::Table = toml::from_str(&fill(include_str!("scaffold/Cargo.toml.in"), &names)).unwrap();
        assert_eq!(cargo["dependencies"]["outrigger-sdk"]["path"].as_str(), Some("../../a \"b\"/sdk"));
        let config: toml::Table = toml::from_str(&fill(include_str!("scaffold/outrigger.toml.in"), &names)).unwrap();
        assert_eq!(config["plugins"][1]["file"].as_str(), Some("acme-mining"));
    }
}
