//! Other hosts and other configurations: services that are not there, options at their ends, older and newer versions.

use outrigger_abi::ABI_MINOR;
use outrigger_sdk::manifest::{Manifest, OptionSpec, OptionType};
use serde_json::{Map, Value, json};

use super::Outcome;
use crate::arguments;
use crate::protocol::Finding;
use crate::session::{Session, Shape};

/// The characters of an option that is a long text.
const LONG_TEXT: usize = 1 << 16;

/// Each service of the manifest is not given, and given without functions. The plugin may refuse to start, unless it called the
/// service optional; if it starts, it must answer.
pub fn services(session: &Session<'_>) -> Outcome {
    let Manifest { services: needed, optional, .. } = &session.file.manifest;
    let services: Vec<&str> = needed.iter().chain(optional).map(String::as_str).collect();
    if services.is_empty() {
        return Outcome::Skipped("the manifest asks for no service".to_owned());
    }
    let mut refused = Vec::new();
    for service in &services {
        let withheld = Shape { withheld: Some(service), ..Shape::USUAL };
        let empty = Shape { empty: Some(service), ..Shape::USUAL };
        for (shape, how) in [(withheld, "withheld"), (empty, "without functions")] {
            let setting = format!("with {service} {how}");
            if try_out(session, shape, &Map::new(), &setting) != Some(false) {
                continue;
            }
            if shape.withheld.is_some() && optional.iter().any(|known| known == service) {
                session.found(Finding::new(format!("{setting}: it does not start, and calls the service optional")));
            }
            refused.push(format!("{service} {how}"));
        }
    }
    let refused = if refused.is_empty() { "nothing".to_owned() } else { refused.join(", ") };
    Outcome::Done(format!(
        "{} withheld or without functions in turn; refuses to start with: {refused}",
        services.join(" ")
    ))
}

/// Brings an instance up in some setting, makes a few calls, and takes it down. Whether it started; none where this setting
/// ended the process before.
fn try_out(session: &Session<'_>, shape: Shape<'_>, options: &Map<String, Value>, setting: &str) -> Option<bool> {
    if session.job.without.iter().any(|without| without == setting) {
        return None;
    }
    Some(session.reporter.in_setting(setting, || match session.try_bring_up(shape, options) {
        Err(refusal) => {
            if let Some(fault) = session.fault_of(&refusal) {
                session.found(Finding::new(fault));
            }
            false
        }
        Ok(harness) => {
            for method in session.methods() {
                for set in arguments::few(method) {
                    harness.probe.call(&method.name, &set);
                }
            }
            session.finish(harness);
            true
        }
    }))
}

/// Each option at the ends of its type. The plugin may refuse with a reason.
pub fn options(session: &Session<'_>) -> Outcome {
    let specs = &session.file.manifest.options;
    if specs.is_empty() {
        return Outcome::Skipped("the manifest has no options".to_owned());
    }
    let (mut tried, mut refused) = (0, 0);
    for spec in specs {
        for value in extremes(spec) {
            let setting = format!("with the option {} = {}", spec.name, shown(&value));
            let options = Map::from_iter([(spec.name.clone(), value)]);
            tried += 1;
            refused += usize::from(try_out(session, Shape::USUAL, &options, &setting) == Some(false));
        }
    }
    Outcome::Done(format!("{tried} values of {} options, of which it refused {refused}", specs.len()))
}

fn extremes(spec: &OptionSpec) -> Vec<Value> {
    match spec.kind {
        OptionType::Boolean => vec![json!(false), json!(true)],
        OptionType::Integer => vec![json!(0), json!(1), json!(-1), json!(i64::MAX), json!(i64::MIN)],
        OptionType::String => vec![json!(""), json!("\0ä\u{1f600}"), json!("x".repeat(LONG_TEXT))],
    }
}

fn shown(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.len() > 40 => format!("a text of {} bytes", text.len()),
        _ => value.to_string(),
    }
}

/// The oldest host on which the manifest says that the plugin runs, and one newer than any.
pub fn versions(session: &Session<'_>) -> Outcome {
    let oldest = session.file.header.abi_minor_needed;
    for minor in [oldest, ABI_MINOR + 1] {
        let setting = format!("on a host of minor version {minor}");
        if try_out(session, Shape { minor, ..Shape::USUAL }, &Map::new(), &setting) == Some(false) {
            session.found(Finding::new(format!("{setting}: it does not start")));
        }
    }
    Outcome::Done(format!("on a host of minor version {oldest}, and on one newer than any"))
}
