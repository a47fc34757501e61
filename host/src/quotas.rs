//! Limits of each user: calls per second, concurrent calls, and wallets. This layer is below [`Observe`](crate::observe::Observe), so
//! that refused calls appear in the log, the metrics and the audit log.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use futures_util::FutureExt;
use futures_util::future::Either;
use jsonrpsee::core::middleware::{Batch, BatchEntry, Notification, RpcServiceT};
use jsonrpsee::types::Request;
use outrigger_base::replace::replace_file;
use outrigger_rpc::{Answer, Failure, Held, ResultText, RpcService, is_of_plugin, origin_of};
use outrigger_values::{RpcError, RpcErrorCode};
use outrigger_wallet_engine::WalletManager;
use parking_lot::Mutex;
use serde_json::Value;

use crate::config::UserConfig;

/// The file in the network's data folder that records who made each wallet: a JSON object from wallet names to user names.
const OWNERS_FILE: &str = "wallet-owners.json";

/// The methods that make a wallet.
const MAKERS: [&str; 2] = ["createwallet", "restorewallet"];

/// The limits of all users with limits, and the wallets, which are counted for `max_wallets`.
pub struct Quotas {
    users: ArcSwap<HashMap<String, Arc<Quota>>>,
    folder: PathBuf,
    wallets: OnceLock<Arc<WalletManager>>,
    /// Held while the file of the owners is read or written.
    owners: Mutex<()>,
}

/// The limits of a user, and how far they are used up.
struct Quota {
    limits: UserConfig,
    /// `bucket`, `running` and `making` are kept when the limits change.
    bucket: Arc<Mutex<Bucket>>,
    running: Arc<AtomicUsize>,
    making: Arc<AtomicUsize>,
}

/// A call that counts towards `max_concurrent_calls`, or a wallet being made that counts towards `max_wallets`, until dropped.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A token bucket for `max_calls_per_second`. It fills up within a second.
struct Bucket {
    calls: f64,
    filled: Instant,
}

impl Quota {
    fn of(limits: UserConfig) -> Self {
        let bucket = Bucket { calls: f64::from(limits.max_calls_per_second.unwrap_or(0)), filled: Instant::now() };
        Self { limits, bucket: Arc::new(Mutex::new(bucket)), running: Arc::default(), making: Arc::default() }
    }

    /// Takes a place among the user's running calls. Fails if the user has `max_concurrent_calls` already.
    fn place(&self) -> Result<Place, Failure> {
        let place = Place(self.running.clone());
        let others = self.running.fetch_add(1, Ordering::AcqRel);
        match self.limits.max_concurrent_calls {
            Some(most) if others >= most as usize => Err(Failure::Limited(format!(
                "The user may have {most} calls at a time (rpc.users.max_concurrent_calls)"
            ))),
            _ => Ok(place),
        }
    }

    /// Counts a call at the time `now`. A plugin's call for another call takes no place, since the other call has one. The error
    /// names the limit that the call exceeds.
    fn enter(&self, now: Instant, is_of_plugin: bool) -> Result<Option<Place>, Failure> {
        let place = if is_of_plugin { None } else { Some(self.place()?) };
        let Some(most) = self.limits.max_calls_per_second else { return Ok(place) };
        let mut bucket = self.bucket.lock();
        let gained = now.saturating_duration_since(bucket.filled).as_secs_f64() * f64::from(most);
        bucket.calls = (bucket.calls + gained).min(f64::from(most));
        bucket.filled = now;
        if bucket.calls < 1.0 {
            return Err(Failure::Limited(format!(
                "The user may make {most} calls a second (rpc.users.max_calls_per_second)"
            )));
        }
        bucket.calls -= 1.0;
        Ok(place)
    }
}

impl Quotas {
    /// Creates the limits of these users. `folder` is the network's data folder.
    pub fn new(users: &[UserConfig], folder: &Path) -> Arc<Self> {
        let (wallets, owners) = Default::default();
        let quotas = Self { users: ArcSwap::default(), folder: folder.to_owned(), wallets, owners };
        quotas.replace(users);
        Arc::new(quotas)
    }

