//! The host answers each method in a node's help, or plugins/README.md explains why not.

use std::collections::BTreeSet;
use std::path::Path;

use outrigger_tests::{Host, data_json};
use serde_json::json;

/// The methods of the table under a heading of plugins/README.md.
fn listed(heading: &str) -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins/README.md");
    let page = std::fs::read_to_string(page).unwrap();
    let section = page.split("# ").find(|section| section.starts_with(heading)).unwrap();
    // The cells of a row. The first two rows are the header.
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let methods = rows.flat_map(|row| row.trim_matches(['|', ' ']).split(" | ").nth(1).unwrap().split(", "));
    methods.map(str::to_owned).collect()
}

#[test]
fn host_answers_each_method_of_the_recorded_node_or_the_readme_explains_why_not() {
    let recorded = data_json("help.json");
    let recorded: BTreeSet<String> = serde_json::from_value(recorded["methods"].clone()).unwrap();
    let help = Host::start().client().call("help", json!([]));
    let lines = help.as_str().unwrap().lines().filter(|line| !line.is_empty() && !line.starts_with("=="));
    let answered: BTreeSet<String> = lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    let open: BTreeSet<String> = recorded.difference(&answered).cloned().collect();
    assert_eq!(open, listed("Missing methods"));
    // The configuration of the development chain does not list the plugin of webhooks.
    let groups: BTreeSet<String> =
        listed("The groups of methods").into_iter().filter(|name| name != "listwebhooks").collect();
    assert_eq!(groups.symmetric_difference(&answered).collect::<Vec<_>>(), Vec::<&String>::new());
}
