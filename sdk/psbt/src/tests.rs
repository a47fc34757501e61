//! Reading and writing by the rules of the BIPs, and bitcoind's messages by release. The end-to-end tests compare with a node.

use bitcoin::absolute::LockTime;
use bitcoin::hashes::{Hash, hash160};
use bitcoin::transaction::Version;
use bitcoin::{Amount, OutPoint, ScriptBuf, Sequence, Transaction, TxIn, TxOut, Txid, Witness};
use outrigger_standard::release::rules;

use crate::{Bytes, MuSig2Key, Origin, Psbt, VersionTwo, Xpub};

const KEY: MuSig2Key = [
    0x02, 0x79, 0xbe, 0x66, 0x7e, 0xf9, 0xdc, 0xbb, 0xac, 0x55, 0xa0, 0x62, 0x95, 0xce, 0x87, 0x0b, 0x07, 0x02, 0x9b,
    0xfc, 0xdb, 0x2d, 0xce, 0x28, 0xd9, 0x59, 0xf2, 0x81, 0x5b, 0x16, 0xf8, 0x17, 0x98,
];
const SIGNATURE: [u8; 9] = [0x30, 6, 2, 1, 1, 2, 1, 1, 1];

type Field<'a> = (&'a [u8], &'a [u8]);

/// The bytes of a map.
fn map(fields: &[Field<'_>]) -> Bytes {
    let byte = |bytes: &[u8]| u8::try_from(bytes.len()).unwrap();
    let one = |(key, value): &Field<'_>| [&[byte(key)], *key, &[byte(value)], *value].concat();
    fields.iter().flat_map(one).chain([0]).collect()
}

/// The global, input and output maps of a valid PSBT of version 2, for tests to change.
fn version_two() -> [Vec<Field<'static>>; 3] {
    [
        vec![(&[2], &[2, 0, 0, 0]), (&[4], &[1]), (&[5], &[1]), (&[0xfb], &[2, 0, 0, 0])],
        vec![(&[0x0e], &[7; 32]), (&[0x0f], &[1, 0, 0, 0])],
        vec![(&[3], &[9, 0, 0, 0, 0, 0, 0, 0]), (&[4], &[0x51])],
    ]
}

fn bytes(maps: &[Vec<Field<'_>>]) -> Bytes {
    b"psbt\xff".iter().copied().chain(maps.iter().flat_map(|fields| map(fields))).collect()
}

/// The error of a release's reader; empty if it accepts the bytes.
fn refusal(bytes: &[u8], release: u32) -> String {
    let read = Psbt::from_bytes(bytes, &rules(Some(release)));
    let text = read.err().map(|error| error.to_string()).unwrap_or_default();
    text.trim_start_matches("TX decode failed ").trim_end_matches(": iostream error").to_owned()
}

#[test]
fn version_2_needs_its_fields_and_version_0_forbids_them() {
    let texts: [(usize, u8, &str, &str); 12] = [
        (0, 2, "PSBT_GLOBAL_TX_VERSION is required in PSBTv2", "PSBT_GLOBAL_TX_VERSION is not allowed in PSBTv0"),
        (0, 3, "", "PSBT_GLOBAL_FALLBACK_LOCKTIME is not allowed in PSBTv0"),
        (0, 4, "PSBT_GLOBAL_INPUT_COUNT is required in PSBTv2", "PSBT_GLOBAL_INPUT_COUNT is not allowed in PSBTv0"),
        (0, 5, "PSBT_GLOBAL_OUTPUT_COUNT is required in PSBTv2", "PSBT_GLOBAL_OUTPUT_COUNT is not allowed in PSBTv0"),
        (0, 6, "", "PSBT_GLOBAL_TX_MODIFIABLE is not allowed in PSBTv0"),
        (1, 0x0e, "Previous TXID is required in PSBTv2", "Previous txid is not allowed in PSBTv0"),
        (1, 0x0f, "Previous output's index is required in PSBTv2", "Previous output's index is not allowed in PSBTv0"),
        (1, 0x10, "", "Sequence is not allowed in PSBTv0"),
        (1, 0x11, "", "Required time based locktime is not allowed in PSBTv0"),
        (1, 0x12, "", "Required height based locktime is not allowed in PSBTv0"),
        (2, 3, "Output amount is required in PSBTv2", "Output amount is not allowed in PSBTv0"),
        (2, 4, "Output script is required in PSBTv2", "Output script is not allowed in PSBTv0"),
    ];
    assert_eq!(refusal(&bytes(&version_two()), 32), "");
    let unsigned = [&[2, 0, 0, 0, 1][..], &[7; 32], &[0; 5], &[0xff; 4], &[1], &[0; 9], &[0; 4]].concat();
    for (place, kind, missing, forbidden) in texts {
        let mut without = version_two();
        without[place].retain(|(key, _)| *key != [kind]);
        assert_eq!(refusal(&bytes(&without), 32), missing, "{place} {kind:#x}");
        let mut zero: [Vec<Field<'_>>; 3] = [vec![(&[0], &unsigned)], Vec::new(), Vec::new()];
        assert_eq!(refusal(&bytes(&zero), 32), "");
        let key = [kind];
        let value: &[u8] = if place == 0 && kind > 3 { &[1] } else { &[1, 0, 0, 0] };
        zero[place].push((&key, value));
        assert_eq!(refusal(&bytes(&zero), 32), forbidden, "{place} {kind:#x}");
        assert_eq!(refusal(&bytes(&zero), 31), "", "{place} {kind:#x}");
    }
    let mut both = version_two();
    both[0].push((&[0], &unsigned));
    assert_eq!(refusal(&bytes(&both), 32), "PSBT_GLOBAL_UNSIGNED_TX is not allowed in PSBTv2");
    for (version, newer, older) in [
        (1, "There is no PSBT version 1", "Unsupported version number"),
        (3, "Unsupported version number", "Unsupported version number"),
    ] {
        let (mut maps, value) = (version_two(), [version, 0, 0, 0]);
        maps[0][3].1 = &value;
        assert_eq!((refusal(&bytes(&maps), 32).as_str(), refusal(&bytes(&maps), 31).as_str()), (newer, older));
    }
}

#[test]
fn required_lock_times_are_in_their_ranges() {
    for (kind, number, text) in [
        (0x11, 499_999_999_u32, "Required time based locktime is invalid (less than 500000000)"),
        (0x11, 500_000_000, ""),
        (0x11, u32::MAX, ""),
        (0x12, 0, "Required height based locktime is invalid (0)"),
        (0x12, 1, ""),
        (0x12, 499_999_999, ""),
        (0x12, 500_000_000, "Required height based locktime is invalid (greater than or equal to 500000000)"),
    ] {
        let (mut maps, key, value) = (version_two(), [kind], number.to_le_bytes());
        maps[1].push((&key, &value));
        assert_eq!(refusal(&bytes(&maps), 32), text, "{kind:#x} {number}");
    }
}

/// The cases of BIP 370: what two inputs require by height and time, and the lock time.
#[test]
fn lock_times_are_those_of_bip_370() {
    const EARLY: u32 = 1_657_048_459;
    const LATE: u32 = 1_657_048_460;
    let none = (None, None);
    for (first, second, expected) in [
        (none, none, Some(7)),
        ((Some(10_000), None), none, Some(10_000)),
        ((Some(10_000), None), (Some(9_000), None), Some(10_000)),
        ((Some(10_000), None), (Some(9_000), Some(LATE)), Some(10_000)),
        ((Some(10_000), Some(EARLY)), (Some(9_000), Some(LATE)), Some(10_000)),
        ((None, Some(EARLY)), none, Some(EARLY)),
        ((None, Some(EARLY)), (Some(9_000), Some(LATE)), Some(LATE)),
        ((Some(10_000), Some(EARLY)), (None, Some(LATE)), Some(LATE)),
        (none, (None, Some(LATE)), Some(LATE)),
        ((Some(10_000), None), (None, Some(LATE)), None),
    ] {
        let mut psbt = Psbt::of_version(transaction(2, 1), true);
        psbt.v2 = Some(VersionTwo { fallback_lock_time: Some(7), modifiable: None });
        for (input, (height, time)) in psbt.inputs.iter_mut().zip([first, second]) {
            (input.height_lock, input.time_lock) = (height, time);
        }
        let read = Psbt::from_bytes(&psbt.to_bytes(), &rules(Some(32))).unwrap();
        assert_eq!(read.lock_time().map(LockTime::to_consensus_u32), expected, "{first:?} {second:?}");
        assert_eq!(read.tx.lock_time.to_consensus_u32(), expected.unwrap_or(0));
        // PSBTs without a locktime cannot be combined.
        assert_eq!(read.clone().combine(&read, &rules(Some(32))), expected.is_some());
    }
}

fn two(fallback_lock_time: Option<u32>, modifiable: Option<u8>) -> Psbt {
    let mut psbt = Psbt::of_version(transaction(1, 1), true);
    psbt.v2 = Some(VersionTwo { fallback_lock_time, modifiable });
    psbt.update_lock_time();
    psbt
}

#[test]
fn combining_ands_the_modifiable_flags_and_ors_sighash_single() {
    let rules = rules(Some(32));
    for (ours, theirs, both) in [
        (Some(1), Some(2), Some(0)),
        (Some(3), Some(1), Some(1)),
        (Some(4), None, Some(4)),
        (None, None, None),
        (Some(0xff), Some(7), Some(7)),
        (Some(0xff), Some(0xff), Some(0xff)),
        (Some(8), Some(8), Some(8)),
    ] {
        let mut combined = two(None, ours);
        assert!(combined.combine(&two(Some(0), theirs), &rules));
        assert_eq!(combined.v2, Some(VersionTwo { fallback_lock_time: Some(0), modifiable: both }));
    }
    assert!(!two(Some(1), None).combine(&two(Some(2), None), &rules));
}

#[test]
fn combining_version_2_adds_missing_sequences() {
    let rules = rules(Some(32));
    let (mut ours, mut theirs) = (two(None, None), two(None, None));
    ours.inputs[0].has_sequence = false;
    ours.tx.input[0].sequence = Sequence::MAX;
    theirs.tx.input[0].sequence = Sequence(5);
    assert!(ours.combine(&theirs, &rules));
    assert_eq!((ours.inputs[0].has_sequence, ours.tx.input[0].sequence), (true, Sequence(5)));
    assert!(!ours.combine(&Psbt::new(theirs.tx.clone()), &rules));
}

#[test]
fn combining_keeps_one_origin_of_an_extended_key_since_32() {
    let of = |step| {
        let mut psbt = Psbt::new(transaction(1, 1));
        let mut xpub = [0; 78];
        xpub[45..].copy_from_slice(&KEY);
        psbt.xpubs.entry(Origin { fingerprint: [1; 4], path: vec![step] }).or_default().insert(Xpub(xpub));
        psbt
    };
    for (release, count) in [(29, 2), (32, 1)] {
        let mut combined = of(2);
        assert!(combined.combine(&of(1), &rules(Some(release))));
        assert_eq!(combined.xpubs.len(), count);
        assert_eq!(refusal(&combined.to_bytes(), release).is_empty(), count == 1);
    }
    // Also if the other PSBT has two origins with different depths.
    let (mut twice, mut combined) = (of(1), Psbt::new(transaction(1, 1)));
    twice.xpubs.extend(of(2).xpubs);
    assert!(combined.combine(&twice, &rules(Some(32))));
    assert_eq!(combined.xpubs, of(1).xpubs);
}

#[test]
fn messages_are_those_of_the_release() {
    let hex: String = KEY.iter().map(|byte| format!("{byte:02x}")).collect();
    let with = |kind: u8| [&[kind], &KEY[..]].concat();
    let pair = |kind: u8| [&[kind], &KEY[..], &KEY].concat();
    let (participants, nonce, sig, partial) = (with(0x1a), pair(0x1b), pair(0x1c), with(2));
    let mut off_curve = participants.clone();
    off_curve[1] = 5;
    let two = [KEY, KEY].concat();
    let once = |key: &[u8], value: &[u8]| vec![(key.to_vec(), value.to_vec())];
    let cases = [
        (
            once(&[0x03, 0], &[1, 0, 0, 0]),
            "Sighash type key is more than one byte type",
            "Sighash type key is more than one byte type",
            "Size of key was not 1 for the type Input Sighash Type",
        ),
        (
            once(&[0x0a], &[]),
            "Size of key was not the expected size for the type ripemd160 preimage",
            "Size of key was not the expected size for the type ripemd160 preimage",
            "Size of key was not 21 for the type Input RIPEMD160 Preimage",
        ),
        (
            once(&[0x15], &[1]),
            "Taproot leaf script key is not at least 34 bytes",
            "Taproot leaf script key is not at least 34 bytes",
            "Input Taproot leaf script key is not at least 34 bytes",
        ),
        (
            once(&[0x17], &[]),
            "DataStream::read(): end of data",
            "DataStream::read(): end of data",
            "SpanReader::read(): end of data",
        ),
        (once(&partial, &SIGNATURE), "", "", ""),
        (once(&partial, &SIGNATURE[..8]), "", "Signature is not a valid encoding", "Signature is not a valid encoding"),
        (once(&partial, &[]), "", "Signature is not a valid encoding", "Signature is not a valid encoding"),
        (once(&participants, &two), "", "", ""),
        (
            once(&participants[..9], &two),
            "",
            "Input musig2 participants pubkeys aggregate key is not 34 bytes",
            "Size of key was not 34 for the type Input MuSig2 Participants Pubkeys",
        ),
        (
            once(&participants, &two[..65]),
            "",
            "Input musig2 participants pubkeys value size is not a multiple of 33",
            "Input musig2 participants pubkeys value size is not a multiple of 33",
        ),
        (
            once(&off_curve, &two),
            "",
            "Input musig2 aggregate pubkey is invalid",
            "Input musig2 aggregate pubkey is invalid",
        ),
        (
            once(&participants, &off_curve[1..]),
            "",
            "Input musig2 participant pubkey is invalid",
            "Input musig2 participant pubkey is invalid",
        ),
        (once(&nonce, &[2; 66]), "", "", ""),
        (
            once(&nonce[..34], &[2; 66]),
            "",
            "Input musig2 pubnonce key is not expected size of 67 or 99 bytes",
            "Input musig2 pubnonce key is not expected size of 67 or 99 bytes",
        ),
        (
            once(&nonce, &[2; 65]),
            "",
            "Input musig2 pubnonce value is not 66 bytes",
            "Input musig2 pubnonce value is not 66 bytes",
        ),
        (
            once(&sig[..66], &[2; 32]),
            "",
            "Input musig2 partial sig key is not expected size of 67 or 99 bytes",
            "Input musig2 partial sig key is not expected size of 67 or 99 bytes",
        ),
        (once(&sig, &[2; 33]), "", "Size of value was not the stated size", "Size of value was not the stated size"),
    ];
    let zero = |fields: &[(Bytes, Bytes)]| {
        let mut read = Psbt::new(transaction(1, 0));
        read.tx.output.clear();
        let head = read.to_bytes();
        // The map of the input is the last one.
        let fields: Vec<Field<'_>> = fields.iter().map(|(key, value)| (&key[..], &value[..])).collect();
        [&head[..head.len() - 1], &map(&fields)].concat()
    };
    for (fields, in_29, in_30, in_32) in cases {
        let found = [29, 30, 32].map(|release| refusal(&zero(&fields), release));
        assert_eq!(found, [in_29, in_30, in_32], "{fields:02x?}");
        if in_32.is_empty() {
            let twice = refusal(&zero(&[fields.clone(), fields].concat()), 32);
            assert!(twice.starts_with("Duplicate Key, input key \"") && twice.contains(&hex), "{twice}");
        }
    }
}

fn transaction(inputs: u8, outputs: u8) -> Transaction {
    let input = |index: u8| TxIn {
        previous_output: OutPoint::new(Txid::from_byte_array([index; 32]), index.into()),
        script_sig: ScriptBuf::new(),
        sequence: Sequence(u32::from(index) << 8),
        witness: Witness::new(),
    };
    let output = |index: u8| TxOut {
        value: Amount::from_sat(u64::from(index) * 1000),
        script_pubkey: ScriptBuf::from_bytes(vec![0x51; index.into()]),
    };
    Transaction {
        version: Version::TWO,
        lock_time: LockTime::from_consensus(7),
        input: (1..=inputs).map(input).collect(),
        output: (1..=outputs).map(output).collect(),
    }
}

/// A pseudorandom number generator (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let number = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (number ^ (number >> 31)) % bound
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 0
    }

    fn small(&mut self) -> u8 {
        u8::try_from(self.below(4)).unwrap()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        [(); N].map(|()| u8::try_from(1 + self.below(255)).unwrap())
    }
}

/// A PSBT of either version with fields of all kinds.
fn random(numbers: &mut Numbers) -> Psbt {
    let version_two = numbers.yes();
    let mut psbt = Psbt::of_version(transaction(numbers.small(), numbers.small()), version_two);
    let origin = Origin { fingerprint: numbers.array(), path: vec![numbers.small().into(), 0x8000_0000] };
    psbt.unknown.insert(vec![0x0c, numbers.small()], numbers.array::<3>().to_vec());
    psbt.proprietary.insert(vec![0xfc, 1, numbers.small(), 2], vec![5]);
    if let Some(v2) = &mut psbt.v2 {
        v2.fallback_lock_time = numbers.yes().then_some(9);
        v2.modifiable = numbers.yes().then(|| numbers.small());
    }
    for (spends, input) in psbt.tx.input.iter_mut().zip(&mut psbt.inputs) {
        if psbt.v2.is_some() {
            input.has_sequence = numbers.yes();
            if !input.has_sequence {
                spends.sequence = Sequence::MAX;
            }
            input.height_lock = numbers.yes().then_some(1 + u32::from(numbers.small()));
            input.time_lock = numbers.yes().then_some(500_000_000);
        }
        if numbers.yes() {
            input.final_witness = Witness::from_slice(&[numbers.array::<4>()]);
            continue;
        }
        let leaf = numbers.yes().then(|| numbers.array());
        input.musig2_participants.insert(KEY, vec![KEY; numbers.small().into()]);
        input.musig2_nonces.insert((KEY, leaf, KEY), numbers.array());
        input.musig2_sigs.insert((KEY, leaf, KEY), numbers.array());
        input.partial_sigs.insert(hash160::Hash::hash(&KEY), (KEY.to_vec(), SIGNATURE.to_vec()));
        input.sighash_type = numbers.yes().then_some(1);
        input.tap_key_sig = numbers.array::<64>().to_vec();
        input.tap_origins.insert(numbers.array(), ([numbers.array()].into(), origin.clone()));
        input.unknown.insert(vec![0x20, numbers.small()], Vec::new());
    }
    for output in &mut psbt.outputs {
        output.origins.insert(KEY.to_vec(), origin.clone());
        output.tap_internal_key = numbers.yes().then(|| numbers.array());
        output.musig2_participants.insert(KEY, vec![KEY]);
        output.proprietary.insert(vec![0xfc, 1, numbers.small(), 2], vec![5]);
    }
    psbt.update_lock_time();
    psbt
}

#[test]
fn psbts_are_read_as_they_were_written() {
    let (mut numbers, mut versions) = (Numbers(7), [0, 0]);
    for _ in 0..2000 {
        let psbt = random(&mut numbers);
        versions[usize::from(psbt.v2.is_some())] += 1;
        let written = psbt.to_bytes();
        let read = Psbt::from_bytes(&written, &rules(Some(32))).unwrap();
        assert_eq!((&read, read.to_bytes()), (&psbt, written));
    }
    assert!(versions.iter().all(|count| *count > 500), "{versions:?}");
}