    /// Replaces the limits. Calls in progress still count, unless their user had no limits before.
    pub fn replace(&self, users: &[UserConfig]) {
        let former = self.users.load_full();
        let limited = users.iter().filter(|user| user.limits().iter().any(Option::is_some));
        let quota = |user: &UserConfig| {
            let (name, limits) = (user.name().to_owned(), user.clone());
            let quota = match former.get(&name).map(|quota| &**quota) {
                Some(Quota { bucket, running, making, .. }) => {
                    Quota { limits, bucket: bucket.clone(), running: running.clone(), making: making.clone() }
                }
                None => Quota::of(limits),
            };
            (name, Arc::new(quota))
        };
        self.users.store(Arc::new(limited.map(quota).collect()));
    }

    /// Sets the wallets, once they are open.
    pub fn know(&self, wallets: &Arc<WalletManager>) {
        let _ = self.wallets.set(wallets.clone());
    }

    fn of(&self, user: &str) -> Option<Arc<Quota>> {
        self.users.load().get(user).cloned()
    }

    fn owners(&self) -> io::Result<BTreeMap<String, String>> {
        match fs::read(self.folder.join(OWNERS_FILE)) {
            Ok(text) => Ok(serde_json::from_slice(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    /// Counts a wallet that the user begins to make. Refused if the user has made or is making `most` wallets.
    fn begin_wallet(&self, user: &str, quota: &Quota, most: u32) -> Result<Place, Failure> {
        let _owners = self.owners.lock();
        let failed = |error: &dyn std::fmt::Display| RpcError::misc(format!("{OWNERS_FILE}: {error}"));
        let owners = self.owners().map_err(|error| failed(&error))?;
        let manager = self.wallets.get().ok_or_else(|| RpcError::misc("The host is starting"))?;
        let there = manager.directory().map_err(|error| failed(&error))?;
        let own = owners.iter().filter(|(wallet, owner)| *owner == user && there.contains(wallet)).count();
        let place = Place(quota.making.clone());
        let count = own + quota.making.fetch_add(1, Ordering::AcqRel);
        if count >= most as usize {
            let message =
                format!("The user has made or is making {count} wallets, and may make {most} (rpc.users.max_wallets)");
            return Err(RpcError::new(RpcErrorCode::WALLET, message).into());
        }
        Ok(place)
    }

    /// Records the owner of a new wallet, which `_place` counted until now.
    fn record(&self, wallet: &str, user: &str, _place: Place) -> io::Result<()> {
        let _owners = self.owners.lock();
        let mut owners = self.owners()?;
        owners.insert(wallet.to_owned(), user.to_owned());
        replace_file(&self.folder.join(OWNERS_FILE), &serde_json::to_vec(&owners)?)
    }
}

/// The layer that enforces the limits.
pub struct Bounded<S> {
    pub service: Arc<S>,
    pub quotas: Arc<Quotas>,
}

impl<S> Clone for Bounded<S> {
    fn clone(&self) -> Self {
        Self { service: self.service.clone(), quotas: self.quotas.clone() }
    }
}

impl<S: RpcService> RpcService for Bounded<S> {
    type Dispatch = S::Dispatch;

    fn dispatcher(&self) -> &S::Dispatch {
        self.service.dispatcher()
    }
}

impl<S: RpcService> Bounded<S> {
    /// Calls a method that makes a wallet, for a user who may have at most `most` wallets.
    async fn make(self, user: String, quota: Arc<Quota>, most: u32, request: Request<'static>) -> Answer {
        let Self { service, quotas } = self;
        let (asked, name) = (quotas.clone(), user.clone());
        let begun = tokio::task::spawn_blocking(move || asked.begin_wallet(&name, &quota, most)).await;
        let place = begun.unwrap_or_else(|_| Err(RpcError::internal("The quota cannot be read").into()))?;
        let answer = service.call(request).await?;
        let made = match &answer {
            ResultText::Bytes(text) => serde_json::from_slice::<Value>(text).ok(),
            ResultText::Stream(_) => None,
        };
        if let Some(wallet) = made.as_ref().and_then(|made| made["name"].as_str()).map(str::to_owned) {
            let record = move || quotas.record(&wallet, &user, place);
            if let Ok(Err(error)) = tokio::task::spawn_blocking(record).await {
                tracing::error!(%error, "cannot record the owner of a new wallet, which counts towards no quota");
            }
        }
        Ok(answer)
    }
}

fn owned(request: Request<'_>) -> Request<'static> {
    let Request { method, params, id, extensions, .. } = request;
    let mut owned = Request::owned(method.into_owned(), params.map(Cow::into_owned), id.into_owned());
    *owned.extensions_mut() = extensions;
    owned
}

impl<S: RpcService> RpcServiceT for Bounded<S> {
    type MethodResponse = Answer;
    type NotificationResponse = Answer;
    type BatchResponse = Vec<Answer>;

    fn call<'a>(&self, mut request: Request<'a>) -> impl Future<Output = Answer> + Send + 'a {
        let user = origin_of(&request).map_or("", |origin| &*origin.user);
        let Some(quota) = self.quotas.of(user) else { return Either::Left(Either::Left(self.service.call(request))) };
        let place = match quota.enter(Instant::now(), is_of_plugin(&request)) {
            Ok(place) => place,
            Err(refused) => return Either::Left(Either::Right(std::future::ready(Err(refused)))),
        };
        let quota_of_wallets = quota.limits.max_wallets.filter(|_| MAKERS.contains(&request.method_name()));
        // Boxed to keep the state of each connection small, since few users have limits.
        Either::Right(match quota_of_wallets {
            None => {
                // The answer frees the place. If the client disconnects before, the plugin's code holds the place until it returns.
                let place = Arc::new(Mutex::new(place));
                let held: Held = place.clone();
                request.extensions_mut().insert(held);
                self.service.call(request).inspect(move |_| drop(place.lock().take())).boxed()
            }
            Some(most) => {
                let (bounded, user) = (self.clone(), user.to_owned());
                let made = bounded.make(user, quota, most, owned(request)).inspect(move |_| drop(place));
                // In a separate task, so that the wallet is recorded even if the client disconnects.
                let lost = |_| Err(RpcError::internal("The call was lost").into());
                async move { tokio::spawn(made).await.unwrap_or_else(lost) }.boxed()
            }
        })
    }

    /// Runs the calls of a user with limits one after the other, since each counts as a concurrent call.
    fn batch<'a>(&self, batch: Batch<'a>) -> impl Future<Output = Vec<Answer>> + Send + 'a {
        let first = batch.iter().find_map(|entry| match entry {
            Ok(BatchEntry::Call(request)) => Some(request),
            _ => None,
        });
        if first.and_then(origin_of).and_then(|origin| self.quotas.of(&origin.user)).is_none() {
            return Either::Left(self.service.batch(batch));
        }
        let bounded = self.clone();
        let calls = async move {
            let mut answers = Vec::new();
            for entry in batch {
                if let Ok(BatchEntry::Call(request)) = entry {
                    answers.push(bounded.call(request).await);
                }
            }
            answers
        };
        Either::Right(calls.boxed())
    }

    fn notification<'a>(&self, notification: Notification<'a>) -> impl Future<Output = Answer> + Send + 'a {
        self.service.notification(notification)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refused(entered: Result<Option<Place>, Failure>) -> Option<String> {
        match entered {
            Err(Failure::Limited(message)) => Some(message),
            _ => None,
        }
    }

