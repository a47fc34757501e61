//! Mistakes of an operator: `run --check` refuses each one as the start does, with the same text.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use outrigger_tests::{Host, HostOptions, built, plugin_section};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::users::ALICE;

/// The exit code of a start with an invalid configuration, and of every failed check.
const BAD: i32 = 2;
/// The exit code of a start that fails for another reason.
const FAILED: i32 = 1;

const NOBODY: u32 = 65_534;

/// A configuration, arguments, the exit code of the start, and a part of the refusal. FILE stands for the configuration's path.
pub struct Mistake {
    name: &'static str,
    text: String,
    arguments: Vec<String>,
    code: i32,
    expected: String,
}

pub fn mistake(name: &'static str, text: impl Into<String>, expected: impl Into<String>) -> Mistake {
    Mistake { name, text: text.into(), arguments: Vec::new(), code: BAD, expected: expected.into() }
}

impl Mistake {
    /// Expects exit code 1 from a start with this mistake.
    fn of_the_system(self) -> Self {
        Self { code: FAILED, ..self }
    }

    fn with(self, arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(), ..self }
    }

    /// Compares the check with the start, on a data directory that does not exist.
    #[track_caller]
    pub fn judge(&self) {
        let folder = tempfile::tempdir().unwrap();
        self.judge_on(&folder.path().join("data"), None);
    }

    /// Compares the check with the start on this data directory, as this user.
    #[track_caller]
    fn judge_on(&self, datadir: &Path, user: Option<u32>) {
        let config = HostOptions::configured(&self.text).config_file();
        let run = |check: &[&str]| {
            let mut command = Command::new(&built().binary);
            command.arg("run").args(check).arg("--config").arg(config.path()).arg("--datadir").arg(datadir);
            if !self.text.contains("[rpc]\nlisten = ") {
                command.args(["--rpc-listen", "127.0.0.1:0"]);
            }
            command.args(["--set", "chain.map_gib=16"]).args(&self.arguments);
            if let Some(user) = user {
                command.uid(user).gid(user);
            }
            ended(self.name, command)
        };
        let (checked, told) = run(&["--check"]);
        let told = told.replace(&config.path().display().to_string(), "FILE");
        assert!(told.contains(&self.expected), "{}: the check told: {told}\nexpected: {}", self.name, self.expected);
        assert_eq!(checked, Some(BAD), "{}: {told}", self.name);
        let (started, refusal) = run(&[]);
        let refusal = refusal.replace(&config.path().display().to_string(), "FILE");
        assert_eq!((started, refusal), (Some(self.code), told), "{}", self.name);
    }
}

/// The exit code and the refusal of a host, which must not become ready.
fn ended(name: &str, mut command: Command) -> (Option<i32>, String) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut child = command.stdout(Stdio::piped()).stderr(log.reopen().unwrap()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if !line.is_empty() {
        child.kill().unwrap();
    }
    let code = child.wait().unwrap().code();
    let told = std::fs::read_to_string(log.path()).unwrap();
    assert_eq!(line, "", "{name} is not refused: {told}");
    // The log may have lines before it.
    let refusal = format!("\n{told}");
    (code, refusal.rsplit_once("\noutrigger: ").map(|(_, refusal)| refusal.to_owned()).unwrap_or(told))
}

/// The section of the chain group.
pub const CHAIN: &str = "[[plugins]]\nfile = \"chain\"\ngrants = [\"chain/1\", \"mempool/1\", \"log/1\"]\n";

fn user(rest: &str) -> String {
    format!("[[rpc.users]]\nrpcauth = \"{ALICE}\"\n{rest}")
}

