//! `walletprocesspsbt`: a PSBT with the data and the signatures of a wallet. [`fill`] also serves the payments of this group.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bitcoin::key::UntweakedPublicKey;
use bitcoin::secp256k1::{Parity, Secp256k1, VerifyOnly};
use bitcoin::{PublicKey, Script, ScriptBuf, TxIn};
use outrigger_kit::psbt::{Input, Psbt};
use outrigger_sdk::service::wallet::{Ownership, ScriptInfo, SolvingData, WalletInfo};
use outrigger_sdk::sign::{KeySource, LocalKeys, Sighash, WalletKeys};
use outrigger_sdk::{Call, RpcError, methods};
use serde_json::Value;

use crate::provider::{Providers, SigningProvider};
use crate::sign::{
    SighashSource, SignOptions, Signing, remove_unnecessary_transactions, sighash_mismatch, sign_inputs, update_outputs,
};
use crate::update::{add_previous, processed};
use crate::{PsbtPlugin, check_lock_time, read_psbt};

#[methods(category = "Wallet", private_keys)]
impl PsbtPlugin {
    /// Adds the wallet's data about the inputs and outputs, and signs with its keys. For signatures, unlock an
    /// encrypted wallet with walletpassphrase first.
    ///
    /// * `psbt` - The PSBT in base64.
    /// * `sign` - Whether to sign.
    /// * `sighashtype` (default: DEFAULT for taproot inputs, ALL for others) - The hash type of signatures: DEFAULT,
    ///   ALL, NONE, SINGLE, ALL|ANYONECANPAY, NONE|ANYONECANPAY or SINGLE|ANYONECANPAY.
    /// * `bip32derivs` - Whether to add the origins of public keys, as far as they are known.
    /// * `finalize` - Whether to finalise complete inputs.
    ///
    /// # Result
    /// {"psbt": "str", "complete": true|false, "hex": "hex"}    (json object) hex is the transaction if it is
    /// complete.
    #[method]
    fn walletprocesspsbt(
        call: &Call<'_>,
        psbt: &str,
        #[arg(default = true)] sign: bool,
        sighashtype: Option<&str>,
        #[arg(default = true)] bip32derivs: bool,
        #[arg(default = true)] finalize: bool,
    ) -> Result<Value, RpcError> {
        let wallet = call.wallet()?;
        let mut psbt = read_psbt(call, psbt)?;
        let sighash = sighashtype.map(Sighash::from_name).transpose()?;
        let options = SignOptions { sighash, bip32_derivs: bip32derivs, finalize };
        if sign {
            wallet.check_unlocked()?;
        }
        fill(call, &wallet, &mut psbt, sign, options)?;
        Ok(processed(&psbt))
    }
}

/// Adds the data of the wallet, and its signatures if `sign` (`FillPSBT` of Bitcoin Core).
pub fn fill(
    call: &Call<'_>,
    wallet: &WalletInfo,
    psbt: &mut Psbt,
    sign: bool,
    options: SignOptions,
) -> Result<(), RpcError> {
    check_lock_time(psbt)?;
    let lacks = |input: &Input| !input.is_final() && input.non_witness_utxo.is_none();
    add_previous(psbt, lacks, |txids| Ok(call.host.wallet.raw_transactions(call.scope, txids.to_vec())?))?;
    // A wallet without a birth time has no keys and no scripts. For it, bitcoind does not check the inputs.
    let checks = wallet.birth_time > 0;
    if sign && checks && !call.rules.psbt_sighashes {
        let asked = options.sighash.unwrap_or(Sighash::DEFAULT).to_i32();
        let mut open = psbt.inputs.iter().filter(|input| !input.is_final());
        if open.any(|input| input.sighash_type.is_some_and(|stored| stored != asked)) {
            return Err(sighash_mismatch());
        }
    }
    let (providers, scripts) = providers(call, psbt)?;
    let (wallet_keys, no_keys);
    let keys: &dyn KeySource = if sign {
        wallet_keys = WalletKeys::new(&*call.host.signer, call.scope, scripts);
        &wallet_keys
    } else {
        no_keys = LocalKeys::default();
        &no_keys
    };
    let sighashes = checks.then_some(SighashSource::Argument(options.sighash));
    let signing = Signing { call, providers: &providers, keys, options, sighashes };
    sign_inputs(psbt, &signing, false)?;
    update_outputs(psbt, &signing);
    remove_unnecessary_transactions(psbt, options.sighash, &call.rules);
    Ok(())
}