    #[test]
    fn calls_a_second_are_spent_at_once_and_come_back_over_a_second() {
        let quota = Quota::of(toml::from_str("name = \"a\"\nmax_calls_per_second = 4").unwrap());
        let began = Instant::now();
        let enter = |after: u64| refused(quota.enter(began + Duration::from_millis(after), false));
        assert!((0..4).all(|_| enter(0).is_none()));
        assert_eq!(enter(100).as_deref(), Some("The user may make 4 calls a second (rpc.users.max_calls_per_second)"));
        assert_eq!(enter(350), None);
        // Unused calls of at most one second are saved.
        assert!((0..4).all(|_| enter(60_000).is_none()) && enter(60_000).is_some());
    }

    #[test]
    fn changed_limits_count_the_calls_in_progress_and_those_made() {
        let user = |most: u32| {
            let text = format!("name = \"a\"\nmax_concurrent_calls = {most}\nmax_calls_per_second = {most}");
            vec![toml::from_str::<UserConfig>(&text).unwrap()]
        };
        let (quotas, now) = (Quotas::new(&user(1), Path::new("")), Instant::now());
        let held = quotas.of("a").unwrap().enter(now, false).ok();
        quotas.replace(&user(2));
        let quota = quotas.of("a").unwrap();
        assert!(held.is_some() && refused(quota.enter(now, false)).is_some(), "there is no call left");
        let later = now + Duration::from_secs(9);
        let second = quota.enter(later, false).ok();
        assert!(second.is_some() && refused(quota.enter(later, false)).is_some(), "there is no place left");
    }
}