#[test]
fn run_check_and_the_start_refuse_texts_keys_and_values_alike() {
    let unit = "the unit is BTC per 1000 virtual bytes, and at most 0.10000000 is allowed";
    let mistakes = [
        mistake("syntax", "[rpc\n", "FILE:1: "),
        mistake("a key", "[rpc]\nthread = 4\n", "FILE:2: rpc.thread: unknown field `thread`; did you mean 'threads'?"),
        mistake("a table", "[walet]\n", "FILE:1: walet: unknown field `walet`; did you mean 'wallet'?"),
        mistake(
            "a type",
            "[rpc]\nthreads = \"four\"\n",
            "FILE:2: rpc.threads: invalid type: string \"four\", expected an integer",
        ),
        mistake("a range", "[rpc]\nqueue_depth = 0\n", "FILE:2: rpc.queue_depth: must be from 1 to 1048576, not 0"),
        mistake("a level", "[log]\nlevel = \"loud\"\n", "FILE:2: log.level: 'loud' is not a level"),
        mistake(
            "a former key",
            "[plugin_defaults]\ntransport = \"socket\"\n",
            "FILE:2: plugin_defaults.transport: this setting was removed: isolated plugins always use sockets; delete the line",
        ),
        mistake(
            "a setting of the command line",
            "",
            "--set rpc.threats=3: unknown field `threats`; did you mean 'threads'?",
        )
        .with(&["--set", "rpc.threats=3"]),
        mistake("a network of the command line", "", "--network: network: the embedded chain is regtest")
            .with(&["--network", "main"]),
        mistake(
            "fallbackfee",
            "[wallet]\nfallbackfee = 10\n",
            format!(
                "FILE:2: wallet.fallbackfee: unreasonably high: 10.00000000 BTC per 1000 virtual bytes is 1000000 satoshi per virtual byte; {unit}"
            ),
        ),
        mistake(
            "maxtxfee",
            "[wallet]\nmaxtxfee = 10000\n",
            "FILE:2: wallet.maxtxfee: unreasonably high: 10000.00000000 BTC for one transaction",
        ),
        mistake(
            "a maxtxfee that is too low",
            "[wallet]\nmaxtxfee = 0.000001\n",
            "FILE:2: wallet.maxtxfee: must be at least the minimum relay fee",
        ),
        mistake("paytxfee", "[wallet]\npaytxfee = 0.0001\n", "FILE:2: wallet.paytxfee: unknown field `paytxfee`"),
        mistake(
            "min_relay_feerate",
            "[chain]\nmin_relay_feerate = 100000000\n",
            "FILE:2: chain.min_relay_feerate: must be from 0 to 10000000",
        ),
        mistake(
            "host bits",
            "[rpc]\nallow_from = [\"10.0.0.1/8\"]\n",
            "FILE:2: rpc.allow_from: '10.0.0.1/8' has bits beyond its prefix: write 10.0.0.0/8 for the network, or 10.0.0.1/32 for the address alone",
        ),
    ];
    let fees = [("mintxfee", 1), ("discardfee", 3), ("consolidatefeerate", 10), ("maxapsfee", 1000)];
    let high = fees.map(|(key, amount)| {
        let expected = format!("FILE:2: wallet.{key}: unreasonably high: ");
        mistake(key, format!("[wallet]\n{key} = {amount}\n"), expected)
    });
    mistakes.iter().chain(&high).for_each(Mistake::judge);
}

