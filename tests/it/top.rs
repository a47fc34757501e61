//! `outrigger top`.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use outrigger_tests::{Client, Host, built, isolated, wait_until};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::json;

use crate::users::with_user;

const ROWS: u16 = 30;

/// A terminal in which `top` runs.
struct Terminal {
    keys: File,
    end: File,
    columns: u16,
    /// Everything that was written to it.
    written: Arc<Mutex<String>>,
    former: Termios,
    child: Child,
}

/// The two ends of a new terminal: the user's and the program's.
pub fn terminal() -> (File, File) {
    let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&user).unwrap();
    unlockpt(&user).unwrap();
    let name = ptsname(&user, Vec::new()).unwrap();
    let end = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (user.into(), end.into())
}

impl Terminal {
    /// Starts `top` for a host in a terminal of this many columns.
    fn start(host: &Host, columns: u16) -> Self {
        let (keys, end) = terminal();
        tcsetwinsize(&end, Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let former = tcgetattr(&end).unwrap();
        let stdio = || Stdio::from(end.try_clone().unwrap());
        let mut command = Command::new(&built().binary);
        command.args(["top", "--every", "1", "--datadir"]).arg(host.datadir()).env("TERM", "xterm");
        let child = command.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let written = Arc::new(Mutex::new(String::new()));
        let (mut screen, shared) = (keys.try_clone().unwrap(), written.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The read fails once the last program end is closed.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { keys, end, columns, written, former, child }
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.end).unwrap().local_modes.intersects(LocalModes::ECHO | LocalModes::ICANON)
    }

    fn has_written(&self, text: &str) -> bool {
        self.written.lock().unwrap().contains(text)
    }

    /// The lines on the screen.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![vec![' '; self.columns.into()]; ROWS.into()];
        let (mut row, mut column) = (0, 0);
        let written = self.written.lock().unwrap().clone();
        let mut characters = written.chars();
        while let Some(character) = characters.next() {
            if character == '\x1b' {
                // An escape sequence: "[", arguments, and a letter. "H" moves the cursor; lines and columns count from 1.
                let mut last = ' ';
                let sequence = characters.by_ref().take_while(|c| {
                    last = *c;
                    !c.is_ascii_alphabetic()
                });
                let sequence: String = sequence.collect();
                let place = sequence.strip_prefix('[').and_then(|place| place.split_once(';'));
                if let ('H', Some((to_row, to_column))) = (last, place) {
                    (row, column) = (to_row.parse::<usize>().unwrap() - 1, to_column.parse::<usize>().unwrap() - 1);
                }
            } else if let Some(cell) = lines.get_mut(row).and_then(|line| line.get_mut(column)) {
                *cell = character;
                column += 1;
            }
        }
        lines.into_iter().map(String::from_iter).collect()
    }

    /// Whether the screen shows a text, which may wrap to the next line.
    fn shows(&self, text: &str) -> bool {
        self.lines().iter().map(|line| line.trim_end()).collect::<Vec<_>>().join(" ").contains(text)
    }

