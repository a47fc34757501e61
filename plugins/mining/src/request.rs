//! The argument of `getblocktemplate`, checked in bitcoind's order.
//!
//! The plugin ignores `capabilities`. It refuses a client without segwit only when it makes the template, so a long poll is
//! refused at its end.

use bitcoin::BlockHash;
use bitcoin::hashes::Hash;
use outrigger_sdk::{RpcError, params, typed};
use serde_json::Value;

/// The characters of the block hash at the start of a long poll's id.
const HASH_CHARACTERS: usize = 64;

#[derive(Debug)]
pub enum Request<'a> {
    /// The block to check, in hexadecimal.
    Proposal {
        data: &'a str,
    },
    Template {
        knows_segwit: bool,
        wait: Option<Wait>,
    },
}

/// The condition that ends a long poll.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A template is outdated.
    Template {
        tip: BlockHash,
        /// The mempool's sequence of the template.
        sequence: u64,
    },
    /// The latest template is outdated.
    Latest,
}

pub fn parse(argument: &Value) -> Result<Request<'_>, RpcError> {
    let object = match argument {
        Value::Null => None,
        value => Some(typed::object(value)?),
    };
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
    let mut knows_segwit = false;
    for rule in field("rules").as_array().into_iter().flatten() {
        knows_segwit |= typed::text(rule)? == "segwit";
    }
    if mode != "template" {
        return Err(invalid_mode());
    }
    let wait = match field("longpollid") {
        Value::Null => None,
        Value::String(id) => Some(parse_long_poll_id(id)?),
        _ => Some(Wait::Latest),
    };
    Ok(Request::Template { knows_segwit, wait })
}

/// The tip's hash and a decimal number. Other text in place of the number counts as 0.
fn parse_long_poll_id(id: &str) -> Result<Wait, RpcError> {
    let (hash, number) = id.split_at_checked(HASH_CHARACTERS).unwrap_or((id, ""));
    let tip = BlockHash::from_byte_array(params::hash_text(hash, "longpollid")?);
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
        let error = parse(argument).unwrap_err();
        (error.code.0, error.message)
    }

    #[test]
    fn getblocktemplate_request_is_checked_in_order() {
        let hash = "zz".repeat(32);
        for (argument, code, message) in [
            (json!(5), -3, "JSON value of type number is not of expected type object".to_owned()),
            (json!({"mode": 5, "rules": [5]}), -8, "Invalid mode".into()),
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
            let Request::Template { wait: Some(Wait::Template { tip, sequence }), .. } = parse(&argument).unwrap()
            else {
                panic!("{argument} is a long poll")
            };
            assert_eq!((tip.to_string(), sequence), (hash.clone(), expected), "{argument}");
        }
        let Request::Template { wait, knows_segwit } = parse(&Value::Null).unwrap() else { panic!("a template") };
        assert_eq!((wait, knows_segwit), (None, false));
        let argument = json!({"longpollid": 1, "rules": ["csv", "segwit"], "capabilities": 7});
        let Request::Template { wait, knows_segwit } = parse(&argument).unwrap() else { panic!("a template") };
        assert_eq!((wait, knows_segwit), (Some(Wait::Latest), true));
    }
}
