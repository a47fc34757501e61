//! The audit log: a line for each call that moves money, exports keys, touches files or changes settings. It contains
//! no parameters or results, except transaction ids.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bitcoin::consensus::deserialize;
use bitcoin::consensus::encode::deserialize_hex;
use bitcoin::{Transaction, Txid};
use jsonrpsee::types::Request;
use outrigger_base::replace::unless_absent;
use outrigger_rpc::{Answer, Failure, HOST_USER, Origin, ResultText, origin_of};
use outrigger_service::policy::Act;
use outrigger_services::JudgedAct;
use outrigger_upstream::traits::MONEY;
use parking_lot::Mutex;
use rustix::fs::{Access, access};
use rustix::process::geteuid;
use serde::Serialize;
use serde_json::Value;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::methods::method;

/// Private, since it shows payments and payers.
const MODE: u32 = 0o600;

/// The longest result that is searched for transaction ids, in bytes.
const MAX_RESULT: usize = 1 << 20;

/// The file and its predecessors: `FILE.1` is the newest of these, `FILE.2` the one before.
pub struct AuditLog {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    current: Mutex<Current>,
}

struct Current {
    file: File,
    length: u64,
    /// Whether the last line could not be written. The host has then logged the error.
    is_failing: bool,
}

impl Current {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(MODE).open(path)?;
        file.set_permissions(Permissions::from_mode(MODE))?;
        let length = file.metadata()?.len();
        Ok(Self { file, length, is_failing: false })
    }
}

impl AuditLog {
    /// Opens the file at `path`. When it would grow beyond `max_bytes`, it is rotated; `keep` former files are kept.
    ///
    /// # Errors
    /// The file cannot be opened, or its mode cannot be set to 0600.
    pub fn open(path: PathBuf, max_bytes: u64, keep: u32) -> io::Result<Self> {
        let current = Mutex::new(Current::open(&path)?);
        Ok(Self { path, max_bytes, keep, current })
    }

    /// Opens the path again, since another program may have moved the file. The returned function switches to the new file.
    pub fn reopened(&self) -> io::Result<impl FnOnce() + '_> {
        let fresh = Current::open(&self.path)?;
        Ok(|| *self.current.lock() = fresh)
    }

    /// Checks that [`Self::open`] would succeed, without creating or changing the file.
    pub fn check(path: &Path) -> io::Result<()> {
        match OpenOptions::new().append(true).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => may_create(path),
            opened => {
                let (owner, own) = (opened?.metadata()?.uid(), geteuid().as_raw());
                let foreign = || io::Error::new(io::ErrorKind::PermissionDenied, format!("it belongs to user {owner}"));
                if own == 0 || own == owner { Ok(()) } else { Err(foreign()) }
            }
        }
    }

    /// Adds a line. If that fails, the call continues, and the host logs the error.
    fn append(&self, line: &str) {
        let mut current = self.current.lock();
        let written = self.write(&mut current, line);
        if let Err(error) = &written
            && !current.is_failing
        {
            tracing::error!(path = %self.path.display(), %error, "the audit log cannot be written; calls are not listed");
        }
        current.is_failing = written.is_err();
    }

    fn write(&self, current: &mut Current, line: &str) -> io::Result<()> {
        let length = line.len() as u64;
        if current.length > 0 && current.length + length > self.max_bytes {
            self.rotate(current)?;
        }
        if let Err(error) = current.file.write_all(line.as_bytes()) {
            // Removes a partial line, to which the next would be appended.
            let _ = current.file.set_len(current.length);
            return Err(error);
        }
        current.length += length;
        Ok(())
    }

    /// Rotates the files. It creates the new file first: if that fails, it moves none.
    fn rotate(&self, current: &mut Current) -> io::Result<()> {
        let next = beside(&self.path, "next");
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(&next)?;
        let former = |number: u32| beside(&self.path, &number.to_string());
        for number in (1..self.keep).rev() {
            unless_absent(std::fs::rename(former(number), former(number + 1)))?;
        }
        std::fs::rename(&self.path, former(1))?;
        std::fs::rename(&next, &self.path)?;
        (current.file, current.length) = (file, 0);
        Ok(())
    }
}

