//! The methods of the host itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use outrigger_sdk::manifest::MethodSpec;
use outrigger_sdk::{Code, RpcError};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::arguments;
use crate::plugin::registry::{Registry, RouteTable};
use crate::rpc::Call;

/// The methods with their help.
const SPECS: &str = include_str!("builtins.json");

/// The names of the methods, which no plugin may claim.
pub const NAMES: [&str; 5] = ["getrpcinfo", "help", "listplugins", "stop", "uptime"];

/// What the host's own methods need.
pub struct Builtins {
    specs: Vec<Arc<MethodSpec>>,
    registry: Arc<Registry>,
    started: Instant,
    stop: watch::Sender<bool>,
}

impl Builtins {
    /// The methods over this registry; `stop` asks the host to stop.
    ///
    /// # Errors
    /// When the built-in description of the methods does not parse, which a test excludes.
    pub fn new(registry: Arc<Registry>, stop: watch::Sender<bool>) -> Result<Self, serde_json::Error> {
        let specs: Vec<MethodSpec> = serde_json::from_str(SPECS)?;
        Ok(Self { specs: specs.into_iter().map(Arc::new).collect(), registry, started: Instant::now(), stop })
    }

    /// Answers a call if it is one of these methods.
    pub fn call(&self, call: &Call, table: &RouteTable) -> Option<Result<Bytes, RpcError>> {
        let spec = self.specs.iter().find(|spec| spec.name == call.method)?;
        let answer = arguments::positional(spec, &call.params).and_then(|params| {
            let params: Vec<Value> = serde_json::from_str(&params).unwrap_or_default();
            self.run(&spec.name, &params, table)
        });
        Some(answer.map(|value| Bytes::from(value.to_string())))
    }

    fn run(&self, name: &str, params: &[Value], table: &RouteTable) -> Result<Value, RpcError> {
        match name {
            "help" => self.help(params.first().and_then(Value::as_str).unwrap_or_default(), table),
            "stop" => {
                // Nobody listens only when the host is stopping already.
                let _ = self.stop.send(true);
                Ok(json!("Outrigger stopping"))
            }
            "uptime" => Ok(json!(self.started.elapsed().as_secs())),
            "getrpcinfo" => Ok(json!({"active_commands": [], "logpath": ""})),
            "listplugins" => Ok(self.list_plugins(table)),
            _ => Err(RpcError::new(Code::METHOD_NOT_FOUND, "Method not found")),
        }
    }

    fn help(&self, command: &str, table: &RouteTable) -> Result<Value, RpcError> {
        let all = self.specs.iter().chain(table.values().map(|route| &route.method));
        if !command.is_empty() {
            let found = all.into_iter().find(|spec| spec.name == command);
            return Ok(match found {
                Some(spec) => json!(spec.full_help()),
                None => json!(format!("help: unknown command: {command}")),
            });
        }
        let mut lines: Vec<(&str, String)> = all.map(|spec| (spec.category.as_str(), spec.usage())).collect();
        lines.sort();
        let mut text = String::new();
        let mut category = "";
        for (of, usage) in &lines {
            if *of != category {
                if !text.is_empty() {
                    text.push('\n');
                }
                text += &format!("== {of} ==\n");
                category = of;
            }
            text += usage;
            text.push('\n');
        }
        Ok(json!(text.trim_end()))
    }

    fn list_plugins(&self, table: &RouteTable) -> Value {
        let plugin = |instance: Arc<crate::plugin::instance::Instance>| {
            let statistics = &instance.statistics;
            let methods: Vec<_> = table
                .iter()
                .filter(|(_, route)| Arc::ptr_eq(&route.instance, &instance))
                .map(|(name, _)| name.clone())
                .collect();
            json!({
                "id": instance.manifest.id,
                "version": instance.manifest.version,
                "summary": instance.manifest.summary,
                "file": instance.file,
                "hash": instance.hash,
                "state": "running",
                "methods": methods,
                "grants": instance.grants,
                "calls": statistics.calls.load(Ordering::Relaxed),
                "faults": statistics.faults.load(Ordering::Relaxed),
                "time_us": statistics.nanoseconds.load(Ordering::Relaxed) / 1000,
                "events_dropped": instance.events.dropped_count(),
            })
        };
        Value::Array(self.registry.instances().into_iter().map(plugin).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_of_the_host_is_described_and_reserved() {
        let specs: Vec<MethodSpec> = serde_json::from_str(SPECS).unwrap();
        let mut names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, NAMES);
    }
}
