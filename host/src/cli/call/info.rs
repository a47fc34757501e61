//! `outrigger call --info`: how chain, network and wallets are, for a reader, as bitcoin-cli's -getinfo shows it.

use std::fmt::Write;

use bitcoin::Amount;
use outrigger_values::amount::{self, Saturating};
use serde_json::{Value, json};

use super::connection::{CallError, Connection};

/// Asks for what is shown, and gives it as the result of a reply; the reply to a question that failed in its place.
///
/// What the host does not answer is left out: its group may be off. The answers are of moments that follow each other.
///
/// # Errors
/// When there is no reply to one of the questions.
pub fn of(connection: &Connection, wallet: Option<&str>) -> Result<Value, CallError> {
    match asked(connection, wallet) {
        Ok(text) => Ok(json!({"result": text})),
        Err(Failed::Reply(reply)) => Ok(reply),
        Err(Failed::Call(error)) => Err(error),
    }
}

/// Why there is nothing to show.
enum Failed {
    Reply(Value),
    Call(CallError),
}

impl From<CallError> for Failed {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// The result of a method, if the host has it.
fn ask(connection: &Connection, method: &str) -> Result<Option<Value>, Failed> {
    match connection.ask(method)? {
        Some(reply) if !reply["error"].is_null() => Err(Failed::Reply(reply)),
        Some(mut reply) => Ok(Some(reply["result"].take())),
        None => Ok(None),
    }
}

fn asked(connection: &Connection, wallet: Option<&str>) -> Result<String, Failed> {
    let chain = ask(connection, "getblockchaininfo")?;
    let network = ask(connection, "getnetworkinfo")?;
    let mut sections: Vec<String> = chain.as_ref().map(of_chain).into_iter().collect();
    sections.extend(network.as_ref().map(of_network));
    let loaded = match wallet {
        Some(wallet) => vec![wallet.to_owned()],
        None => names(&ask(connection, "listwallets")?.unwrap_or_default()),
    };
    match &loaded[..] {
        [] => {}
        [name] => sections.extend(of_wallet(&connection.of_wallet(name))?),
        several => {
            let mut balances = Vec::new();
            for name in several {
                balances.extend(ask(&connection.of_wallet(name), "getbalances")?.map(|of| (name.as_str(), of)));
            }
            sections.push(of_wallets(&balances));
        }
    }
    sections.extend(network.as_ref().map(warnings));
    if sections.is_empty() {
        // Nothing of it is on: the host says so.
        return Err(Failed::Reply(connection.call("getblockchaininfo", "[]")?));
    }
    Ok(sections.join("\n\n"))
}

fn names(wallets: &Value) -> Vec<String> {
    wallets.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A text without its quotes, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn of_chain(info: &Value) -> String {
    let progress = info["verificationprogress"].as_f64().unwrap_or_default() * 100.0;
    format!(
        "Chain: {}\nBlocks: {}\nHeaders: {}\nVerification progress: {progress:.4}%\nDifficulty: {}",
        plain(&info["chain"]),
        info["blocks"],
        info["headers"],
        info["difficulty"]
    )
}

fn of_network(info: &Value) -> String {
    format!(
        "Network: in {}, out {}, total {}\nVersion: {}\nTime offset (s): {}\nProxies: {}\nMin tx relay fee rate (BTC/kvB): {}",
        info["connections_in"],
        info["connections_out"],
        info["connections"],
        info["version"],
        info["timeoffset"],
        proxies(&info["networks"]),
        info["relayfee"]
    )
}

/// The proxies, each with the networks that are reached through it.
fn proxies(networks: &Value) -> String {
    let mut proxies: Vec<(&str, Vec<String>)> = Vec::new();
    for network in networks.as_array().into_iter().flatten() {
        let Some(proxy) = network["proxy"].as_str().filter(|proxy| !proxy.is_empty()) else { continue };
        let name = plain(&network["name"]);
        match proxies.iter_mut().find(|(known, _)| *known == proxy) {
            Some((_, names)) => names.push(name),
            None => proxies.push((proxy, vec![name])),
        }
    }
    if proxies.is_empty() {
        return "n/a".to_owned();
    }
    let shown: Vec<String> = proxies.iter().map(|(proxy, names)| format!("{proxy} ({})", names.join(", "))).collect();
    shown.join(", ")
}

/// The one wallet that is called.
fn of_wallet(connection: &Connection) -> Result<Option<String>, Failed> {
    let Some(info) = ask(connection, "getwalletinfo")? else { return Ok(None) };
    let mut text = format!("Wallet: {}\nKeypool size: {}\n", shown(info["walletname"].as_str()), info["keypoolsize"]);
    if let Some(until) = info.get("unlocked_until") {
        // Writing to a text does not fail.
        let _ = writeln!(text, "Unlocked until: {until}");
    }
    let _ = write!(text, "Transaction fee rate (-paytxfee) (BTC/kvB): {}", info["paytxfee"]);
    if let Some(balances) = ask(connection, "getbalances")? {
        let _ = write!(text, "\n\nBalance: {}", balances["mine"]["trusted"]);
    }
    Ok(Some(text))
}

/// What several wallets hold, and all of them together.
fn of_wallets(balances: &[(&str, Value)]) -> String {
    let mut text = "Balances\n".to_owned();
    let mut total = Amount::ZERO;
    // Amounts stand below each other, as bitcoin-cli has it.
    let widths = balances.iter().map(|(_, balances)| balances["mine"]["trusted"].to_string().len());
    let width = widths.max().unwrap_or_default();
    for (name, balances) in balances {
        let trusted = &balances["mine"]["trusted"];
        total = total.saturating_add(amount::from_json(trusted).unwrap_or_default());
        let _ = writeln!(text, "{:>width$} {}", trusted.to_string(), shown(Some(name)));
    }
    let _ = write!(text, "\nTotal balance: {}", amount::to_text(total));
    text
}

/// A wallet's name; the one without a name as `""`.
fn shown(name: Option<&str>) -> &str {
    name.filter(|name| !name.is_empty()).unwrap_or("\"\"")
}

/// The warnings, which newer versions have as a list.
fn warnings(network: &Value) -> String {
    let said: Vec<String> = match &network["warnings"] {
        Value::Array(warnings) => warnings.iter().map(plain).collect(),
        Value::Null => Vec::new(),
        one => vec![plain(one)],
    };
    let said = said.join("\n");
    format!("Warnings: {}", if said.is_empty() { "(none)" } else { &said })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_and_warnings_are_shown_where_there_are_some() {
        let networks = json!([{"name": "ipv4", "proxy": "a:1"}, {"name": "i2p", "proxy": ""},
            {"name": "ipv6", "proxy": "a:1"}, {"name": "onion", "proxy": "b:2"}]);
        assert_eq!(proxies(&networks), "a:1 (ipv4, ipv6), b:2 (onion)");
        assert_eq!(proxies(&json!([])), "n/a");
        assert_eq!(warnings(&json!({"warnings": ""})), "Warnings: (none)");
        assert_eq!(warnings(&json!({"warnings": ["one", "two"]})), "Warnings: one\ntwo");
    }

    #[test]
    fn balances_stand_below_each_other_with_their_sum() {
        let of = |text: &str| serde_json::from_str::<Value>(&format!("{{\"mine\": {{\"trusted\": {text}}}}}")).unwrap();
        let balances = [("", of("150.00000001")), ("b", of("0.50000000"))];
        let shown = "Balances\n150.00000001 \"\"\n  0.50000000 b\n\nTotal balance: 150.50000001";
        assert_eq!(of_wallets(&balances), shown);
    }
}
