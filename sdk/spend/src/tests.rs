//! Tests of coin selection, without a host.

use bitcoin::hashes::Hash;
use bitcoin::secp256k1::rand::rngs::StdRng;
use bitcoin::secp256k1::rand::{self, RngCore, SeedableRng};
use bitcoin::{Amount, OutPoint, ScriptBuf, SignedAmount, TxOut, Txid, Weight};
use outrigger_service::mempool::ClusterLimits;
use outrigger_service::mempool::MempoolEntry;
use outrigger_values::FeeRate;
use proptest::prelude::*;

use crate::bump::Unconfirmed;
use crate::coin::{Coin, OutputKind};
use crate::error::SpendError;
use crate::select::{
    COMBINATION_TOO_HEAVY, INPUTS_TOO_SMALL, NO_ROOM_FOR_CHANGE, Params, Selection, TOO_MANY_INPUTS, TOO_MANY_OUTPUTS,
    UNCONFIRMED_CHAIN, select,
};
use crate::weight::InputSize;

/// The script of an address. The number distinguishes addresses of a type.
fn script(kind: OutputKind, number: u8) -> ScriptBuf {
    let prefix: &[u8] = match kind {
        OutputKind::Bech32m => &[0x51, 32],
        _ => &[0, 20],
    };
    ScriptBuf::from_bytes([prefix, &[number; 20]].concat())
}

fn txid(number: usize) -> Txid {
    let mut id = [0; 32];
    id[..8].copy_from_slice(&number.to_be_bytes());
    Txid::from_byte_array(id)
}

/// A confirmed coin at its own address. Its input has 68 virtual bytes, 58 for P2TR.
fn coin(number: usize, value: u64, kind: OutputKind) -> Coin {
    let size = match kind {
        OutputKind::Bech32m => InputSize::new(0, &[65]),
        _ => InputSize::new(0, &[71, 33]),
    };
    let output = TxOut { value: Amount::from_sat(value), script_pubkey: script(kind, number as u8) };
    Coin { depth: 10, ..Coin::new(OutPoint::new(txid(number), 0), output, kind, size) }
}

fn coins(values: &[u64]) -> Vec<Coin> {
    values.iter().enumerate().map(|(number, value)| coin(number, *value, OutputKind::Bech32)).collect()
}

fn sat(satoshi: i64) -> SignedAmount {
    SignedAmount::from_sat(satoshi)
}

/// A payment at a feerate in satoshi per virtual byte, with one output and P2WPKH change.
fn params(feerate: u64) -> Params {
    let rate = |feerate| FeeRate::from_sat_per_kvb(feerate * 1000);
    Params {
        feerate: rate(feerate),
        long_term_feerate: rate(10),
        size_without_inputs: 42,
        change_size: 31,
        change_fee: sat((31 * feerate).cast_signed()),
        cost_of_change: sat((31 * feerate + 68 * 3).cast_signed()),
        least_change: sat(294),
        change_target: sat(50_000),
        subtract_fee: false,
        group_by_script: false,
        include_unsafe: false,
        spend_unconfirmed_change: true,
        reject_long_chains: true,
        max_weight: Weight::from_wu(400_000),
    }
}

fn choose(coins: &mut [Coin], preset: usize, target: i64, params: &Params) -> Result<Selection, SpendError> {
    for coin in coins.iter_mut() {
        coin.set_feerates(params.feerate, params.long_term_feerate);
    }
    let none = Unconfirmed::default().bump_fees(params.feerate, []).unwrap();
    select(coins, preset, sat(target), true, params, &none, &mut StdRng::seed_from_u64(1))
}

fn values(coins: &[Coin], selection: &Selection) -> Vec<u64> {
    let mut values: Vec<u64> = selection.coins.iter().map(|position| coins[*position].output.value.to_sat()).collect();
    values.sort_unstable_by(|one, other| other.cmp(one));
    values
}

#[track_caller]
fn check(coins: &mut [Coin], target: i64, params: &Params, expect: &[u64]) {
    let selection = choose(coins, 0, target, params).unwrap();
    assert_eq!(values(coins, &selection), expect);
}

