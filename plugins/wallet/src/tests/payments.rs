//! Fees, change and dust of payments, as pure arithmetic.

use super::*;
use crate::error::WalletError;
use crate::payment::{ChangeScript, FeeSplit, PaymentRequest, Recipient, Spendable, check_dust, fee};
use crate::weight::InputSize;
use bitcoin::Weight;
use outrigger_sdk::FeeRate;
use outrigger_sdk::service::wallet::AddressType;

fn spendable(value: u64, number: u32, rank: u8) -> Spendable {
    let script = TestKey::new(1).script(Form::Wpkh);
    let outpoint = coin(&script, value, number).outpoint;
    let value = Amount::from_sat(value);
    Spendable { outpoint, value, script, size: InputSize::of_type(AddressType::Bech32), rank }
}

fn request(amount: u64, subtract_fee: bool, feerate: u64) -> PaymentRequest {
    let amount = Amount::from_sat(amount);
    let recipient = Recipient { script: TestKey::new(2).script(Form::Wpkh), amount, subtract_fee };
    PaymentRequest { recipients: vec![recipient], feerate: FeeRate::from_sat_per_kvb(feerate) }
}

/// A request with several recipients: the amount of each, and whether the fee is subtracted from it.
fn many(amounts: &[(u64, bool)]) -> PaymentRequest {
    let recipients = amounts.iter().flat_map(|(amount, subtract)| request(*amount, *subtract, 1000).recipients);
    PaymentRequest { recipients: recipients.collect(), feerate: FeeRate::from_sat_per_kvb(1000) }
}

fn change() -> ChangeScript {
    ChangeScript::new(&TestKey::new(3).script(Form::Wpkh), Some(InputSize::of_type(AddressType::Bech32)))
}

/// The values of the chosen coins, and their split.
fn pay(values: &[(u64, u8)], request: &PaymentRequest) -> Result<(Vec<u64>, FeeSplit), WalletError> {
    let coins: Vec<Spendable> =
        (0..).zip(values).map(|(number, (value, rank))| spendable(*value, number, *rank)).collect();
    let chosen = request.choose(&coins, change())?;
    let split = request.divide(&chosen, change())?;
    let values: Vec<u64> = chosen.iter().map(|coin| coin.value.to_sat()).collect();
    let parts = split.paid.iter().copied().chain(split.change).chain([split.fee]);
    assert_eq!(parts.map(Amount::to_sat).sum::<u64>(), values.iter().sum::<u64>(), "money is kept");
    Ok((values, split))
}

fn split_of(paid: Vec<u64>, change: Option<u64>, fee: u64) -> FeeSplit {
    let paid = paid.into_iter().map(Amount::from_sat).collect();
    FeeSplit { paid, change: change.map(Amount::from_sat), fee: Amount::from_sat(fee) }
}

#[test]
fn payment_fee_is_rounded_up() {
    let fee = |satoshi, weight| fee(FeeRate::from_sat_per_kvb(satoshi), Weight::from_wu(weight)).to_sat();
    assert_eq!(fee(1000, 561), 141);
    assert_eq!(fee(1001, 561), 142);
    assert_eq!(fee(1, 4), 1);
    assert_eq!(fee(u64::MAX, 1 << 40), u64::MAX);
}

#[test]
fn payment_of_one_input_with_change_pays_for_141_virtual_bytes() {
    let (chosen, split) = pay(&[(100_000, 0)], &request(50_000, false, 1000)).unwrap();
    assert_eq!(chosen, [100_000]);
    assert_eq!(split, split_of(vec![50_000], Some(49_859), 141));
    let (_, split) = pay(&[(100_000, 0)], &request(50_000, false, 5500)).unwrap();
    assert_eq!(split.fee, Amount::from_sat(776));
}

#[test]
fn payment_that_a_coin_matches_needs_no_change() {
    // One input and one output: 110 virtual bytes.
    let (chosen, split) = pay(&[(90_000, 0), (50_110, 0)], &request(50_000, false, 1000)).unwrap();
    assert_eq!(chosen, [50_110]);
    assert_eq!(split, split_of(vec![50_000], None, 110));
    // A satoshi less does not suffice, so the other coin is chosen.
    let (chosen, _) = pay(&[(90_000, 0), (50_109, 0)], &request(50_000, false, 1000)).unwrap();
    assert_eq!(chosen, [90_000]);
}

#[test]
fn payment_change_of_dust_is_left_to_the_miner() {
    // 294 satoshi are the dust limit of a P2WPKH output.
    let with = |value| pay(&[(value, 0)], &request(50_000, false, 1000)).unwrap().1;
    assert_eq!(with(50_000 + 141 + 294), split_of(vec![50_000], Some(294), 141));
    assert_eq!(with(50_000 + 141 + 293), split_of(vec![50_000], None, 141 + 293));
}

