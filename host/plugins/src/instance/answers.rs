//! The host's functions for one instance: its services and its answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes as SharedBytes;
use outrigger_abi::{ExportedService, FAILED, HostCode, OwnedBytes, PASS_ON, STATUS_OK, ServiceTable};
use outrigger_base::contain::contain;
use outrigger_base::rate::Rate;
use outrigger_service::ErrorKind;
use outrigger_service::json::Json;
use outrigger_values::RpcError;
use outrigger_values::RpcErrorCode;
use tokio::runtime::Handle;

use super::LoadedLibrary as Library;
use super::life::{Life, Stage};
use crate::answer::{AnswerRules, BadAnswer};
use crate::calls::{Answer, Calls, UnwantedAnswer};
use crate::health::{Health, RECOVERED_AFTER, Recovery};

/// The largest answer that is copied, in bytes.
const SMALL_ANSWER: usize = 64 << 10;

/// The most log lines per second about answers without a client, and calls without a place.
pub(super) const NOTES_PER_SECOND: u32 = 100;

/// The target of `HostTable::ctx`. It is never freed.
pub(super) struct Context {
    pub id: u64,
    pub code: Arc<Library>,
    pub calls: Arc<Calls>,
    pub health: Arc<Health>,
    pub recovery: Recovery,
    pub rules: AnswerRules,
    pub services: HashMap<String, Arc<ExportedService>>,
    pub life: Arc<Life>,
    /// Limits the log lines about answers without a client, and calls without a place.
    pub notes: Rate,
}

impl Context {
    /// Sets the instance's last stage: from now on the host's functions return [`ErrorKind::Stale`] without effect.
    pub fn end(&self, stage: Stage) {
        self.life.advance(stage);
        self.services.values().for_each(|service| service.end());
    }

    pub fn method_of(&self, token: u64) -> Arc<str> {
        let listed = self.code.manifest.methods.get(Calls::method_of(token)).map(|method| method.name.as_str().into());
        let unlisted = || self.calls.name_of(token);
        listed.or_else(unlisted).unwrap_or_else(|| "a method of another plugin or of a service".into())
    }

    /// Logs an invalid answer, and returns the client's error.
    fn refuse(&self, token: u64, bad: BadAnswer) -> RpcError {
        let (plugin, method) = (self.code.manifest.id.as_str(), &*self.method_of(token));
        if self.may_note() {
            tracing::error!(plugin, method, reason = bad.to_string(), "the plugin's answer was refused");
        }
        RpcError::internal(bad.to_string())
    }

    fn may_note(&self) -> bool {
        let plugin = self.code.manifest.id.as_str();
        let tell = |left_out| tracing::warn!(plugin, left_out, "log lines about the plugin's answers were suppressed");
        self.notes.allows(tell)
    }

    /// Logs that a call found no place among the long-running ones, at most `most`, and returns the client's error.
    pub fn note_full(&self, method: &str, most: usize) -> String {
        let plugin = self.code.manifest.id.as_str();
        if self.may_note() {
            tracing::warn!(plugin, method, most, "a call found no place among the plugin's long-running calls");
        }
        format!("The isolated plugin '{plugin}' has {most} long-running calls, the most that it may have at a time")
    }

    /// Counts and logs an answer that nobody waits for.
    fn note_unwanted(&self, token: u64, why: UnwantedAnswer) {
        self.health.stale.fetch_add(1, Ordering::Relaxed);
        if matches!(why, UnwantedAnswer::Second | UnwantedAnswer::Foreign) {
            self.health.repeated.fetch_add(1, Ordering::Relaxed);
        }
        if !self.may_note() {
            return;
        }
        let (plugin, method) = (self.code.manifest.id.as_str(), &*self.method_of(token));
        match why {
            UnwantedAnswer::Late => {
                tracing::warn!(plugin, method, "an answer came late and was dropped: its deadline had passed")
            }
            UnwantedAnswer::Abandoned | UnwantedAnswer::Gone => {
                tracing::info!(plugin, method, "an answer was dropped: its client had gone")
            }
            UnwantedAnswer::Second => {
                tracing::warn!(plugin, method, "a second answer was dropped: the call was answered before")
            }
            UnwantedAnswer::Foreign => {
                tracing::error!(plugin, token, "an answer was dropped: the call is another plugin's");
            }
        }
    }
}

impl HostCode for Context {
    type Json = Json;

    fn has_stopped(&self) -> bool {
        self.life.has_stopped()
    }

    fn service(&self, name: &[u8]) -> *const ServiceTable {
        let service = std::str::from_utf8(name).ok().and_then(|name| self.services.get(name));
        service.map_or(std::ptr::null(), |service| service.table())
    }

    fn reply(&self, token: u64, code: i32, body: OwnedBytes) -> i32 {
        let answer = match self.rules.check(code, &body) {
            Err(bad) => Answer::Failed(self.refuse(token, bad)),
            Ok(()) if code == PASS_ON => {
                Answer::Passed((!body.is_empty()).then(|| SharedBytes::copy_from_slice(&body)))
            }
            Ok(()) if code == FAILED => Answer::Failed(RpcError::internal(String::from_utf8_lossy(&body))),
            Ok(()) if code != 0 => {
                Answer::Refused(RpcError::new(RpcErrorCode(code), String::from_utf8_lossy(&body).into_owned()))
            }
            // Copied: this thread releases `body`, and the plugin is allowed to block it.
            Ok(()) if body.len() <= SMALL_ANSWER => Answer::Result(SharedBytes::copy_from_slice(&body)),
            Ok(()) => Answer::Result(SharedBytes::from_owner(BorrowedReply(Some(body)))),
        };
        let is_result = matches!(answer, Answer::Result(_) | Answer::Passed(_));
        let counted = if is_result { &self.health.answers } else { &self.health.errors };
        // Counted before the client can see the answer.
        counted.fetch_add(1, Ordering::Relaxed);
        let answered = self.calls.answer(self.id, token, answer);
        if is_result && matches!(answered, Ok(()) | Err(UnwantedAnswer::Gone)) && self.recovery.succeed() {
            tracing::info!(
                plugin = self.code.manifest.id,
                "the plugin has answered {RECOVERED_AFTER} calls since its last fault"
            );
        }
        let Err(why) = answered else { return STATUS_OK };
        counted.fetch_sub(1, Ordering::Relaxed);
        self.health.gone.fetch_add(u64::from(why == UnwantedAnswer::Gone), Ordering::Relaxed);
        self.note_unwanted(token, why);
        ErrorKind::Stale as i32
    }

    fn is_wanted(&self, token: u64) -> bool {
        self.calls.is_waiting(self.id, token)
    }
}

/// A large answer, which is sent from the plugin's memory. A blocking thread releases it, since the plugin's release
/// function might never return.
struct BorrowedReply(Option<OwnedBytes>);

impl AsRef<[u8]> for BorrowedReply {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl Drop for BorrowedReply {
    fn drop(&mut self) {
        if let Some(body) = self.0.take() {
            contain("releasing a plugin's answer", || match Handle::try_current() {
                Ok(runtime) => drop(runtime.spawn_blocking(move || drop(body))),
                Err(_) => drop(body),
            });
        }
    }
}

#[cfg(test)]
mod tests;