#[test]
fn run_check_and_the_start_refuse_users_plugins_and_routes_alike() {
    let acme = |rest: &str| plugin_section("outrigger_acme_mining", rest);
    let grants = "grants = [\"chain/1\", \"mempool/1\"]\n";
    let zeros = "0".repeat(64);
    let mistakes = [
        mistake(
            "two users of a name",
            user("") + &user(""),
            "FILE:4: rpc.users.rpcauth: an earlier user has the name \"alice\"",
        ),
        mistake(
            "a user's line",
            "[[rpc.users]]\nrpcauth = \"alice\"\n",
            "FILE:2: rpc.users.rpcauth: the rpcauth entry of user \"alice\" does not read",
        ),
        mistake(
            "a set of methods",
            user("methods = [\"@reed\"]\n"),
            "FILE:3: rpc.users.methods: there is no set of methods '@reed': there are @read, @send, @mining, @wallet, @node-admin and @rest",
        ),
        mistake(
            "a user's method",
            user("methods = [\"getblokcount\"]\n"),
            "FILE:3: rpc.users.methods: there is no method 'getblokcount'; did you mean 'getblockcount'?",
        ),
        mistake(
            "a user's method that is like no other",
            user("methods = [\"frobnicate\"]\n"),
            "FILE:3: rpc.users.methods: there is no method 'frobnicate'\n",
        ),
        mistake(
            "a user's folder",
            user("folders = [\"backups\"]\n"),
            "FILE:3: rpc.users.folders: 'backups' must be an absolute path, such as /",
        ),
        mistake(
            "a bitcoin.conf",
            "[rpc]\nbitcoin_conf = \"/nonexistent/bitcoin.conf\"\n",
            "FILE:2: rpc.bitcoin_conf: /nonexistent/bitcoin.conf: No such file",
        ),
        mistake(
            "a plugin",
            "[[plugins]]\nfile = \"minning\"\n",
            "FILE:2: plugins.file: plugin 'minning' was not found",
        ),
        mistake("a plugin's name", "[[plugins]]\nfile = \"minning\"\n", "; did you mean 'mining'?"),
        mistake("two plugins of an id", CHAIN.repeat(2), "FILE:5: plugins.file: two plugins have the id 'chain'"),
        mistake(
            "a hash",
            acme(&format!("{grants}sha256 = \"{zeros}\"\n")),
            format!("FILE:4: plugins.sha256: {} has the SHA-256 ", built().library("outrigger_acme_mining").display()),
        ),
        mistake(
            "the form of a hash",
            acme(&format!("{grants}sha256 = \"00\"\n")),
            "FILE:4: plugins.sha256: must be the 64 hexadecimal digits",
        ),
        mistake(
            "an option",
            acme(&format!("{grants}options = {{ min_feerat = 1 }}\n")),
            "FILE:4: plugins.options: plugin 'acme-mining': option 'min_feerat' is not known to the plugin; did you mean 'min_feerate'?",
        ),
        mistake(
            "an option's type",
            acme(&format!("{grants}options = {{ min_feerate = \"much\" }}\n")),
            "FILE:4: plugins.options: plugin 'acme-mining': option 'min_feerate' must be of type integer",
        ),
        mistake(
            "a service",
            acme("grants = [\"chian/1\", \"mempool/1\"]\n"),
            "FILE:3: plugins.grants: plugin 'acme-mining': this host has no service chian/1; did you mean 'chain/1'?",
        ),
        mistake(
            "a missing grant",
            acme("grants = [\"chain/1\"]\n"),
            "FILE:3: plugins.grants: plugin 'acme-mining' needs the service mempool/1",
        ),
        mistake(
            "a key of a plugin",
            "[[plugins]]\nfile = \"chain\"\ngrant = []\n",
            "FILE:3: plugins.grant: unknown field `grant`; did you mean 'grants'?",
        ),
        mistake(
            "two plugins with a method",
            acme(grants)
                + "[[plugins]]\nfile = \"mining\"\ngrants = [\"chain/1\", \"mempool/1\", \"events/1\", \"log/1\"]\n",
            "plugins.file: the method 'getblocktemplate' is claimed by 'acme-mining' and by 'mining'",
        ),
        mistake(
            "a method of a route",
            format!("{CHAIN}[routes]\ngetblokcount = \"chain\"\n"),
            "FILE:5: routes.getblokcount: [routes] getblokcount = \"chain\": that plugin has no such method; did you mean 'getblockcount'?",
        ),
        mistake(
            "a plugin of a route",
            format!("{CHAIN}[routes]\ngetblockcount = \"chian\"\n"),
            "no such plugin is enabled; did you mean 'chain'?",
        ),
        mistake(
            "a wrapped method",
            format!("{CHAIN}[[routes.wrap]]\nplugin = \"chain\"\nmethods = [\"getblokcount\"]\n"),
            "FILE:4: routes.wrap: there is no method 'getblokcount'; did you mean 'getblockcount'?",
        ),
        mistake(
            "a wrapper",
            format!("{CHAIN}[routes]\nwrap = [\"chain\"]\n"),
            "FILE:5: routes.wrap: [routes] wrap = \"chain\": that plugin wraps no methods",
        ),
        mistake(
            "a signer",
            format!("[wallet]\nsigner = \"hsm\"\n{CHAIN}"),
            "FILE:2: wallet.signer: no enabled plugin 'hsm' provides keys-provider/1",
        ),
    ];
    mistakes.iter().for_each(Mistake::judge);
}

