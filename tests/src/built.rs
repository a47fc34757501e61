//! The binary and the plugins, as cargo built them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

pub struct Built {
    pub binary: PathBuf,
    /// The binary in a folder without libraries, where it uses its own copies of the groups.
    pub alone: PathBuf,
    /// The plugins' libraries, by the name of their crate's library.
    pub libraries: HashMap<String, PathBuf>,
    pub programs: HashMap<String, PathBuf>,
    /// The SDK, for crates that are compiled against it.
    pub sdk: PathBuf,
}

impl Built {
    pub fn library(&self, name: &str) -> &PathBuf {
        self.libraries.get(name).unwrap_or_else(|| panic!("no library {name} among {:?}", self.libraries.keys()))
    }

    pub fn program(&self, name: &str) -> &PathBuf {
        self.programs.get(name).unwrap_or_else(|| panic!("no program {name} among {:?}", self.programs.keys()))
    }

    /// The folder that holds the binary and the plugins.
    pub fn folder(&self) -> PathBuf {
        self.binary.parent().unwrap().to_owned()
    }
}

/// Builds the workspace, once per run, and returns the paths of the results.
///
/// `cargo test` builds neither the binary nor the plugins on a fresh clone, so the tests ask for them. Where everything
/// is fresh this takes a fraction of a second.
pub fn built() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = Command::new(cargo);
        command.args(["build", "--workspace", "--message-format=json-render-diagnostics"]);
        // The cargo that runs this test describes the test's crate in variables. The build script of ring reads variables of these
        // names. So cargo would compile ring and its dependents again, now and at the next `cargo test`.
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_")) {
                command.env_remove(name);
            }
        }
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        read(&String::from_utf8_lossy(&output.stdout))
    })
}

fn read(messages: &str) -> Built {
    let mut binary = None;
    let (mut libraries, mut programs) = (HashMap::new(), HashMap::new());
    let mut sdk = None;
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if message["reason"] != "compiler-artifact" {
            continue;
        }
        let name = message["target"]["name"].as_str().unwrap_or_default().to_owned();
        match (message["executable"].as_str(), name.as_str()) {
            (Some(path), "outrigger") => binary = Some(PathBuf::from(path)),
            (Some(path), _) => drop(programs.insert(name.clone(), PathBuf::from(path))),
            _ => {}
        }
        for file in message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if file.ends_with(std::env::consts::DLL_SUFFIX) {
                libraries.insert(name.clone(), PathBuf::from(file));
            }
            if name == "outrigger_sdk" && file.ends_with(".rlib") {
                sdk = Some(PathBuf::from(file));
            }
        }
    }
    let binary = binary.unwrap_or_else(|| panic!("cargo built no binary 'outrigger'"));
    Built {
        alone: alone(&binary),
        binary,
        libraries,
        programs,
        sdk: sdk.unwrap_or_else(|| panic!("cargo built no SDK")),
    }
}

fn alone(binary: &Path) -> PathBuf {
    let folder = binary.with_file_name("alone").join("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let (place, fresh) = (folder.join("outrigger"), folder.join(std::process::id().to_string()));
    std::fs::hard_link(binary, &fresh).unwrap();
    std::fs::rename(&fresh, &place).unwrap();
    // `rename` does nothing if both are the same file already.
    let _ = std::fs::remove_file(&fresh);
    place
}
