//! Translates serde's messages, which name Rust types, to the terms of JSON and TOML.

/// serde's message in JSON's terms: `invalid type: map, expected u32` becomes `invalid type: object, expected an
/// integer from 0 to 4294967295`. Other messages, and texts and numbers that a message quotes, are unchanged.
pub fn json_words(message: &str) -> String {
    in_words(message, "object")
}

/// [`json_words`] for TOML, in which an object is a table.
pub fn toml_words(message: &str) -> String {
    in_words(message, "table")
}

fn in_words(message: &str, object: &str) -> String {
    // The found value may contain anything; the expected type comes last and quotes nothing.
    let Some((found, expected)) = message.rsplit_once(EXPECTED) else { return message.to_owned() };
    let (expected, place) = match expected.find(PLACE) {
        Some(at) => expected.split_at(at),
        None => (expected, ""),
    };
    format!("{}{EXPECTED}{}{place}", found_in_words(found, object), expected_in_words(expected, object))
}

const EXPECTED: &str = ", expected ";

/// Some messages end with a position.
const PLACE: &str = " at line ";

fn found_in_words(found: &str, object: &str) -> String {
    let Some((what, value)) = found.split_once(": ") else { return found.to_owned() };
    let word = match value {
        "map" => object,
        "sequence" => "array",
        "unit value" | "Option value" => "null",
        _ => match value.strip_prefix("floating point ") {
            Some(number) => return format!("{what}: number {number}"),
            None => value,
        },
    };
    format!("{what}: {word}")
}

fn expected_in_words(expected: &str, object: &str) -> String {
    let integer = |least: i128, most: i128| format!("an integer from {least} to {most}");
    match expected {
        "u8" => integer(0, u8::MAX.into()),
        "u16" => integer(0, u16::MAX.into()),
        "u32" => integer(0, u32::MAX.into()),
        "i8" => integer(i8::MIN.into(), i8::MAX.into()),
        "i16" => integer(i16::MIN.into(), i16::MAX.into()),
        "i32" => integer(i32::MIN.into(), i32::MAX.into()),
        "u64" | "usize" | "u128" => "an integer that is not negative".to_owned(),
        "i64" | "isize" | "i128" => "an integer".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" => with_article(object),
        "string or map" => format!("a string or {}", with_article(object)),
        "unit" | "unit struct" => "null".to_owned(),
        _ if expected.starts_with("struct ") => with_article(object),
        _ if expected.starts_with("a tuple ") || expected.starts_with("tuple ") => "an array".to_owned(),
        _ => expected.to_owned(),
    }
}

fn with_article(object: &str) -> String {
    let article = if object.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {object}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Deserialize, Debug)]
    struct Filter {
        #[serde(rename = "depth")]
        _depth: u32,
    }

    #[track_caller]
    fn refused<T: for<'de> Deserialize<'de> + Debug>(value: Value) -> String {
        json_words(&serde_json::from_value::<T>(value).unwrap_err().to_string())
    }

    #[test]
    fn types_are_told_in_the_words_of_json() {
        let of_32_bits = "an integer from 0 to 4294967295";
        assert_eq!(refused::<u32>(json!({})), format!("invalid type: object, expected {of_32_bits}"));
        assert_eq!(refused::<u32>(json!([1])), format!("invalid type: array, expected {of_32_bits}"));
        assert_eq!(refused::<u32>(json!(null)), format!("invalid type: null, expected {of_32_bits}"));
        assert_eq!(refused::<u32>(json!(-1)), "invalid number");
        assert_eq!(
            refused::<usize>(json!("x, expected y")),
            "invalid type: string \"x, expected y\", expected an integer that is not negative"
        );
        assert_eq!(refused::<Vec<u8>>(json!(true)), "invalid type: boolean `true`, expected an array");
        assert_eq!(refused::<(u8, u8)>(json!({})), "invalid type: object, expected an array");
        assert_eq!(refused::<BTreeMap<String, u8>>(json!([])), "invalid type: array, expected an object");
        assert_eq!(refused::<Filter>(json!("x")), "invalid type: string \"x\", expected an object");
        assert_eq!(refused::<Result<u8, u8>>(json!(7)), "invalid type: number, expected a string or an object");
        assert_eq!(refused::<f64>(json!("1")), "invalid type: string \"1\", expected a number");
        let other = refused::<Filter>(json!({"depht": 1}));
        assert_eq!(other, "missing field `depth`");
    }

    #[test]
    fn json_words_keep_places_and_toml_words_tables() {
        let error = serde_json::from_str::<Vec<u8>>("[-1]").unwrap_err().to_string();
        let told = json_words(&error);
        assert!(
            told.starts_with("invalid value: integer `-1`, expected an integer from 0 to 255 at line 1 "),
            "{told}"
        );
        let error = serde_json::from_str::<u8>("1.5").unwrap_err().to_string();
        assert!(
            json_words(&error).starts_with("invalid type: number `1.5`, expected an integer from 0 to 255"),
            "{error}"
        );
        assert_eq!(toml_words("invalid type: map, expected a map"), "invalid type: table, expected a table");
    }
}