#[test]
fn run_check_and_the_start_refuse_folders_of_backups_alike() {
    let [blocked, used] = [0; 2].map(|_| tempfile::tempdir().unwrap());
    std::fs::write(blocked.path().join("regtest"), "").unwrap();
    let network = used.path().join("regtest");
    std::fs::create_dir(&network).unwrap();
    // Locked as by another host.
    let held = File::open(&network).unwrap();
    flock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    let (blocked, used) = (blocked.path().display(), used.path().display());
    let mistakes = [
        mistake(
            "a file in the place of a folder of backups",
            format!("[backup]\nfolder = \"{blocked}\"\n"),
            format!("FILE:2: backup.folder: {blocked}/regtest is not a folder"),
        ),
        mistake(
            "a folder of backups that another host uses",
            format!("[backup]\nfolder = \"{used}\"\n"),
            format!("FILE:2: backup.folder: another host makes its backups in {used}/regtest"),
        ),
    ];
    mistakes.iter().for_each(Mistake::judge);
}

#[test]
fn run_check_and_the_start_refuse_stored_files_alike() {
    let folder = tempfile::tempdir().unwrap();
    let network = folder.path().join("regtest");
    std::fs::create_dir(&network).unwrap();
    let name = |name: &str| network.join(name);
    for place in ["wallets", "chain"] {
        std::fs::write(name(place), "").unwrap();
        let expected = format!("{} is not a folder", name(place).display());
        mistake("a file in the place of a folder", "", expected).of_the_system().judge_on(folder.path(), None);
        std::fs::remove_file(name(place)).unwrap();
    }
}

