//! The host's side of a test: starts the confined process, and reads its output.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use outrigger_sandbox::{
    Denial, Denials, Event, Listener, Notifier, Plan, Policy, SandboxLayers, library_closure, probe,
};

/// The path of a system library.
fn library() -> PathBuf {
    let folders = ["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];
    let names = ["libssl.so.3", "libz.so.1", "libm.so.6"];
    let mut paths = names.iter().flat_map(|name| folders.map(|folder| PathBuf::from(folder).join(name)));
    paths.find(|path| path.is_file()).expect("a system has a library")
}

/// A layer of the sandbox that a case goes without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// A user namespace, and everything that requires it.
    UserNamespace,
    /// All namespaces, and the root.
    Namespaces,
    Landlock,
    Notifications,
    Seccomp,
}

/// This system's support, without the given layers.
pub fn reduced(without: &[Layer]) -> SandboxLayers {
    let mut left = probe();
    for layer in without {
        match layer {
            Layer::UserNamespace => left.namespaces.retain(|name| name != "user"),
            Layer::Namespaces => {
                left.namespaces.clear();
                left.root = false;
            }
            Layer::Landlock => left.landlock_abi = 0,
            Layer::Notifications => left.reported = false,
            Layer::Seccomp => {
                left.seccomp = false;
                left.reported = false;
            }
        }
        left.missing.push(format!("{layer:?}"));
    }
    left
}

/// A plan with these grants, and this system's support without the given layers.
pub fn plan(reach: &[String], without: &[Layer], policy: Policy) -> (Plan, SandboxLayers) {
    let library = library();
    let plan = Plan {
        closure: library_closure(&library).unwrap(),
        library: Some(library),
        reach: reach.iter().map(|text| text.parse().unwrap()).collect(),
        file_size: 1 << 20,
        open_files: 64,
        policy,
    };
    (plan, reduced(without))
}

pub struct Confined {
    pub child: Child,
    pub enforced: Result<SandboxLayers, String>,
    pub notifier: Option<Notifier>,
    denials: Arc<Mutex<Denials>>,
    pub denied: Receiver<Denial>,
    pub floods: Receiver<()>,
    said: BufReader<ChildStdout>,
    /// The process ends when this is dropped.
    channel: Option<UnixStream>,
}

impl Confined {
    /// Starts this program again, to be confined and to execute `what`.
    pub fn start(what: &str, (plan, support): &(Plan, SandboxLayers)) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let plan_text = serde_json::to_string(plan).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--confined", what, &plan_text, &serde_json::to_string(support).unwrap()])
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .env_clear()
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        let (tell, denied) = channel();
        let (tell_flood, floods) = channel();
        let (mut notifier, denials) = (None, Arc::<Mutex<Denials>>::default());
        let counted = Arc::clone(&denials);
        if let Ok(Some(listener)) = Listener::receive(ours.as_fd()) {
            let watch = move |event: Event<'_>| match event {
                Event::Denied(denial) => {
                    counted.lock().unwrap().add(denial.clone());
                    drop(tell.send(denial.clone()));
                }
                Event::Flood => drop(tell_flood.send(())),
            };
            notifier = Some(Notifier::start(listener, plan, Box::new(watch)).unwrap());
        }
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let enforced = match line.trim_end().split_once(' ') {
            Some(("enforced", json)) => Ok(serde_json::from_str(json).unwrap()),
            Some(("refused", reason)) => Err(reason.to_owned()),
            _ => panic!("the confined process said {line:?}"),
        };
        Self { child, enforced, notifier, denials, denied, floods, said, channel: Some(ours) }
    }

    pub fn held(&self) -> &SandboxLayers {
        self.enforced.as_ref().unwrap()
    }

    pub fn results(&mut self) -> HashMap<String, i64> {
        let mut results = HashMap::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended: {:?} {results:?}", self.child.wait());
            let line = line.trim_end();
            if line == "done" {
                return results;
            }
            let (name, value) = line.split_once(' ').unwrap_or_else(|| panic!("it said {line:?}"));
            results.insert(name.to_owned(), value.parse().unwrap());
        }
    }

    pub fn denials(&self) -> Denials {
        self.denials.lock().unwrap().clone()
    }

    pub fn end(mut self) {
        drop(self.channel.take());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status} {:?}", status.signal());
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