#[test]
fn selection_prefers_a_match_without_change() {
    let mut coins = coins(&[200_000, 101_360, 60_000]);
    check(&mut coins, 100_000, &params(20), &[101_360]);
    let selection = choose(&mut coins, 0, 100_000, &params(20)).unwrap();
    assert_eq!(selection.change(&coins, &params(20)), None);
    // At low feerates the selection consolidates.
    let selection = choose(&mut coins, 0, 100_000, &params(1)).unwrap();
    assert!(selection.coins.len() > 1);
}

#[test]
fn selection_takes_settled_coins_before_fresh_ones() {
    let mut coins = coins(&[100_000, 200_000, 400_000, 800_000]);
    (coins[1].depth, coins[2].depth, coins[3].depth) = (5, 1, 0);
    (coins[3].from_us, coins[3].ancestors, coins[3].descendants) = (true, 1, 1);
    check(&mut coins[..1], 40_000, &params(1), &[100_000]);
    assert!(!values(&coins, &choose(&mut coins.clone(), 0, 250_000, &params(1)).unwrap()).contains(&800_000));
    check(&mut coins, 690_000, &params(1), &[400_000, 200_000, 100_000]);
    assert!(values(&coins, &choose(&mut coins.clone(), 0, 900_000, &params(1)).unwrap()).contains(&800_000));
    // Unconfirmed coins from others only with `include_unsafe`.
    coins[3].from_us = false;
    assert_eq!(choose(&mut coins, 0, 900_000, &params(1)).unwrap_err(), SpendError::InsufficientFunds);
    assert!(choose(&mut coins, 0, 900_000, &Params { include_unsafe: true, ..params(1) }).is_ok());
}

#[test]
fn selection_does_not_make_longer_chains_than_the_mempool_takes() {
    let mut coins = coins(&[800_000]);
    (coins[0].depth, coins[0].from_us) = (0, true);
    let mut with_chain = |ancestors, params| {
        (coins[0].ancestors, coins[0].descendants) = (ancestors, ancestors);
        choose(&mut coins, 0, 100_000, &params).map(|_| ())
    };
    assert_eq!(with_chain(24, params(1)), Ok(()));
    assert_eq!(with_chain(25, params(1)), Err(UNCONFIRMED_CHAIN));
    assert_eq!(with_chain(25, Params { reject_long_chains: false, ..params(1) }), Ok(()));
    assert_eq!(
        with_chain(1, Params { spend_unconfirmed_change: false, ..params(1) }),
        Err(SpendError::InsufficientFunds)
    );
}

