//! `outrigger run --check`: reports the sandbox of isolated plugins, and its parts that this system does not allow.

use std::fs;

use outrigger_isolate::cgroup::Delegation;
use outrigger_plugins::{Isolation, PluginConfig};
use outrigger_sandbox::{Policy, Reach, SandboxLayers, probe};
use outrigger_sdk::manifest::Manifest;

/// The report about isolated plugins. It probes the system's support once, for the first confined plugin.
#[derive(Default)]
pub struct ConfinementReport {
    support: Option<SandboxLayers>,
}

impl ConfinementReport {
    /// The lines about one plugin; none if it runs in the host's process.
    ///
    /// # Errors
    /// The key of the setting with which the plugin could not start on this system, and the reason.
    pub fn report(
        &mut self,
        default: Isolation,
        plugin: &PluginConfig,
        manifest: &Manifest,
    ) -> Result<Vec<String>, (&'static str, String)> {
        let id = &manifest.id;
        if !default.applies_to(plugin) {
            return Ok(Vec::new());
        }
        if plugin.sandbox == Policy::None {
            return Ok(vec![format!("plugin '{id}' runs in a process of its own, which nothing confines")]);
        }
        let support = self.support.get_or_insert_with(probe);
        if plugin.sandbox == Policy::Require && !support.suffices() {
            let (missing, why) = (support.missing.join("; "), causes().join("; "));
            let why = if why.is_empty() { why } else { format!(" ({why})") };
            let reason = format!("plugin '{id}': this system does not allow a sandbox: {missing}{why}");
            return Err(("sandbox", reason));
        }
        if support.bounds_files() {
            for (path, _) in plugin.reach.iter().filter_map(Reach::files) {
                let refused = |error: std::io::Error| ("reach", format!("plugin '{id}': {}: {error}", path.display()));
                fs::metadata(path).map_err(refused)?;
            }
        }
        let reach: Vec<String> = plugin.reach.iter().map(Reach::words).collect();
        let reach = if reach.is_empty() { "reaches nothing but its services".to_owned() } else { reach.join(", ") };
        let mut lines =
            vec![format!("plugin '{id}' runs in a process of its own, held by {}; it {reach}", held(support))];
        lines.extend(not_granted(plugin, manifest));
        Ok(lines)
    }

    /// Lines about the parts of a sandbox that this system denies, if a plugin is confined.
    pub fn denied(&self) -> Vec<String> {
        let missing = self.support.iter().filter(|support| !support.missing.is_empty());
        let told = missing.map(|support| format!("this system does not allow: {}", support.missing.join("; ")));
        let told: Vec<String> = told.collect();
        if told.is_empty() { told } else { told.into_iter().chain(causes()).collect() }
    }
}

/// A line about how the memory and threads of plugins' processes are limited.
pub fn bounded() -> String {
    match Delegation::find() {
        Some(group) => {
            format!("a control group of its own bounds each process of a plugin ({})", group.controllers.join(", "))
        }
        None if cfg!(target_os = "linux") => {
            "no control group was delegated to the host, which checks memory and threads itself".to_owned()
        }
        None => "nothing bounds the memory and threads of plugins' processes on this system".to_owned(),
    }
}

fn held(support: &SandboxLayers) -> String {
    let landlock = (support.landlock_abi > 0).then(|| format!("Landlock (version {})", support.landlock_abi));
    let namespaces =
        (!support.namespaces.is_empty()).then(|| format!("namespaces of its own ({})", support.namespaces.join(", ")));
    let filter = match (support.seccomp, support.reported) {
        (true, true) => Some("a filter of system calls that reports each denial".to_owned()),
        (true, false) => Some("a filter of system calls".to_owned()),
        (false, _) => None,
    };
    let root = support.root.then(|| "a root of its own".to_owned());
    let layers: Vec<String> = [filter, landlock, root, namespaces].into_iter().flatten().collect();
    if layers.is_empty() { "nothing".to_owned() } else { layers.join(", ") }
}

/// Lines about files and addresses that the manifest asks to reach and the configuration does not grant.
fn not_granted(plugin: &PluginConfig, manifest: &Manifest) -> Vec<String> {
    let options = manifest.options(&plugin.options).unwrap_or_default();
    let asked = manifest.reach.iter().filter_map(|asked| Some((asked.with(&options)?, &asked.help)));
    let missing = asked.filter(|(text, _)| text.parse().map_or(true, |reach| !is_granted(&plugin.reach, &reach)));
    let line = |(text, help): (String, &String)| {
        format!("plugin '{}' asks to reach {text}, which is not granted: {help}", manifest.id)
    };
    missing.map(line).collect()
}

fn is_granted(granted: &[Reach], asked: &Reach) -> bool {
    match asked.files() {
        Some((path, writes)) => Reach::opens(granted, path, writes),
        None => granted.contains(asked),
    }
}

/// The settings of this system's kernel, service unit or container that deny parts of a sandbox.
fn causes() -> Vec<String> {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    let mut causes = Vec::new();
    for (path, denies) in [
        ("/proc/sys/user/max_user_namespaces", "0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
    ] {
        if read(path).as_deref() == Some(denies) {
            causes.push(format!("{path} is {denies}"));
        }
    }
    if read("/sys/kernel/security/lsm").is_some_and(|all| !all.split(',').any(|one| one == "landlock")) {
        causes.push("the kernel was started without Landlock (/sys/kernel/security/lsm)".to_owned());
    }
    let status = read("/proc/self/status").unwrap_or_default();
    if status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"])) {
        causes.push("a service unit or a container filters the system calls of this process".to_owned());
    }
    causes
}
