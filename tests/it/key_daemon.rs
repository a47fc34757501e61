//! A daemon that holds keys, behind a Unix socket in a folder of its own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use outrigger_tests::built;
use rustix::process::Pid;
use tempfile::TempDir;

pub struct KeyDaemon {
    folder: TempDir,
    program: &'static str,
    child: Option<Child>,
}

impl KeyDaemon {
    /// Starts the program with these lines in its file of keys.
    pub fn new(program: &'static str, keys: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("keys"), keys).unwrap();
        let mut daemon = Self { folder, program, child: None };
        daemon.start();
        daemon
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn socket(&self) -> String {
        self.path("socket").display().to_string()
    }

    pub fn process_id(&self) -> Pid {
        Pid::from_child(self.child.as_ref().unwrap())
    }

    pub fn start(&mut self) {
        let mut command = Command::new(built().program(self.program));
        command.arg(self.path("socket")).arg(self.path("keys")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n");
        self.child = Some(child);
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            assert!(child.wait().unwrap().success());
        }
    }
}

impl Drop for KeyDaemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}
