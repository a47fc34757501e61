//! Texts at the limits and beyond.

use bitcoin::Network;

use super::{K, X, one};
use crate::limits::{MAX_DERIVATION_STEPS, MAX_KEYS, MAX_LENGTH, MAX_MULTIPATH, MAX_NESTING};
use crate::{Checksum, Descriptor, ExpandError};

#[test]
fn hostile_texts_are_refused_at_the_limits() {
    let check = |text: &str, expected: &str| {
        let error = Descriptor::parse(text, Network::Regtest, Checksum::Optional).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    let most = MAX_LENGTH;
    check(&"a".repeat(most + 1), &format!("Descriptor has {} characters, more than {most}", most + 1));
    let too_deep = format!("Descriptor nests deeper than {} levels", MAX_NESTING);
    check(&"sh(".repeat(1000), &too_deep);
    check(&format!("wsh({}:pk({K}))", "n".repeat(500)), &too_deep);
    let numbers: Vec<String> = (0..MAX_MULTIPATH + 1).map(|number| number.to_string()).collect();
    let (count, most) = (numbers.len(), MAX_MULTIPATH);
    let many = format!("wpkh(): Multipath key path specifier has {count} items, more than {most}");
    check(&format!("wpkh({X}/<{}>)", numbers.join(";")), &many);
    let leaf = format!("multi_a(1,{})", vec![K; 700].join(","));
    let many = format!("Multi: Descriptor has more than {} keys", MAX_KEYS);
    check(&format!("tr({K},{{{leaf},{leaf}}})"), &many);
    let steps = "/1".repeat(MAX_DERIVATION_STEPS + 1);
    let most = MAX_DERIVATION_STEPS;
    check(&format!("wpkh({X}{steps})"), &format!("wpkh(): Descriptor has more than {most} derivation steps"));
}

#[test]
fn the_deepest_miniscript_fits_a_small_stack() {
    // The wrapper `n` does not affect sanity. Each nested `or_i` is one more level until the end of the text.
    let wrapped = format!("wsh({}:pk({K}))", "n".repeat(MAX_NESTING - 3));
    let nested = (0..MAX_NESTING - 3).fold(format!("pk({K})"), |inner, _| format!("or_i(0,{inner})"));
    let work = move || {
        for text in [wrapped, format!("wsh({nested})"), format!("tr({K},{nested})")] {
            let parsed = Descriptor::parse(&text, Network::Regtest, Checksum::Optional);
            assert!(!parsed.as_ref().is_err_and(|error| error.to_string().contains("deeper")));
            let _ = parsed.map(|parsed| parsed.iter().map(|one| one.expand(0).is_ok()).collect::<Vec<_>>());
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

#[test]
fn paths_beyond_the_limits_of_bip_32_fail_to_expand() {
    let long = one(&format!("wpkh({X}{}/*)", "/1".repeat(255)));
    assert_eq!(long.expand(0), Err(ExpandError::NoSuchKey));
    assert_eq!(one(&format!("wpkh({X}/*)")).expand(1 << 31), Err(ExpandError::Index(1 << 31)));
    assert!(one(&format!("wpkh({K})")).expand(u32::MAX).is_ok(), "without a wildcard, the index has no effect");
}