#[test]
fn payment_change_that_costs_more_than_it_is_worth_is_left_to_the_miner() {
    // At 20 satoshi per virtual byte an input costs 1355 satoshi.
    let with = |value| pay(&[(value, 0)], &request(50_000, false, 20_000)).unwrap().1;
    assert_eq!(with(50_000 + 2820 + 1355).change, None);
    assert_eq!(with(50_000 + 2820 + 1361).change, Some(Amount::from_sat(1361)));
}

#[test]
fn payment_fee_can_be_taken_off_the_amount() {
    let (_, split) = pay(&[(100_000, 0)], &request(100_000, true, 1000)).unwrap();
    assert_eq!(split, split_of(vec![99_890], None, 110));
    let (_, split) = pay(&[(100_000, 0)], &request(60_000, true, 1000)).unwrap();
    assert_eq!(split, split_of(vec![59_859], Some(40_000), 141));
    // What is too little for change pays for the fee first.
    let (_, split) = pay(&[(100_000, 0)], &request(99_950, true, 1000)).unwrap();
    assert_eq!(split, split_of(vec![99_890], None, 110));
    let (_, split) = pay(&[(100_000, 0)], &request(99_800, true, 1000)).unwrap();
    assert_eq!(split, split_of(vec![99_800], None, 200));
}

#[test]
fn payment_fee_that_eats_the_amount_is_refused() {
    let refuse = |amount, feerate| pay(&[(1_000_000, 0)], &request(amount, true, feerate)).unwrap_err();
    assert_eq!(refuse(600, 5000), WalletError::AmountBelowFee);
    assert_eq!(refuse(900, 5000), WalletError::DustAfterFee);
    assert_eq!(check_dust(&request(293, true, 1000).recipients), Err(WalletError::AmountTooSmall));
    assert_eq!(check_dust(&request(294, true, 1000).recipients), Ok(()));
    let fee = pay(&[(100_000_000, 0)], &request(1_000_000, false, 90_000_000)).unwrap_err();
    assert_eq!(fee, WalletError::FeeTooHigh);
}

#[test]
fn payment_of_the_whole_balance_less_the_exact_fee_can_be_made() {
    // Two inputs and one output: 177 virtual bytes.
    let values = [(10_000, 0), (20_000, 0)];
    let (chosen, split) = pay(&values, &request(30_000 - 177, false, 1000)).unwrap();
    assert_eq!((chosen.len(), split.change), (2, None));
    assert_eq!(pay(&values, &request(30_000 - 176, false, 1000)).unwrap_err(), WalletError::InsufficientFunds);
}

#[test]
fn payment_takes_coins_of_a_better_rank_first() {
    let values = [(100_000, 2), (70_000, 1), (60_000, 0)];
    assert_eq!(pay(&values, &request(50_000, false, 1000)).unwrap().0, [60_000]);
    assert_eq!(pay(&values, &request(65_000, false, 1000)).unwrap().0, [70_000]);
    assert_eq!(pay(&values, &request(90_000, false, 1000)).unwrap().0, [70_000, 60_000]);
    assert_eq!(pay(&values, &request(150_000, false, 1000)).unwrap().0.len(), 2);
    assert_eq!(pay(&values, &request(230_000, false, 1000)).unwrap_err(), WalletError::InsufficientFunds);
    assert_eq!(pay(&[], &request(1000, false, 1000)).unwrap_err(), WalletError::InsufficientFunds);
}

#[test]
fn payment_leaves_coins_that_cost_more_than_they_are_worth() {
    let values = [(50, 0), (60, 0), (10_000, 0)];
    let (chosen, _) = pay(&values, &request(9_800, false, 1000)).unwrap();
    assert_eq!(chosen, [10_000]);
    assert_eq!(pay(&[(60, 0); 100], &request(1000, false, 1000)).unwrap_err(), WalletError::InsufficientFunds);
}

#[test]
fn payment_has_a_greatest_weight() {
    let small = vec![(1000, 0); 2000];
    assert_eq!(pay(&small, &request(1_700_000, false, 1000)).unwrap_err(), WalletError::TooManyInputs);
    let mut with_large = small.clone();
    with_large.push((5_000_000, 0));
    assert_eq!(pay(&with_large, &request(1_700_000, false, 1000)).unwrap().0, [5_000_000]);
    let to = |outputs| pay(&[(5_000_000, 0)], &many(&vec![(1000, false); outputs])).map(|_| ()).unwrap_err();
    assert_eq!((to(3224), to(3500)), (WalletError::TooManyInputs, WalletError::TooManyOutputs));
}

#[test]
fn sendmany_without_change_may_be_as_heavy_as_what_is_relayed() {
    // One input and 3223 outputs weigh 399,973 weight units; another output would be too much.
    let request = many(&vec![(1000, false); 3223]);
    let exact = 3_223_000 + 399_973_u64.div_ceil(4);
    let (chosen, split) = pay(&[(exact, 0)], &request).unwrap();
    assert_eq!((chosen, split.change), (vec![exact], None));
    assert_eq!(pay(&[(exact + 10_000, 0)], &request).unwrap_err(), WalletError::TooManyInputs);
}