#[test]
fn run_check_and_the_start_refuse_data_in_use_and_a_damaged_chain_alike() {
    let mut host = Host::start();
    let cookie = host.cookie();
    // Before a restart of a running host, the check does not try the host's ports.
    let mut command = Command::new(&built().binary);
    command.args(["run", "--check=restart", "--rpc-listen", &host.address.to_string(), "--datadir"]);
    let output = command.arg(host.datadir()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = format!("{} is in use by another Outrigger; stop it", host.network_folder().display());
    let in_use = mistake("a folder in use", "", format!("--datadir: the data directory: {expected}")).of_the_system();
    in_use.judge_on(host.datadir(), None);
    // Also without the lock file, which a cleanup script may remove.
    std::fs::remove_file(host.network_folder().join(".lock")).unwrap();
    in_use.judge_on(host.datadir(), None);
    assert_eq!(host.cookie(), cookie);
    assert!(host.terminate().success());
    let chain = host.network_folder().join("chain/data.mdb");
    let whole = std::fs::read(&chain).unwrap();
    std::fs::write(&chain, &whole[..whole.len() / 2]).unwrap();
    let expected = format!("The file {} is damaged: ", chain.display());
    mistake("a damaged chain", "", expected).of_the_system().judge_on(host.datadir(), None);
}

#[test]
fn run_check_and_the_start_refuse_addresses_and_programs_alike() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let remedy = "(os error 98); stop the program that listens there (`ss -ltnp` names it), or choose another port";
    let free = SocketAddr::from(([127, 0, 0, 1], 1));
    let mistakes = [
        mistake(
            "a taken port",
            format!("[rpc]\nlisten = \"{taken}\"\n"),
            format!("FILE:2: rpc.listen: cannot listen for RPC on {taken}: Address already in use {remedy}"),
        )
        .of_the_system(),
        mistake(
            "a taken port of metrics",
            format!("[metrics]\nlisten = \"{taken}\"\n"),
            format!("FILE:2: metrics.listen: cannot listen on {taken}: Address already in use {remedy}"),
        ),
        mistake(
            "a taken port of ZMQ",
            format!("[notify]\nzmqpubhashtx = \"tcp://{taken}\"\n"),
            format!("FILE:2: notify.zmqpubhashtx: cannot listen at tcp://{taken}: Address already in use {remedy}"),
        ),
        mistake(
            "an address of another machine",
            "[rpc]\nlisten = \"192.0.2.1:0\"\n",
            "FILE:2: rpc.listen: cannot listen for RPC on 192.0.2.1:0: ",
        )
        .of_the_system(),
        mistake("a port alone", "[rpc]\nlisten = 8332\n", "FILE:2: rpc.listen: expected an address and port"),
        mistake(
            "an address twice",
            format!("[rpc]\nlisten = [\"{free}\", \"{free}\"]\n"),
            format!("FILE:2: rpc.listen: {free} is listed twice"),
        ),
        mistake(
            "an address for two ends",
            format!("[rpc]\nlisten = \"{free}\"\n[metrics]\nlisten = \"{free}\"\n"),
            format!("FILE:2: metrics.listen: clients have {free} (rpc.listen)").replace("FILE:2", "FILE:4"),
        ),
        mistake(
            "a ZMQ endpoint",
            "[notify]\nzmqpubrawtx = \"localhost:28332\"\n",
            "FILE:2: notify.zmqpubrawtx: 'localhost:28332' is not a ZMQ endpoint: write tcp://host:port",
        ),
        mistake(
            "a folder of a ZMQ socket",
            "[notify]\nzmqpubrawtx = \"ipc:///nonexistent/zmq\"\n",
            "FILE:2: notify.zmqpubrawtx: cannot listen at ipc:///nonexistent/zmq: No such file",
        ),
        mistake(
            "a line for a shell",
            "[notify]\nblocknotify = [\"echo %s\"]\n",
            "FILE:2: notify.blocknotify: there is no program 'echo %s'; write a list of a program and its arguments",
        ),
        mistake(
            "a text for a list",
            "[notify]\nblocknotify = \"echo %s\"\n",
            "FILE:2: notify.blocknotify: invalid type: string \"echo %s\", expected an array",
        ),
        mistake(
            "a folder of the audit log",
            "[audit]\nfile = \"/nonexistent/audit\"\n",
            "FILE:2: audit.file: No such file",
        ),
    ];
    mistakes.iter().for_each(Mistake::judge);
}

/// A folder with this mode that belongs to a user other than root, in a folder that the user may enter.
fn folder_of(user: Option<u32>, mode: u32) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let own = folder.path().join("own");
    std::fs::create_dir_all(own.join("regtest")).unwrap();
    for path in [own.join("regtest"), own.clone()] {
        chown(&path, user, user).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    folder
}

#[test]
fn run_check_and_the_start_refuse_data_directories_alike() {
    // Root is not bound by permissions.
    let user = rustix::process::geteuid().is_root().then_some(NOBODY);
    let of_datadir = |name, expected: &str| {
        let expected = format!("--datadir: the data directory: {expected}");
        Mistake { code: FAILED, ..mistake(name, "", expected) }
    };
    let closed = folder_of(user, 0o500);
    let (top, own) = (closed.path().canonicalize().unwrap(), closed.path().canonicalize().unwrap().join("own"));
    let denied = |folder: &Path| format!("{}/regtest: Permission denied", folder.display());
    of_datadir("a folder without write permission", &denied(&own)).judge_on(&own, user);
    of_datadir("a parent without write permission", &denied(&own.join("new"))).judge_on(&own.join("new"), user);
    let file = top.join("file");
    std::fs::write(&file, "").unwrap();
    of_datadir("a file", &format!("{}/regtest: Not a directory", file.display())).judge_on(&file, None);
    of_datadir("a file above", &format!("{}/new/regtest: Not a directory", file.display()))
        .judge_on(&file.join("new"), None);
    let open = folder_of(None, 0o775);
    let open = open.path().canonicalize().unwrap().join("own");
    let expected = format!(
        "{} may be changed by others (its mode is 0775); it must belong to root or to the host's user, and `chmod go-w` it",
        open.display()
    );
    of_datadir("an open folder", &expected).judge_on(&open, None);
}