/// The providers of the wallet, and the scripts of the keys that may sign.
fn providers(call: &Call<'_>, psbt: &Psbt) -> Result<(Providers, Vec<ScriptBuf>), RpcError> {
    let curve = Secp256k1::verification_only();
    let of_input = |(input, fields): (&TxIn, &Input)| match fields.spent(input.previous_output) {
        Some(spent) => {
            let script = &spent.script_pubkey;
            std::iter::once(script.clone()).chain(scripts_of_keys(fields, script, &curve)).collect()
        }
        None => Vec::new(),
    };
    let inputs: Vec<Vec<ScriptBuf>> = psbt.each_input().map(of_input).collect();
    let outputs: Vec<&ScriptBuf> = psbt.tx.output.iter().map(|output| &output.script_pubkey).collect();
    let scripts: BTreeSet<ScriptBuf> = inputs.iter().flatten().chain(outputs.iter().copied()).cloned().collect();
    let scripts: Vec<ScriptBuf> = scripts.into_iter().collect();
    let infos = call.host.wallet.scripts(call.scope, scripts.clone())?;
    let found = scripts.into_iter().zip(infos).filter_map(|(script, info)| Some((script, info?)));
    let found: BTreeMap<ScriptBuf, ScriptInfo> = found.collect();
    let provider = |scripts: &mut dyn Iterator<Item = &ScriptBuf>| {
        let mut provider = SigningProvider { signers: Some(HashSet::new()), ..SigningProvider::default() };
        scripts.filter_map(|script| found.get_key_value(script)).for_each(|(script, info)| provider.add(script, info));
        provider
    };
    // An imported key or script may serve every input.
    let providers = if found.values().any(is_imported) {
        Providers::Shared(Box::new(SigningProvider { signers: None, ..provider(&mut found.keys()) }))
    } else {
        Providers::Each {
            inputs: inputs.iter().map(|scripts| provider(&mut scripts.iter())).collect(),
            outputs: outputs.into_iter().map(|script| provider(&mut std::iter::once(script))).collect(),
        }
    };
    Ok((providers, found.into_keys().collect()))
}

/// Whether the wallet imported a script without a descriptor. A script from the address book alone does not count.
fn is_imported(info: &ScriptInfo) -> bool {
    let SolvingData { scripts, public_keys, .. } = &info.solving;
    let is_known = info.ownership != Ownership::None || !scripts.is_empty() || !public_keys.is_empty();
    info.parents.is_empty() && is_known
}

/// The single-key scripts of the keys in an input, and of a taproot output key. The wallet may know one of these scripts without
/// knowing the script of the input.
fn scripts_of_keys<'a>(
    input: &'a Input,
    spent: &'a Script,
    curve: &'a Secp256k1<VerifyOnly>,
) -> impl Iterator<Item = ScriptBuf> + 'a {
    let ecdsa = input.origins.keys().filter_map(|key| PublicKey::from_slice(key).ok());
    let output_key = spent.as_bytes().get(2..).filter(|_| spent.is_p2tr());
    let named = input.tap_origins.keys().map(|key| &key[..]).chain(output_key);
    let x_only = named.filter_map(|key| UntweakedPublicKey::from_slice(key).ok());
    let both = x_only.flat_map(|key| [Parity::Even, Parity::Odd].map(|parity| PublicKey::new(key.public_key(parity))));
    ecdsa.chain(both).flat_map(|key| {
        let program = key.wpubkey_hash().ok().map(|hash| ScriptBuf::new_p2wpkh(&hash));
        let nested = program.as_ref().map(|program| ScriptBuf::new_p2sh(&program.script_hash()));
        let taproot = key.compressed.then(|| ScriptBuf::new_p2tr(curve, key.inner.x_only_public_key().0, None));
        let plain = [ScriptBuf::new_p2pk(&key), ScriptBuf::new_p2pkh(&key.pubkey_hash())];
        plain.into_iter().chain(program).chain(nested).chain(taproot)
    })
}