#[test]
fn sendtoaddress_takes_a_lighter_choice_where_the_closest_is_too_heavy() {
    // The small coins match the amount and their fee exactly, but are too heavy; the large one is not.
    let mut values = vec![(1000, 0); 1800];
    values.push((5_000_000, 0));
    let exact = 1800 * (1000 - 68);
    let (chosen, split) = pay(&values, &request(exact, false, 1000)).unwrap();
    assert_eq!((chosen, split.change.is_some()), (vec![5_000_000], true));
    // The largest coins have heavy inputs, and are too heavy together; the others suffice.
    let heavy = InputSize::new(1650, &[]);
    let coin = |number, value, size| Spendable { size, ..spendable(value, number, 0) };
    let light = InputSize::of_type(AddressType::Bech32);
    let mut coins: Vec<Spendable> = (0..60).map(|number| coin(number, 100_000, heavy)).collect();
    coins.extend((60..160).map(|number| coin(number, 90_000, light)));
    let request = request(6_000_000, false, 1000);
    let chosen = request.choose(&coins, change()).unwrap();
    assert!(chosen.iter().all(|coin| coin.size == light), "{}", chosen.len());
    assert!(request.divide(&chosen, change()).is_ok());
}

#[test]
fn sendtoaddress_weighs_change_by_its_own_script() {
    let pay = |change: ChangeScript| {
        let coins = [spendable(100_000, 0, 0)];
        let request = request(50_000, false, 1000);
        let chosen = request.choose(&coins, change).unwrap();
        request.divide(&chosen, change).unwrap().fee.to_sat()
    };
    let program = [&[0, 32][..], &[7; 32]].concat();
    // A P2WSH output is 12 bytes longer than a P2WPKH output, whether or not the wallet knows how it is spent.
    assert_eq!((pay(change()), pay(ChangeScript::new(&ScriptBuf::from_bytes(program), None))), (141, 153));
    assert_eq!(pay(ChangeScript::new(&TestKey::new(3).script(Form::Pkh), None)), 144);
}

#[test]
fn payment_weighs_each_recipient_by_its_script() {
    // 31 virtual bytes for each output more.
    let (_, split) = pay(&[(100_000, 0)], &many(&[(10_000, false); 3])).unwrap();
    assert_eq!(split, split_of(vec![10_000; 3], Some(70_000 - 203), 203));
    // From 253 outputs on, change included, their count takes two bytes more.
    let fee_of = |outputs| pay(&[(1_000_000, 0)], &many(&vec![(1000, false); outputs])).unwrap().1.fee.to_sat();
    assert_eq!(fee_of(251), 141 + 250 * 31);
    assert_eq!(fee_of(252), 141 + 251 * 31 + 2);
}

#[test]
fn payment_fee_is_shared_by_those_who_pay_it() {
    let divide = |amounts: &[(u64, bool)], value| pay(&[(value, 0)], &many(amounts));
    // 203 satoshi in two shares; the first payer also pays the odd one.
    let (_, split) = divide(&[(10_000, false), (10_000, true), (10_000, true)], 100_000).unwrap();
    assert_eq!(split, split_of(vec![10_000, 9898, 9899], Some(70_000), 203));
    // Without change the fee is 172 satoshi, of which the surplus pays 72.
    let (_, split) = divide(&[(10_000, true), (10_000, true), (10_000, true)], 30_072).unwrap();
    assert_eq!(split, split_of(vec![9966, 9967, 9967], None, 172));
    assert_eq!(divide(&[(50_000, false), (80, true)], 100_000).unwrap_err(), WalletError::AmountBelowFee);
    assert_eq!(divide(&[(50_000, true), (350, true)], 100_000).unwrap_err(), WalletError::DustAfterFee);
}

#[test]
fn payment_data_output_is_no_dust_and_pays_no_fee() {
    let data = Recipient { script: ScriptBuf::from_bytes(vec![0x6a, 1, 0]), amount: Amount::ZERO, subtract_fee: false };
    let with =
        |recipient: Recipient| PaymentRequest { recipients: vec![recipient], feerate: FeeRate::from_sat_per_kvb(1000) };
    assert_eq!((check_dust(std::slice::from_ref(&data)), with(data.clone()).check()), (Ok(()), Ok(())));
    let (_, split) = pay(&[(10_000, 0)], &with(data.clone())).unwrap();
    assert_eq!((split.paid, split.fee), (vec![Amount::ZERO], Amount::from_sat(122)));
    assert_eq!(with(Recipient { subtract_fee: true, ..data }).check(), Err(WalletError::NothingToPay));
}
