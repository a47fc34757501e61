//! Checks the plugin in other settings, each in its own process: without each optional service, and with extreme values
//! of each option.

use outrigger_sdk::manifest::{Manifest, OptionSpec, OptionType};
use serde_json::{Value, json};

use super::protocol::{Finding, Job};
use super::supervisor::{self, Part};

/// The length of a long text, in characters.
const LONG_TEXT: usize = 1 << 16;

/// Withholds each optional service in turn. The plugin must start and answer without it. The host starts no plugin without
/// a required service.
pub fn services(job: &mut Job, manifest: &Manifest) -> Part {
    let optional = &manifest.optional;
    if optional.is_empty() {
        return Part { skipped: Some("the manifest has no optional service".to_owned()), ..Part::default() };
    }
    let mut whole = Part { done: format!("{} withheld in turn", optional.join(" ")), ..Part::default() };
    for service in optional {
        let setting = format!("with {service} withheld");
        let withheld = Job { withheld: Some(service.clone()), ..job.clone() };
        if !try_out(&mut whole, job, withheld, &setting) {
            let refusal = Finding::new("it does not start, and the manifest calls the service optional");
            whole.add_finding(refusal.in_setting(&setting));
        }
    }
    whole
}

/// Sets each option to its extreme values. The plugin may refuse them if it gives a reason.
pub fn options(job: &mut Job, manifest: &Manifest) -> Part {
    let specs = &manifest.options;
    if specs.is_empty() {
        return Part { skipped: Some("the manifest has no options".to_owned()), ..Part::default() };
    }
    let (mut whole, mut tried, mut refused) = (Part::default(), 0, 0);
    for spec in specs {
        for value in extremes(spec) {
            let setting = format!("with the option {} = {}", spec.name, shown(&value));
            let mut changed = job.clone();
            changed.options.insert(spec.name.clone(), value);
            tried += 1;
            refused += usize::from(!try_out(&mut whole, job, changed, &setting));
        }
    }
    whole.done = format!("{tried} values of {} options, of which it refused {refused}", specs.len());
    whole
}

/// Runs a job in a setting, and adds its findings to `whole`. Returns whether the plugin started.
fn try_out(whole: &mut Part, job: &mut Job, mut changed: Job, setting: &str) -> bool {
    let part = supervisor::run(&mut changed);
    job.methods = changed.methods;
    part.findings.into_iter().for_each(|finding| whole.add_finding(finding.in_setting(setting)));
    whole.without.extend(part.without);
    whole.last_words.extend(part.last_words);
    part.started
}

fn extremes(spec: &OptionSpec) -> Vec<Value> {
    match spec.kind {
        OptionType::Boolean => vec![json!(false), json!(true)],
        OptionType::Integer => vec![json!(0), json!(1), json!(-1), json!(i64::MAX), json!(i64::MIN)],
        OptionType::Number => vec![json!(0), json!(-1.5), json!(f64::MAX)],
        OptionType::String | OptionType::Secret => {
            vec![json!(""), json!("\0ä\u{1f600}"), json!("x".repeat(LONG_TEXT))]
        }
        OptionType::List => vec![json!([]), json!([null, 1, "a", [], {}])],
        OptionType::Table => vec![json!({}), json!({"": null, "a": {"b": []}})],
    }
}

fn shown(value: &Value) -> String {
    match value.as_str() {
        Some(text) if text.len() > 40 => format!("a text of {} bytes", text.len()),
        _ => value.to_string(),
    }
}
