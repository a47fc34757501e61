//! All that two subjects must agree on.

use bitcoin::{ScriptBuf, Txid};

use super::Pair;
use super::cast::Cast;
use crate::service::Result as ServiceResult;
use crate::service::signer::{Scheme, SignBatch, SignRequest};
use crate::service::wallet::HistoryRange;
use crate::testing::conformance::bench::{Bench, public};
use crate::testing::conformance::{Failure, Outcome};
use crate::wire::Blob;

/// How many numbers of descriptors are asked for.
const NUMBERS: u32 = 12;

/// What a descriptor's information comes to, as things that can be compared.
type Told = (String, u64, (bool, Option<bool>), Option<(u32, u32)>, u32);

fn descriptors(bench: &Bench<'_>, private: bool) -> ServiceResult<Vec<Told>> {
    let told = bench.ask(|wallet, scope| wallet.descriptors(scope, private))?;
    let tell = |info: crate::service::wallet::DescriptorInfo| {
        let sides = (info.active, info.internal);
        (info.text.expose().to_owned(), info.timestamp, sides, info.range, info.next_index)
    };
    Ok(told.into_iter().map(tell).collect())
}

/// Compares the whole of both wallets.
pub fn everything(pair: &Pair<'_>, cast: &Cast) -> Outcome {
    pair.both("the loaded wallets", |bench| bench.of(None, |wallet, scope| wallet.list(scope)))?;
    pair.agree("the wallet", |bench| bench.info())?;
    pair.both("its descriptors", |bench| descriptors(bench, false))?;
    pair.both("its private descriptors", |bench| descriptors(bench, true))?;
    let numbers: Vec<u32> = (0..NUMBERS).rev().collect();
    pair.both("descriptors by number", |bench| bench.ask(|w, scope| w.descriptor_texts(scope, numbers.clone())))?;
    pair.both("scripts", |bench| bench.ask(|wallet, scope| wallet.scripts(scope, cast.scripts.clone())))?;
    let ranges = [
        HistoryRange::All,
        HistoryRange::Confirmed { from_height: 0 },
        HistoryRange::Confirmed { from_height: 4 },
        HistoryRange::Unconfirmed,
        HistoryRange::Conflicted { from_height: 0 },
    ];
    for range in ranges {
        for reverse in [false, true] {
            let what = format!("{range:?}, reverse: {reverse}");
            pair.agree(&what, |bench| bench.history(range, reverse, 50))?;
        }
    }
    let made: Vec<Txid> = cast.made.iter().rev().map(|transaction| transaction.compute_txid()).collect();
    pair.agree("transactions by their ids", |bench| bench.rows(&made))?;
    pair.both("serialisations", |bench| bench.ask(|wallet, scope| wallet.raw_transactions(scope, made.clone())))?;
    pair.agree("coins", |bench| bench.coins())?;
    pair.agree("the address book", |bench| bench.labels())?;
    signatures(pair, cast)
}

fn signatures(pair: &Pair<'_>, cast: &Cast) -> Outcome {
    let mut keys = Vec::new();
    for number in 1..=7 {
        let public = public(number)?;
        keys.extend([public.to_bytes(), public.inner.x_only_public_key().0.serialize().to_vec()]);
    }
    let scripts: Vec<ScriptBuf> = cast.scripts.iter().rev().step_by(2).cloned().collect();
    let infos = pair.one.ask(|wallet, scope| wallet.scripts(scope, cast.scripts.clone())).map_err(Failure::from)?;
    keys.extend(infos.into_iter().flatten().flat_map(|info| info.solving.public_keys).map(|key| key.0).take(20));
    let keys: Vec<Blob> = keys.into_iter().map(Blob).collect();
    pair.both("the keys that could sign", |bench| {
        bench.sign(|signer, scope| signer.available(scope, scripts.clone(), keys.clone()))
    })?;
    let schemes = [Scheme::Ecdsa, Scheme::Schnorr, Scheme::SchnorrTweaked { merkle_root: None }];
    let requests = keys.iter().zip(schemes.iter().cycle()).map(|(public_key, scheme)| SignRequest {
        public_key: public_key.clone(),
        digest: [7; 32],
        scheme: scheme.clone(),
    });
    let batch = SignBatch { scripts, requests: requests.collect() };
    // Signatures are deterministic: RFC 6979, and BIP 340 without auxiliary randomness.
    pair.both("signatures", |bench| bench.sign(|signer, scope| signer.sign_many(scope, batch.clone())))
}
