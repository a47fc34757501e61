//! The help of a method, in the layout of bitcoind.

use serde_json::Value;

use super::{MethodSpec, ParamSpec, ParamType};

impl MethodSpec {
    /// The line of the method in the list that `help` gives: its name and its parameters, optional ones in brackets.
    pub fn usage(&self) -> String {
        let mut line = self.name.clone();
        for param in &self.params {
            let name = match param.kind {
                ParamType::String | ParamType::Hex => format!("\"{}\"", param.name),
                ParamType::Array | ParamType::Outputs => "[...]".to_owned(),
                ParamType::Object | ParamType::Amounts => "{...}".to_owned(),
                _ => param.name.clone(),
            };
            line += &if param.required { format!(" {name}") } else { format!(" ( {name} )") };
        }
        line.replace(" ) ( ", " ")
    }

    /// The arguments of the example. Without an example, samples of the required arguments.
    pub fn example_arguments(&self) -> String {
        if !self.example.is_empty() {
            return self.example.clone();
        }
        let required = self.params.iter().filter(|param| param.required);
        required.map(sample).collect::<Vec<_>>().join(" ")
    }

    /// The full help of the method in bitcoind's layout, with the arguments' help in a column.
    pub fn full_help(&self) -> String {
        let mut text = format!("{}\n\n{}\n", self.usage(), self.help);
        if !self.params.is_empty() {
            text += "\nArguments:\n";
        }
        let number = |(index, param): (usize, &ParamSpec)| format!("{}. {}", index + 1, param.name);
        text += &argument_lines(&self.params, self.params.iter().enumerate().map(number).collect());
        let members: Vec<&ParamSpec> = self.params.iter().flat_map(|param| &param.members).collect();
        if !members.is_empty() {
            text += "\nNamed Arguments:\n";
            text +=
                &argument_lines(members.iter().copied(), members.iter().map(|member| member.name.clone()).collect());
        }
        if !self.result.is_empty() {
            text += &format!("\nResult:\n{}\n", self.result);
        }
        let example = self.example_arguments();
        text += &format!("\nExamples:\n> outrigger call {}\n", format!("{} {example}", self.name).trim_end());
        if let Some(params) = self.example_json(&example) {
            let request =
                format!(r#"{{"jsonrpc": "2.0", "id": "curltest", "method": "{}", "params": [{params}]}}"#, self.name);
            let request = request.replace('\'', r"'\''");
            let header = "content-type: application/json";
            text += &format!("> curl --user myusername --data-binary '{request}' -H '{header}' {EXAMPLE_URL}\n");
        }
        text
    }

    /// The arguments of an example as the items of a JSON array; none if it is no valid command line.
    fn example_json(&self, example: &str) -> Option<String> {
        let words = words(example)?;
        if words.len() > self.params.len() {
            return None;
        }
        let item = |(word, param): (String, &ParamSpec)| match param.kind {
            ParamType::String | ParamType::Hex => Value::String(word).to_string(),
            _ if serde_json::from_str::<serde::de::IgnoredAny>(&word).is_ok() => word,
            _ => Value::String(word).to_string(),
        };
        Some(words.into_iter().zip(&self.params).map(item).collect::<Vec<_>>().join(", "))
    }
}

/// A sample of an argument with one of bitcoind's usual names; for other arguments, the name in capitals.
fn sample(param: &ParamSpec) -> String {
    match param.name.as_str() {
        "address" => "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080".to_owned(),
        "backup_file" | "destination" => "/var/backups/savings.mdb".to_owned(),
        "blockhash" => "00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09".to_owned(),
        "hexdata" => "00000020...".to_owned(),
        "hexstring" => "0200000001...".to_owned(),
        "inputs" => {
            r#"'[{"txid":"1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0","vout":0}]'"#.to_owned()
        }
        "label" => "rent".to_owned(),
        "outputs" => r#"'[{"data":"00010203"}]'"#.to_owned(),
        "psbt" => "\"cHNidP8B...\"".to_owned(),
        "txid" => "1075db55d416d3ca199f55b6084e2115b9345e16c5cf302fc80e9d5fbf5d48d0".to_owned(),
        "wallet_name" | "filename" => "savings".to_owned(),
        name => name.to_uppercase(),
    }
}

/// The lines of a help text about arguments: `lefts` on the left, and the help of each in a column.
fn argument_lines<'a>(params: impl IntoIterator<Item = &'a ParamSpec>, lefts: Vec<String>) -> String {
    let column = lefts.iter().map(|left| left.chars().count()).max().unwrap_or_default() + COLUMN_GAP;
    let mut text = String::new();
    for (left, param) in lefts.iter().zip(params) {
        let need = match (param.required, param.default.as_str()) {
            (true, _) => "required".to_owned(),
            (false, "") => "optional".to_owned(),
            (false, default) => format!("optional, default={default}"),
        };
        let help = param.help.replace('\n', &format!("\n{:column$}", ""));
        text += &format!("{left:column$}({}, {need}) {help}\n", param.kind.name());
    }
    text
}

/// The spaces between the longest argument name and the help column, as in bitcoind.
const COLUMN_GAP: usize = 4;

/// The host's URL in the examples: the default of its configuration.
const EXAMPLE_URL: &str = "http://127.0.0.1:18443/";

/// Splits a line into words as a shell does, with quotes and backslashes only; none if a quote is left open.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            // Within double quotes a backslash escapes only these.
            (Some('"'), '\\') if !matches!(chars.peek(), Some('"' | '\\')) => word.get_or_insert_default().push(char),
            (None | Some('"'), '\\') => word.get_or_insert_default().push(chars.next()?),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
