//! `getblocktemplate`. Its argument is checked in bitcoind's order.
//!
//! The plugin ignores `capabilities`. It refuses a client that lacks a rule only when it makes the template, so a long poll is
//! refused at its end.

use bitcoin::{BlockHash, Network};
use outrigger_sdk::service::ServiceError;
use outrigger_sdk::{Call, Reply, RpcError, methods, params, typed};
use serde_json::{Map, Value};

use crate::MiningPlugin;
use crate::longpoll::{self, Watched};
use crate::submit::propose;

/// The length of the block hash at the start of a long poll's id, in characters.
const HASH_CHARACTERS: usize = 64;

#[derive(Debug)]
enum Request<'a> {
    /// The block to check, in hexadecimal.
    Proposal { data: &'a str },
    Template {
        /// The client's rules.
        rules: Vec<&'a str>,
        wait: Option<Wait>,
    },
}

/// The condition that ends a long poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    /// The template with this tip and sequence is outdated.
    Template {
        tip: BlockHash,
        /// The mempool's sequence number in the template.
        sequence: u64,
    },
    /// The latest template is outdated.
    Latest,
}

#[methods(category = "Mining", inline, long_running)]
impl MiningPlugin {
    /// Returns a template for a block on the tip (BIP 22, 23, 9, 145), or checks a proposed block.
    ///
    /// * `template_request` (default: {}) - mode: "template" or "proposal"; rules: the client's rules, which must
    ///   include "segwit", and on a signet "signet"; longpollid: wait until the template with this id is outdated;
    ///   data: the proposed block in hexadecimal; capabilities: ignored.
    ///
    /// # Result
    /// {"capabilities": [...], "version": n, "rules": [...], "vbavailable": {...}, "vbrequired": n,
    /// "previousblockhash": "hash", "transactions": [...], "coinbaseaux": {...}, "coinbasevalue": n, "longpollid":
    /// "id", "target": "hex", "mintime": n, "mutable": [...], "noncerange": "hex", "sigoplimit": n, "sizelimit": n,
    /// "weightlimit": n, "curtime": n, "bits": "hex", "height": n, "signet_challenge": "hex",
    /// "default_witness_commitment": "hex"}    (json object) Fees and coinbasevalue are in satoshi. signet_challenge is
    /// present on a signet. The result of a proposal is null (json null), or the reason of its refusal (string).
    ///
    /// # Example
    /// '{"rules": ["segwit"]}'
    #[method]
    fn getblocktemplate(&self, call: &Call<'_>, template_request: Option<&Map<String, Value>>, reply: Reply) {
        let (rules, wait) = match parse(template_request) {
            Ok(Request::Proposal { data }) => {
                reply.send(propose(call, data));
                return;
            }
            Ok(Request::Template { rules, wait }) => (rules, wait),
            Err(error) => {
                reply.fail(error);
                return;
            }
        };
        let refusal = match call.host.chain.network(call.scope) {
            Ok(network) => missing_rule(&rules, network),
            Err(error) => Some(error.into()),
        };
        match wait.map(|wait| self.watched(call, wait)) {
            Some(Ok(Some((tip, sequence)))) => longpoll::wait(&self.polls, reply, Watched { tip, sequence, refusal }),
            Some(Err(error)) => {
                reply.fail(error);
            }
            Some(Ok(None)) | None => {
                let template = self.templates.answer(call.host, call.scope);
                reply.send_json(template.and_then(|template| refusal.map_or(Ok(template), Err)));
            }
        }
    }

    /// The tip and the mempool's sequence that a long poll watches; `None` if its tip is no longer the best block.
    fn watched(&self, call: &Call<'_>, wait: Wait) -> Result<Option<(BlockHash, u64)>, ServiceError> {
        let current = call.host.chain.tip(call.scope)?.hash;
        Ok(match wait {
            Wait::Template { tip, .. } if tip != current => None,
            Wait::Template { tip, sequence } => Some((tip, sequence)),
            Wait::Latest => Some((current, self.templates.sequence())),
        })
    }
}

fn parse(object: Option<&Map<String, Value>>) -> Result<Request<'_>, RpcError> {
    let field = |name: &str| object.and_then(|object| object.get(name)).unwrap_or(&Value::Null);
    let mode = match field("mode") {
        Value::Null => "template",
        Value::String(mode) => mode,
        _ => return Err(invalid_mode()),
    };
    if mode == "proposal" {
        let data = field("data").as_str();
        let data = data.ok_or_else(|| RpcError::type_error("Missing data String key for proposal"))?;
        return Ok(Request::Proposal { data });
    }
    let rules = field("rules").as_array().into_iter().flatten().map(typed::text).collect::<Result<Vec<_>, _>>()?;
    if mode != "template" {
        return Err(invalid_mode());
    }
    let wait = match field("longpollid") {
        Value::Null => None,
        Value::String(id) => Some(parse_long_poll_id(id)?),
        _ => Some(Wait::Latest),
    };
    Ok(Request::Template { rules, wait })
}

