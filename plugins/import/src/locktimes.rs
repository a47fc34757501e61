//! Warnings about `older(N)` in miniscript whose value consensus truncates (BIP 68).

/// The bits of a relative locktime's value, and the flag for a value in units of 512 seconds.
const LENGTH: u32 = 0xffff;
const IN_SECONDS: u32 = 1 << 22;

/// Adds the warnings of a descriptor's text in bitcoind's order: leaf by leaf, within a leaf backwards.
pub fn warn(text: &str, warnings: &mut Vec<String>) {
    let (mut depth, mut leaf) = (0_u32, Vec::new());
    for (at, char) in text.char_indices() {
        match char {
            '(' => {
                depth += 1;
                let before = text.get(..at).unwrap_or_default();
                if before.ends_with("older") {
                    leaf.extend(text.get(at + 1..).and_then(warning));
                }
            }
            ')' => depth = depth.saturating_sub(1),
            // These separate the leaves of a taproot descriptor. Other arguments are deeper.
            '{' | '}' | ',' if depth == 1 => warnings.extend(leaf.drain(..).rev()),
            _ => {}
        }
    }
    warnings.extend(leaf.into_iter().rev());
}

/// The warning about the locktime at the start of the text, if consensus truncates it.
fn warning(text: &str) -> Option<String> {
    let locktime: u32 = text.split(')').next()?.parse().ok()?;
    let (is_time, length) = (locktime & IN_SECONDS > 0, locktime & !IN_SECONDS);
    (length > LENGTH).then(|| match is_time {
        true => format!("time-based relative locktime: older({locktime}) > (65535 * 512) seconds is unsafe"),
        false => format!("height-based relative locktime: older({locktime}) > 65535 blocks is unsafe"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn importdescriptors_warns_of_each_locktime_beyond_consensus_in_the_order_of_bitcoind() {
        for (text, expected) in [
            ("wsh(and_v(v:pk(K),older(65535)))", &[][..]),
            ("wsh(and_v(v:pk(K),older(4259839)))", &[]),
            (
                "wsh(and_v(v:pk(K),older(4259840)))",
                &["time-based relative locktime: older(4259840) > (65535 * 512) seconds is unsafe"],
            ),
            (
                "tr(K,{and_v(v:pk(A),older(65536)),or_i(and_v(v:pk(B),older(65537)),and_v(v:pk(C),older(65538)))})",
                &[
                    "height-based relative locktime: older(65536) > 65535 blocks is unsafe",
                    "height-based relative locktime: older(65538) > 65535 blocks is unsafe",
                    "height-based relative locktime: older(65537) > 65535 blocks is unsafe",
                ],
            ),
        ] {
            let mut warnings = Vec::new();
            warn(text, &mut warnings);
            assert_eq!(warnings, expected, "{text}");
        }
    }
}
