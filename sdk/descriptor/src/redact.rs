//! Removes private keys from client texts that error messages quote.

use std::str::FromStr;

use bitcoin::PrivateKey;
use bitcoin::bip32::{Xpriv, Xpub};

use super::secp::SECP;

/// The lengths of private keys in WIF, longest first.
const WIF_LENGTHS: [usize; 2] = [52, 51];
/// The first characters of WIF: uncompressed and compressed, mainnet and test networks.
const WIF_BEGINNINGS: [u8; 5] = *b"5KL9c";
/// The length and the prefixes of extended private keys.
const EXTENDED_LENGTH: usize = 111;
const EXTENDED_BEGINNINGS: [&str; 2] = ["xprv", "tprv"];

/// Replaces each private key in a text (WIF or BIP 32, of any network) by its public key.
pub fn without_private_keys(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (public, length) = public_half(rest).unwrap_or_else(|| (first.to_string(), first.len_utf8()));
        shown.push_str(&public);
        rest = rest.get(length..).unwrap_or_default();
    }
    shown
}

/// The public key of the private key at the start of a text, and the length of the private key's text.
fn public_half(text: &str) -> Option<(String, usize)> {
    if EXTENDED_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
        && let Ok(key) = Xpriv::from_str(text.get(..EXTENDED_LENGTH)?)
    {
        return Some((Xpub::from_priv(&SECP, &key).to_string(), EXTENDED_LENGTH));
    }
    if !WIF_BEGINNINGS.contains(text.as_bytes().first()?) {
        return None;
    }
    WIF_LENGTHS.iter().find_map(|length| {
        let key = PrivateKey::from_wif(text.get(..*length)?).ok()?;
        Some((key.public_key(&SECP).to_string(), *length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_keys_are_replaced_anywhere_in_a_text() {
        let wif = "cMcfH8sRgBgDMfpBNG6H3haaxLkaYXgqMRef8Nev6tWyBSNr6c3n";
        let public = PrivateKey::from_wif(wif).unwrap().public_key(&SECP).to_string();
        let xprv = "tprv8ZgxMBicQKsPd7Uf69XL1XwhmjHopUGep8GuEiJDZmbQz6o58LninorQAfcKZWARbtRtfnLcJ5MQ2AtHcQJCCRUcMRvmDUjyEmNUWwx8UbK";
        let xpub = Xpub::from_priv(&SECP, &xprv.parse().unwrap()).to_string();
        for (text, shown) in [
            (format!("key '{wif},{wif}' is bad"), format!("key '{public},{public}' is bad")),
            (format!("c{xprv}x/0"), format!("c{xpub}x/0")),
            (format!("{wif}{xprv}"), format!("{public}{xpub}")),
            ("äöü 5K c tprv".to_owned(), "äöü 5K c tprv".to_owned()),
            (format!("{}1", &wif[..51]), format!("{}1", &wif[..51])),
        ] {
            assert_eq!(without_private_keys(&text), shown);
        }
    }
}