    /// Presses a key that ends `top`, and checks that the terminal is restored.
    fn end_by(&mut self, key: &[u8]) {
        self.keys.write_all(key).unwrap();
        assert!(self.child.wait().unwrap().success());
        let now = tcgetattr(&self.end).unwrap();
        assert_eq!(
            (now.local_modes, now.input_modes, now.output_modes),
            (self.former.local_modes, self.former.input_modes, self.former.output_modes)
        );
        // `top` leaves the alternate screen and shows the cursor.
        wait_until("the screen is restored", || self.has_written("\x1b[?1049l") && self.has_written("\x1b[?25h"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks the printed node, wallets and plugins without a terminal.
fn check_printed(host: &Host, wallet: &mut Client) {
    let mut command = Command::new(&built().binary);
    wait_until("the first connection has ended", || wallet.call("gethostinfo", json!([]))["connections"] == 1);
    let printed = command.arg("top").arg("--datadir").arg(host.datadir()).output().unwrap();
    let text = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.status.success(), "{text}");
    for expected in ["chain regtest", "height 7 of 7", "connections 2 ", "WALLET", "PLUGIN", "CALL IN FLIGHT"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let row = |id: &str| text.lines().find(|line| line.starts_with(id)).map(|line| line.split_whitespace().collect());
    let shop: Vec<&str> = row("shop").unwrap();
    assert_eq!(shop, ["shop", "7", "private"]);
    let wallet: Vec<&str> = row("wallet ").unwrap();
    let state: &[&str] = if isolated() { &["running,", "isolated"] } else { &["running"] };
    assert_eq!(wallet[1..=state.len()], *state, "{text}");
    assert_ne!(wallet[1 + state.len()], "0", "{text}");
}

#[test]
fn top_as_a_user_of_another_machine_shows_only_the_permitted_data() {
    let methods = r#"methods = ["getblockchaininfo", "listwallets", "listplugins"]"#;
    let (host, _alice) = with_user(methods);
    host.new_wallet("shop");
    // This machine has no cookie of the host.
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    let top = |text: &str| {
        std::fs::write(&password, text).unwrap();
        let mut command = Command::new(&built().binary);
        command.args(["top", "--once", "--rpc-connect", &format!("http://{}", host.address)]);
        command.args(["--user", "alice", "--password-file"]).arg(&password);
        command.arg("--datadir").arg(folder.path()).output().unwrap()
    };
    let printed = top("pass:word\na second line\n");
    let (text, error) = (String::from_utf8(printed.stdout).unwrap(), String::from_utf8(printed.stderr).unwrap());
    assert_eq!((printed.status.code(), error.as_str()), (Some(0), ""), "{text}");
    assert!(text.contains("chain regtest") && text.contains("height 0 of 0"), "{text}");
    assert!(text.lines().any(|line| line == "shop"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("wallet ") && line.contains("running")), "{text}");
    assert!(!text.contains("peers") && text.trim_end().lines().last().unwrap().starts_with("CALL IN FLIGHT"), "{text}");
    let refused = top("another\npass:word\n");
    let error = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(1), &b""[..]), "{error}");
    assert!(error.contains("401"), "{error}");
    let empty = String::from_utf8(top("").stderr).unwrap();
    assert!(empty.contains("it holds no credentials"), "{empty}");
}

#[test]
fn top_reports_that_no_host_runs() {
    let folder = tempfile::tempdir().unwrap();
    let tried = Command::new(&built().binary).arg("top").arg("--datadir").arg(folder.path()).output().unwrap();
    assert_eq!(tried.status.code(), Some(1));
    let error = String::from_utf8(tried.stderr).unwrap();
    assert!(error.contains("is the host running?"), "{error}");
}

#[test]
fn top_refreshes_until_q_prints_without_a_terminal_and_reports_failures_in_full() {
    let mut host = Host::start();
    let mut terminal = Terminal::start(&host, 110);
    wait_until("the first picture", || terminal.shows("CALL IN FLIGHT"));
    assert!(terminal.has_written("\x1b[?1049h") && terminal.is_raw());
    assert!(terminal.shows("height 0 of 0") && !terminal.shows("shop"), "{:#?}", terminal.lines());
    let mut wallet = host.new_wallet("shop");
    wallet.mine(7);
    wait_until("the new wallet and height", || {
        terminal.shows("height 7 of 7") && terminal.lines().iter().any(|line| line.starts_with("shop  "))
    });
    terminal.end_by(b"q");
    check_printed(&host, &mut wallet);

    // A narrow screen wraps no fact.
    let mut terminal = Terminal::start(&host, 60);
    wait_until("the first picture", || terminal.shows("CALL"));
    for fact in ["chain regtest", "height 7 of 7", "peers 0"] {
        assert!(terminal.lines().iter().any(|line| line.contains(fact)), "{fact}: {:#?}", terminal.lines());
    }
    host.terminate();
    wait_until("the reason, to its end", || terminal.shows("is the host running?"));
    terminal.end_by(b"\x1b");
}