#[test]
fn selection_mixes_types_only_where_none_suffices() {
    let mut mixed = coins(&[60_000, 50_000, 40_000]);
    mixed.extend((3..6).map(|number| coin(number, 50_000, OutputKind::Bech32m)));
    let kinds = |coins: &[Coin], selection: &Selection| -> Vec<OutputKind> {
        let mut kinds: Vec<OutputKind> = selection.coins.iter().map(|position| coins[*position].kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    };
    for target in [30_000, 90_000, 120_000] {
        let selection = choose(&mut mixed, 0, target, &params(2)).unwrap();
        assert_eq!(kinds(&mixed, &selection).len(), 1, "{target}");
    }
    let selection = choose(&mut mixed, 0, 200_000, &params(2)).unwrap();
    assert_eq!(kinds(&mixed, &selection), [OutputKind::Bech32, OutputKind::Bech32m]);
}

#[test]
fn selection_spends_the_coins_of_a_script_together_where_that_is_asked_for() {
    let mut coins = coins(&[100_000, 90_000, 80_000]);
    coins[2].output.script_pubkey = coins[0].output.script_pubkey.clone();
    let grouped = Params { group_by_script: true, ..params(1) };
    check(&mut coins, 95_000, &grouped, &[100_000, 80_000]);
    let many: Vec<u64> = vec![1_000; 150];
    let mut many: Vec<Coin> = self::coins(&many);
    let same = many[0].output.script_pubkey.clone();
    many.iter_mut().for_each(|coin| coin.output.script_pubkey = same.clone());
    assert_eq!(choose(&mut many, 0, 10_000, &grouped).unwrap().coins.len(), 100);
    assert_eq!(choose(&mut many, 0, 130_000, &grouped).unwrap().coins.len(), 150);
}

#[test]
fn selection_takes_named_coins_first() {
    let mut coins = coins(&[10_000, 20_000, 100_000, 50_000]);
    let selection = choose(&mut coins, 2, 29_000, &params(1)).unwrap();
    assert_eq!(selection.coins, [0, 1]);
    let selection = choose(&mut coins, 2, 100_000, &params(1)).unwrap();
    assert_eq!((&selection.coins[..2], selection.target), (&[0, 1][..], sat(100_000)));
    let none = Unconfirmed::default().bump_fees(params(1).feerate, []).unwrap();
    let mut random = StdRng::seed_from_u64(1);
    let refused = select(&coins, 2, sat(100_000), false, &params(1), &none, &mut random).unwrap_err();
    assert_eq!(refused, INPUTS_TOO_SMALL);
}

/// Counts the random numbers drawn: the random algorithms draw many.
struct Counted {
    random: StdRng,
    drawn: usize,
}

impl RngCore for Counted {
    fn next_u32(&mut self) -> u32 {
        self.drawn += 1;
        self.random.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.drawn += 1;
        self.random.next_u64()
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.random.fill_bytes(bytes);
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), rand::Error> {
        self.random.try_fill_bytes(bytes)
    }
}

/// The number of random numbers drawn by a selection that fails because the inputs are too heavy.
fn drawn_in_vain(coins: &[Coin], target: i64, params: &Params) -> usize {
    let none = Unconfirmed::default().bump_fees(params.feerate, []).unwrap();
    let mut random = Counted { random: StdRng::seed_from_u64(1), drawn: 0 };
    let refused = select(coins, 0, sat(target), true, params, &none, &mut random).unwrap_err();
    assert_eq!(refused, TOO_MANY_INPUTS);
    random.drawn
}

#[test]
fn selection_does_not_search_where_no_set_of_coins_is_light_enough() {
    let kinds = [OutputKind::Legacy, OutputKind::P2shSegwit, OutputKind::Bech32, OutputKind::Bech32m];
    let small: Vec<Coin> = (0..20_000).map(|number| coin(number, 10_000, kinds[number % kinds.len()])).collect();
    assert_eq!(drawn_in_vain(&small, 30_000_000, &params(1)), 0);
}

#[test]
fn selection_leaves_filters_out_where_many_coins_were_tried_in_vain() {
    let pool = |count: usize| {
        let mut small = coins(&vec![1_000; count]);
        // The light coin defeats the early check for weight.
        let (outpoint, output) = (small[0].outpoint, small[0].output.clone());
        small[0] = Coin { depth: 10, ..Coin::new(outpoint, output, OutputKind::Bech32, InputSize::new(0, &[])) };
        small
    };
    let drawn = |count, spend_unconfirmed_change| {
        drawn_in_vain(&pool(count), 1_700_000, &Params { spend_unconfirmed_change, ..params(1) })
    };
    // Drawing scales with the number of coins.
    let two_filters = 10 * drawn(5_100, false);
    let all_filters = drawn(51_000, true);
    assert!(all_filters < two_filters * 7 / 4, "{all_filters} and {two_filters}");
}

#[test]
fn selection_has_a_greatest_weight() {
    let mut small = coins(&[1_000; 2_000]);
    assert_eq!(choose(&mut small, 0, 1_700_000, &params(1)).unwrap_err(), TOO_MANY_INPUTS);
    small.push(coin(2_000, 5_000_000, OutputKind::Bech32));
    assert_eq!(values(&small, &choose(&mut small.clone(), 0, 1_700_000, &params(1)).unwrap())[0], 5_000_000);
    let outputs = |size_without_inputs| Params { size_without_inputs, ..params(1) };
    assert_eq!(choose(&mut small, 0, 10, &outputs(100_000)).unwrap_err(), TOO_MANY_OUTPUTS);
    assert_eq!(choose(&mut small, 0, 10, &outputs(99_990)).unwrap_err(), NO_ROOM_FOR_CHANGE);
    // Preset inputs count, too.
    let mut named = coins(&[1_000; 1_000]);
    named.extend((1_000..2_000).map(|number| coin(number, 1_000, OutputKind::Bech32)));
    assert_eq!(choose(&mut named, 1_000, 1_500_000, &params(1)).unwrap_err(), COMBINATION_TOO_HEAVY);
}

#[test]
fn selection_for_recipients_who_pay_the_fee_counts_whole_values() {
    let mut coins = coins(&[100_000, 60_000]);
    let subtract = Params { subtract_fee: true, ..params(20) };
    let selection = choose(&mut coins, 0, 160_000, &subtract).unwrap();
    assert_eq!((selection.coins.len(), selection.change(&coins, &subtract)), (2, None));
    let selection = choose(&mut coins, 2, 150_000, &subtract).unwrap();
    assert_eq!(selection.change(&coins, &subtract), Some(sat(10_000)));
}

#[test]
fn change_target_lies_between_its_bounds() {
    let mut random = StdRng::seed_from_u64(3);
    let mut target = |payment| Params::random_change_target(sat(payment), sat(7), &mut random).to_sat();
    assert_eq!((target(0), target(25_000)), (50_007, 50_007));
    for _ in 0..100 {
        assert!((50_007..60_007).contains(&target(30_000)));
        assert!((50_007..1_000_007).contains(&target(100_000_000)));
    }
    assert!(target(25_001) < 50_009);
}

/// A mempool entry with fee, size, parents, children, and count, size and fees with its ancestors.
fn entry(
    number: usize,
    fee: i64,
    size: u64,
    depends: &[usize],
    spent_by: &[usize],
    package: (u64, u64, i64),
) -> MempoolEntry {
    let (ancestor_count, ancestor_size, ancestor_fees) = package;
    MempoolEntry {
        txid: txid(number),
        wtxid: Hash::all_zeros(),
        weight: Weight::from_wu(size * 4),
        virtual_size: size,
        fee: Amount::from_sat(fee.unsigned_abs()),
        modified_fee: sat(fee),
        time: 0,
        height: 1,
        ancestor_count,
        ancestor_size,
        ancestor_fees: sat(ancestor_fees),
        descendant_count: 1 + spent_by.len() as u64,
        descendant_size: size,
        descendant_fees: sat(fee),
        depends: depends.iter().copied().map(txid).collect(),
        spent_by: spent_by.iter().copied().map(txid).collect(),
        replaceable: true,
        unbroadcast: false,
    }
}

#[test]
fn ancestors_are_paid_for_once() {
    // A parent pays 1 sat/vB for 1000 vB. Of its two children of 100 vB, one pays 2 sat/vB and the other 3 sat/vB. A
    // child of another parent pays 200 sat/vB.
    let entries = [
        entry(1, 1_000, 1_000, &[], &[2, 3], (1, 1_000, 1_000)),
        entry(2, 200, 100, &[1], &[], (2, 1_100, 1_200)),
        entry(4, 100, 100, &[], &[5], (1, 100, 100)),
        entry(5, 20_000, 100, &[4], &[], (2, 200, 20_100)),
        entry(3, 300, 100, &[1], &[], (2, 1_100, 1_300)),
    ];
    let unconfirmed = Unconfirmed::of(entries.into_iter().collect::<Vec<_>>());
    assert_eq!(unconfirmed.ancestry(txid(2)), (2, 3));
    assert_eq!(unconfirmed.ancestry(txid(9)), (0, 0));
    let at = |feerate: u64| unconfirmed.bump_fees(FeeRate::from_sat_per_kvb(feerate * 1000), []).unwrap();
    let bump = at(5);
    assert_eq!((bump.of(txid(1)), bump.of(txid(2)), bump.of(txid(3))), (sat(4_000), sat(4_300), sat(4_200)));
    assert_eq!(bump.combined([txid(2), txid(3)]), sat(4_500));
    assert_eq!(bump.combined([txid(2), txid(2)]), sat(4_300));
    // A child that pays for its parent is mined with it.
    assert_eq!((bump.of(txid(4)), bump.of(txid(5)), bump.of(txid(9))), (sat(0), sat(0), sat(0)));
    assert_eq!(at(1).combined([txid(1), txid(2), txid(3)]), sat(0));
    assert_eq!(at(150).of(txid(5)), sat(9_900));
    // A replaced transaction does not count, nor do its descendants.
    let replaced = unconfirmed.bump_fees(FeeRate::from_sat_per_kvb(5_000), [txid(1)]).unwrap();
    assert_eq!(replaced.of(txid(2)), sat(0));
}

#[test]
fn a_cluster_counts_whatever_is_connected() {
    // The payment spends coins of 1 and 3, and connects the clusters {1, 2} and {3}. 4 is in another cluster.
    let entries = vec![
        entry(1, 100, 100, &[], &[2], (1, 100, 100)),
        entry(2, 100, 100, &[1], &[], (2, 200, 200)),
        entry(3, 100, 700, &[], &[], (1, 700, 100)),
        entry(4, 100, 100, &[], &[], (1, 100, 100)),
    ];
    let with = |count, size| {
        let mut unconfirmed = Unconfirmed::of(entries.clone());
        unconfirmed.limits = Some(ClusterLimits { count, size });
        unconfirmed.check_limits([txid(1), txid(3), txid(9)], 50)
    };
    let refused = Err("too many unconfirmed transactions in cluster".to_owned());
    assert_eq!((with(4, 950), with(3, 950), with(4, 949)), (Ok(()), refused.clone(), refused));
    assert_eq!(Unconfirmed::of(entries).check_limits([txid(1), txid(3)], 50), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A payment fails only if all coins together do not suffice. Change is the amount beyond target and fee.
    #[test]
    fn selection_pays_whatever_the_coins_suffice_for(
        amounts in proptest::collection::vec((300_u64..300_000, any::<bool>(), 0_u8..4), 1..12),
        target in 1_000_i64..1_000_000, feerate in 1_u64..60, subtract_fee: bool, group_by_script: bool, seed: u64,
    ) {
        let mut coins: Vec<Coin> = amounts.iter().enumerate().map(|(number, (value, taproot, address))| {
            let kind = if *taproot { OutputKind::Bech32m } else { OutputKind::Bech32 };
            let mut coin = coin(number, *value, kind);
            coin.output.script_pubkey = script(kind, *address);
            coin
        }).collect();
        let params = Params { subtract_fee, group_by_script, ..params(feerate) };
        for coin in &mut coins {
            coin.set_feerates(params.feerate, params.long_term_feerate);
        }
        let none = Unconfirmed::default().bump_fees(params.feerate, []).unwrap();
        let counted = |coin: &Coin| if subtract_fee { coin.value() } else { coin.effective_value() };
        match select(&coins, 0, sat(target), true, &params, &none, &mut StdRng::seed_from_u64(seed)) {
            Ok(selection) => {
                let chosen: SignedAmount = selection.coins.iter().map(|position| counted(&coins[*position])).sum();
                prop_assert!(chosen >= sat(target));
                let change_fee = if subtract_fee { sat(0) } else { params.change_fee };
                let change = selection.change(&coins, &params);
                prop_assert_eq!(change, Some(chosen - sat(target) - change_fee).filter(|change| *change >= params.least_change));
            }
            Err(error) => {
                prop_assert_eq!(error, SpendError::InsufficientFunds);
                let useful: SignedAmount = coins.iter().map(|coin| counted(coin).max(sat(0))).sum();
                let all: SignedAmount = coins.iter().map(counted).sum();
                prop_assert!(useful.min(all) < sat(target));
            }
        }
    }
}