/// The refusal of a client that lacks a rule which it must understand.
fn missing_rule(rules: &[&str], network: Network) -> Option<RpcError> {
    let (rule, needed) = match network {
        Network::Signet if !rules.contains(&"signet") => ("signet", r#""segwit", "signet""#),
        _ if !rules.contains(&"segwit") => ("segwit", r#""segwit""#),
        _ => return None,
    };
    let remedy = format!(r#"(call with {{"rules": [{needed}]}})"#);
    Some(RpcError::invalid_parameter(format!("getblocktemplate must be called with the {rule} rule set {remedy}")))
}

/// Parses a long poll's id: the tip's hash and a decimal number. The number is 0 if the text has no leading digits.
fn parse_long_poll_id(id: &str) -> Result<Wait, RpcError> {
    let (hash, number) = id.split_at_checked(HASH_CHARACTERS).unwrap_or((id, ""));
    let tip = params::hash_text(hash, "longpollid")?;
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let sequence = number.get(..digits).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    Ok(Wait::Template { tip, sequence })
}

fn invalid_mode() -> RpcError {
    RpcError::invalid_parameter("Invalid mode")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(argument: &Value) -> (i32, String) {
        let error = parse(argument.as_object()).unwrap_err();
        (error.code.0, error.message)
    }

    #[test]
    fn getblocktemplate_request_is_checked_in_order() {
        let hash = "zz".repeat(32);
        for (argument, code, message) in [
            (json!({"mode": 5, "rules": [5]}), -8, "Invalid mode".to_owned()),
            (json!({"mode": "x", "rules": [5]}), -3, "JSON value of type number is not of expected type string".into()),
            (json!({"mode": "x", "rules": ["segwit"], "longpollid": "abc"}), -8, "Invalid mode".into()),
            (json!({"mode": "proposal"}), -3, "Missing data String key for proposal".into()),
            (json!({"mode": "proposal", "data": 5}), -3, "Missing data String key for proposal".into()),
            (json!({"longpollid": "abc"}), -8, "longpollid must be of length 64 (not 3, for 'abc')".into()),
            (
                json!({"longpollid": format!("{hash}1")}),
                -8,
                format!("longpollid must be hexadecimal string (not '{hash}')"),
            ),
        ] {
            assert_eq!(refusal(&argument), (code, message), "{argument}");
        }
    }

    #[test]
    fn getblocktemplate_longpollid_is_a_hash_and_a_number() {
        let hash = "00".repeat(31) + "01";
        for (number, expected) in [("", 0), ("17", 17), ("x", 0), ("17x", 17), ("-1", 0)] {
            let argument = json!({"longpollid": format!("{hash}{number}")});
            let Request::Template { wait: Some(Wait::Template { tip, sequence }), .. } =
                parse(argument.as_object()).unwrap()
            else {
                panic!("{argument} is a long poll")
            };
            assert_eq!((tip.to_string(), sequence), (hash.clone(), expected), "{argument}");
        }
        let Request::Template { wait, rules } = parse(None).unwrap() else { panic!("a template") };
        assert_eq!((wait, rules), (None, vec![]));
        let argument = json!({"longpollid": 1, "rules": ["csv", "segwit"], "capabilities": 7});
        let Request::Template { wait, rules } = parse(argument.as_object()).unwrap() else { panic!("a template") };
        assert_eq!((wait, rules), (Some(Wait::Latest), vec!["csv", "segwit"]));
    }

    #[test]
    fn getblocktemplate_on_a_signet_needs_its_rule_first() {
        let refusal = |rules: &[&str], network| missing_rule(rules, network).map(|error| (error.code.0, error.message));
        let refused = |rule: &str, all: &str| {
            let text =
                format!("getblocktemplate must be called with the {rule} rule set (call with {{\"rules\": [{all}]}})");
            Some((-8, text))
        };
        for rules in [&[][..], &["segwit"]] {
            assert_eq!(refusal(rules, Network::Signet), refused("signet", "\"segwit\", \"signet\""));
        }
        for network in [Network::Signet, Network::Bitcoin] {
            assert_eq!(refusal(&["signet"], network), refused("segwit", "\"segwit\""));
            assert_eq!(refusal(&["segwit", "signet"], network), None);
        }
        assert_eq!(refusal(&["segwit"], Network::Bitcoin), None);
    }
}
