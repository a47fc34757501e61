//! Secret options: the configuration names a file or an environment variable, and the host reads it when an instance starts.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outrigger_sdk::manifest::{Manifest, OptionType};
use serde_json::{Map, Value};

const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// The permissions to read and to write of users who are neither the owner nor in the group.
const OTHERS: u32 = 0o006;

/// Replaces the file or variable name of each secret option by the secret. A line break at the end of a file is not part of the secret.
///
/// # Errors
/// The first secret that cannot be read. The message never contains the secret.
pub fn reveal(manifest: &Manifest, options: &mut Map<String, Value>) -> Result<(), String> {
    for option in manifest.options.iter().filter(|option| option.kind == OptionType::Secret) {
        match options.get_mut(&option.name) {
            None | Some(Value::Null) => {}
            Some(place) => *place = Value::String(read(&option.name, place)?),
        }
    }
    Ok(())
}

fn read(option: &str, place: &Value) -> Result<String, String> {
    let mut members = place.as_object().into_iter().flatten();
    match (members.next(), members.next()) {
        (Some((key, Value::String(file))), None) if key == "file" => {
            let path = Path::new(file);
            if !path.is_absolute() {
                return Err(format!("the secret of option '{option}' is in '{file}', which is no absolute path"));
            }
            read_file(path)
                .map_err(|error| format!("the secret of option '{option}' cannot be read from '{file}': {error}"))
        }
        (Some((key, Value::String(variable))), None) if key == "env" => std::env::var(variable).map_err(|_| {
            format!(
                "the secret of option '{option}' is in the environment variable '{variable}', \
                 which is not set, or is not UTF-8"
            )
        }),
        _ => Err(format!("option '{option}' is a secret: it must be {{ file = \"/path\" }} or {{ env = \"NAME\" }}")),
    }
}

fn read_file(file: &Path) -> io::Result<String> {
    // Opening a named pipe would wait for a writer.
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut text = String::new();
    let opened = File::open(file)?;
    let mode = opened.metadata()?.mode();
    if mode & OTHERS != 0 {
        let mode = format!("{:04o}", mode & 0o7777);
        tracing::warn!(file = %file.display(), mode, "the file of a secret is open to all users; `chmod o-rwx` it");
    }
    opened.take(MAX_SECRET_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_SECRET_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_SECRET_BYTES} bytes")));
    }
    text.truncate(text.strip_suffix('\n').map_or(text.len(), |line| line.trim_end_matches('\r').len()));
    if text.is_empty() {
        return Err(io::Error::other("it is empty"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn revealed(place: Value) -> Result<Value, String> {
        let manifest = json!({"id": "a", "version": "1", "summary": "", "methods": [],
            "options": [{"name": "pin", "type": "secret", "help": ""}]});
        let manifest = Manifest::parse(manifest.to_string().as_bytes()).unwrap();
        let given = Map::from_iter([("pin".to_owned(), place)]);
        let mut options = manifest.options(&given).map_err(|error| error.to_string())?;
        reveal(&manifest, &mut options)?;
        Ok(options.remove("pin").unwrap())
    }

    #[test]
    fn secrets_come_from_files_and_variables_and_are_never_told() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pin");
        std::fs::write(&file, "12 34\n").unwrap();
        assert_eq!(revealed(json!({"file": file})), Ok(json!("12 34")));
        assert_eq!(revealed(json!({"env": "PATH"})), Ok(json!(std::env::var("PATH").unwrap())));

        std::fs::write(&file, "x".repeat(MAX_SECRET_BYTES as usize + 1)).unwrap();
        assert!(revealed(json!({"file": file})).unwrap_err().ends_with("it has more than 65536 bytes"));
        std::fs::write(&file, "\n").unwrap();
        assert!(revealed(json!({"file": file})).unwrap_err().ends_with("it is empty"));
        assert!(revealed(json!({"file": folder.path()})).unwrap_err().ends_with("it is no regular file"));
        let missing = folder.path().join("none");
        assert!(revealed(json!({"file": missing})).unwrap_err().contains("cannot be read from"));
        assert!(revealed(json!({"file": "pin"})).unwrap_err().ends_with("which is no absolute path"));
        assert!(
            revealed(json!({"env": "NO_SUCH_VARIABLE"})).unwrap_err().ends_with("which is not set, or is not UTF-8")
        );
        assert!(revealed(json!(7)).unwrap_err().ends_with("must be of type secret"));
        for written in [json!("1234"), json!({}), json!({"file": "/a", "env": "b"}), json!({"file": 1})] {
            let told = revealed(written).unwrap_err();
            assert!(told.ends_with(r#"it must be { file = "/path" } or { env = "NAME" }"#), "{told}");
            assert!(!told.contains("1234"));
        }
    }
}
