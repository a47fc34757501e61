//! Texts of clients in messages: what is said of a text must not repeat the private keys in it.

use std::str::FromStr;

use bitcoin::PrivateKey;
use bitcoin::bip32::{Xpriv, Xpub};

use super::secp::SECP;

/// The lengths of a private key in wallet import format, the longer first.
const WIF_LENGTHS: [usize; 2] = [52, 51];
/// What such a key begins with: uncompressed and compressed, of the main chain and of test chains.
const WIF_BEGINNINGS: [u8; 5] = *b"5KL9c";
/// The length of an extended private key's text, and what it begins with.
const EXTENDED_LENGTH: usize = 111;
const EXTENDED_BEGINNINGS: [&str; 2] = ["xprv", "tprv"];

/// The text with each private key in it (WIF, or extended as of BIP 32, of whatever network) replaced by its public key:
/// for messages that name a part of what a client sent.
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

/// The public half of the private key that a text begins with, and the length of the private one's text.
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
    fn private_keys_are_replaced_wherever_they_stand() {
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
