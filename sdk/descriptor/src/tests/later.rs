//! `musig()` and `unused()`, which Bitcoin Core 30 to 32 added.

use super::*;

#[test]
fn musig_and_unused_are_refused_before_their_releases() {
    let keys = format!("musig({K},{K2})");
    for (text, expected) in [
        (format!("tr({keys})"), format!("tr(): key '{keys}' is not valid")),
        (format!("rawtr({keys})"), format!("rawtr(): key '{keys}' is not valid")),
        (format!("tr({K},pk({keys}))"), format!("pk(): key '{keys}' is not valid")),
        (format!("unused({K})"), format!("'unused({K})' is not a valid descriptor function")),
    ] {
        let error = Descriptor::parse_as(&text, Network::Regtest, Checksum::Optional, PRESENT).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn an_aggregate_key_signs_nothing_although_its_participants_are_private() {
    let descriptor = one(&format!("tr(musig({S}/1h/*,{WIF}),pk({WIF}))"));
    assert!(descriptor.has_all_private_keys() && descriptor.is_ranged());
    let keys: Vec<usize> = descriptor.private_branches().secret_keys(0).iter().map(|(place, _)| *place).collect();
    assert_eq!(keys, [1]);
    assert!(one(&format!("tr(musig({X},{WIF}))")).has_private_keys());
    assert!(!one(&format!("tr(musig({X},{WIF}))")).has_all_private_keys());
}

#[test]
fn an_unused_key_has_no_scripts() {
    let descriptor = one(&format!("unused({S})"));
    assert!(descriptor.is_unused() && descriptor.is_solvable() && descriptor.has_private_keys());
    assert_eq!((descriptor.expand(0).unwrap().scripts, descriptor.output_type()), (Vec::new(), None));
    assert_eq!(descriptor.extended_keys().len(), 1);
    assert!(descriptor.to_private_string().unwrap().expose().starts_with(&format!("unused({S})#")));
}

#[test]
fn participants_of_aggregates_count_as_keys() {
    let participants = vec![K; limits::MAX_KEYS].join(",");
    assert_eq!(one(&format!("tr(musig({participants}))")).key_count(), limits::MAX_KEYS);
    refused(&format!("tr(musig({participants},{K}))"), "tr(): musig(): Descriptor has more than 1000 keys");
    refused(&format!("tr(musig({participants}),pk({K}))"), "pk(): Descriptor has more than 1000 keys");
}
