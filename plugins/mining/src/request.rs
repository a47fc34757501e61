//! The argument of `getblocktemplate`, checked in bitcoind's order.
//!
//! `capabilities` is never read. Whether a client knows segwit is only held against it when a template is due, which a
//! long poll makes later.

use bitcoin::BlockHash;
use bitcoin::hashes::Hash;
use outrigger_sdk::{params, typed};
use serde_json::Value;

use crate::error::MiningError;

/// The characters of a block's hash, with which a long poll's id begins.
const HASH_CHARACTERS: usize = 64;

/// What `getblocktemplate` is asked for.
#[derive(Debug)]
pub enum Request<'a> {
    /// Judge a block.
    Proposal {
        /// The block in hexadecimal.
        data: &'a str,
    },
    /// Make a template.
    Template {
        /// Whether the client knows segwit.
        knows_segwit: bool,
        /// What to wait for, if anything.
        wait: Option<Wait>,
    },
}

/// What a long poll waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Until a template has been overtaken.
    Template {
        /// The tip it builds on.
        tip: BlockHash,
        /// The mempool's sequence when it was made.
        sequence: u64,
    },
    /// Until the template made last has been overtaken.
    Latest,
}

/// Reads the argument.
///
/// # Errors
/// -3 for what is no object, for rules that are no text and for a proposal without a block, -8 for the rest.
pub fn parse(argument: &Value) -> Result<Request<'_>, MiningError> {
    let object = match argument {
        Value::Null => None,
        value => Some(typed::object(value)?),
    };
    let field = |name: &str| object.and_then(|object| object.get(name)).unwrap_or(&Value::Null);
    let mode = match field("mode") {
        Value::Null => "template",
        Value::String(mode) => mode,
        _ => return Err(MiningError::Mode),
    };
    if mode == "proposal" {
        let data = field("data").as_str().ok_or(MiningError::ProposalData)?;
        return Ok(Request::Proposal { data });
    }
    let mut knows_segwit = false;
    for rule in field("rules").as_array().into_iter().flatten() {
        knows_segwit |= typed::text(rule)? == "segwit";
    }
    if mode != "template" {
        return Err(MiningError::Mode);
    }
    let wait = match field("longpollid") {
        Value::Null => None,
        Value::String(id) => Some(parse_long_poll_id(id)?),
        _ => Some(Wait::Latest),
    };
    Ok(Request::Template { knows_segwit, wait })
}

/// A tip's hash followed by a decimal number. What is no number there counts as 0.
fn parse_long_poll_id(id: &str) -> Result<Wait, MiningError> {
    let (hash, number) = id.split_at_checked(HASH_CHARACTERS).unwrap_or((id, ""));
    let tip = BlockHash::from_byte_array(params::hash_text(hash, "longpollid")?);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    let sequence = number.get(..digits).and_then(|digits| digits.parse().ok()).unwrap_or(0);
    Ok(Wait::Template { tip, sequence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_sdk::RpcError;
    use serde_json::json;

    fn refusal(argument: &Value) -> (i32, String) {
        let error = RpcError::from(parse(argument).unwrap_err());
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