/// Checks that a file can be created at `path`.
pub fn may_create(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
enum AuditOutcome {
    Ok,
    /// The call failed. The line has its error code.
    Error,
    /// Not begun: the queue was full, or the node's whitelist forbids it.
    Refused,
    /// The client disconnected, or the host stopped. The call may have been executed.
    #[default]
    Abandoned,
}

#[derive(Default, Serialize)]
struct Line {
    time: String,
    user: String,
    peer: Option<String>,
    /// The wallet in the path, or the user's only one.
    wallet: Option<String>,
    method: String,
    outcome: AuditOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    txid: Vec<Txid>,
    /// The policy, in the line of a verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// Why the policy refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl AuditLog {
    /// Adds the line of a policy's verdict.
    pub fn judged(&self, judgement: &JudgedAct<'_>) {
        let JudgedAct { policy, query, refusal } = judgement;
        let txid = match &query.act {
            Act::Sign { transaction } | Act::Send { transaction, .. } => {
                deserialize(&transaction.transaction).map(|transaction: Transaction| transaction.compute_txid()).ok()
            }
            _ => None,
        };
        self.add(&Line {
            time: now(),
            user: query.user.clone(),
            wallet: Some(query.wallet.clone()),
            method: query.method.clone(),
            outcome: if refusal.is_some() { AuditOutcome::Refused } else { AuditOutcome::Ok },
            txid: txid.into_iter().collect(),
            policy: Some((*policy).to_owned()),
            reason: refusal.map(str::to_owned),
            ..Line::default()
        });
    }

    /// Adds the line of a policy that the configuration has removed from a wallet.
    pub fn policy_removed(&self, wallet: &str, policy: &str) {
        self.add(&Line {
            time: now(),
            user: HOST_USER.to_owned(),
            wallet: Some(wallet.to_owned()),
            method: "wallet.policies".to_owned(),
            outcome: AuditOutcome::Ok,
            policy: Some(policy.to_owned()),
            reason: Some("the configuration removes the policy".to_owned()),
            ..Line::default()
        });
    }

    fn add(&self, line: &Line) {
        match serde_json::to_string(line) {
            Ok(line) => self.append(&(line + "\n")),
            Err(error) => tracing::error!(%error, "a line of the audit log cannot be written"),
        }
    }
}

pub fn now() -> String {
    let mut time = String::new();
    // Writing to a string does not fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    time
}

/// A call of the audit log, whose line is written on drop.
pub struct AuditEntry {
    log: Arc<AuditLog>,
    /// Its time is that of the drop.
    line: Line,
}

impl AuditEntry {
    pub fn begin(log: &Arc<AuditLog>, request: &Request<'_>) -> Self {
        let origin = origin_of(request);
        let line = Line {
            user: origin.map(|origin| origin.user.to_string()).unwrap_or_default(),
            peer: origin.and_then(|origin| origin.peer).map(|peer| peer.to_string()),
            wallet: origin.and_then(Origin::shown_wallet),
            method: request.method_name().to_owned(),
            ..Line::default()
        };
        Self { log: log.clone(), line }
    }

    /// Records the answer. If the method moves money, the result's transaction ids are included.
    pub fn answered(mut self, answer: &Answer) {
        let line = &mut self.line;
        (line.outcome, line.code) = match answer {
            Ok(result) => {
                let moves_money = method(&line.method).is_some_and(|method| method.is(MONEY));
                if let (true, ResultText::Bytes(text)) = (moves_money, result) {
                    line.txid = transactions(text);
                }
                (AuditOutcome::Ok, None)
            }
            Err(Failure::Rpc(error)) => (AuditOutcome::Error, Some(error.code.0)),
            Err(Failure::Overloaded | Failure::Limited(_) | Failure::Forbidden | Failure::UnknownMethod) => {
                (AuditOutcome::Refused, None)
            }
        };
    }
}

impl Drop for AuditEntry {
    fn drop(&mut self) {
        self.line.time = now();
        self.log.add(&self.line);
    }
}

/// The transaction ids in a result: the result itself, its `txid`, those in `tx-results`, or that of the transaction in `hex`.
fn transactions(result: &[u8]) -> Vec<Txid> {
    let Some(result) = (result.len() <= MAX_RESULT).then(|| serde_json::from_slice::<Value>(result).ok()).flatten()
    else {
        return Vec::new();
    };
    let id = |value: &Value| value.as_str()?.parse().ok();
    let signed = || deserialize_hex::<Transaction>(result["hex"].as_str()?).ok().map(|signed| signed.compute_txid());
    match result["tx-results"].as_object() {
        Some(results) => results.values().filter_map(|one| id(&one["txid"])).collect(),
        None => id(&result).or_else(|| id(&result["txid"])).or_else(signed).into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audit_log_is_rotated_by_size_and_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        std::fs::write(&path, "before\n").unwrap();
        let log = AuditLog::open(path.clone(), 20, 2).unwrap();
        for line in ["a", "b", "c", "d", "e"] {
            log.append(&format!("{}\n", line.repeat(9)));
        }
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        let line = |of: &str| format!("{}\n", of.repeat(9));
        assert_eq!(read("audit"), line("d") + &line("e"));
        assert_eq!(read("audit.1"), line("b") + &line("c"));
        assert_eq!(read("audit.2"), "before\n".to_owned() + &line("a"));
        let names = std::fs::read_dir(folder.path()).unwrap();
        let modes: Vec<u32> =
            names.map(|file| file.unwrap().metadata().unwrap().permissions().mode() & 0o777).collect();
        assert_eq!(modes, [0o600; 3]);
        log.append(&line("f"));
        assert_eq!((read("audit"), read("audit.2")), (line("f"), line("b") + &line("c")));
    }

    #[test]
    fn audit_log_that_cannot_be_written_goes_on_when_it_can() {
        let folder = tempfile::tempdir().unwrap();
        let log = AuditLog::open(folder.path().join("audit"), 1 << 20, 1).unwrap();
        // Writing to it fails.
        let read_only = File::open(&log.path).unwrap();
        let writable = std::mem::replace(&mut log.current.lock().file, read_only);
        log.append("lost\n");
        assert!(log.current.lock().is_failing);
        log.current.lock().file = writable;
        log.append("line\n");
        assert!(!log.current.lock().is_failing);
        assert_eq!(std::fs::read_to_string(&log.path).unwrap(), "line\n");
    }

    #[test]
    fn transactions_are_found_in_results() {
        let id = "ab".repeat(32);
        for result in [
            format!("\"{id}\""),
            format!("{{\"txid\":\"{id}\",\"fee\":1}}"),
            format!("{{\"tx-results\":{{\"x\":{{\"txid\":\"{id}\"}}}}}}"),
        ] {
            assert_eq!(transactions(result.as_bytes()), [id.parse::<Txid>().unwrap()], "{result}");
        }
        assert!(transactions(b"\"\"").is_empty() && transactions(b"{\"hex\":\"00\"}").is_empty());
    }
}
