//! `outrigger top`: node, wallets, plugins and calls of a running host, in a terminal.

mod look;
mod screen;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use outrigger_upstream::Login;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::call::connection::{CallError, Connection};
use super::call::place::{self, HostAt};
use super::{EXIT_FAILED, refused, show};
use crate::config::path_argument;
use look::look;

/// The width of the text that `--once` prints, in columns.
const PRINTED_WIDTH: u16 = 110;

#[derive(Args)]
pub struct TopArgs {
    #[command(flatten)]
    at: HostAt,
    /// The host's URL; by default the address that it last started with.
    #[arg(long, value_name = "URL")]
    rpc_connect: Option<String>,
    /// The user for the calls, instead of the cookie's, with the password in the file of --password-file. With
    /// --rpc-connect, the host may run on another machine. Parts that the user may not call stay empty.
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// The file whose first line is that password.
    #[arg(long, value_name = "FILE", value_parser = path_argument(), requires = "user")]
    password_file: Option<PathBuf>,
    /// The time between updates, in seconds.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// Prints the state once and exits. This is the default if standard output is not a terminal.
    #[arg(long)]
    once: bool,
}

/// Shows the host until `q`, Escape or Ctrl-C.
pub fn top(args: &TopArgs) -> ExitCode {
    let shown = connect(args).and_then(|connection| {
        if args.once || !io::stdout().is_terminal() {
            let seen = look(&connection)?;
            return Ok(show(&screen::text(&seen, PRINTED_WIDTH)));
        }
        watch(args, &connection)?;
        Ok(ExitCode::SUCCESS)
    });
    shown.unwrap_or_else(|error| refused(&error, EXIT_FAILED))
}

fn connect(args: &TopArgs) -> Result<Connection, CallError> {
    let connection = match (&args.user, &args.password_file) {
        (Some(user), Some(file)) => connect_as(args, user, file)?,
        _ => args.at.connect(args.rpc_connect.as_deref(), None)?,
    };
    Ok(connection.within(look::PATIENCE))
}

/// A connection as a user with a password.
fn connect_as(args: &TopArgs, user: &str, file: &Path) -> Result<Connection, CallError> {
    let url = match &args.rpc_connect {
        Some(url) => url.clone(),
        None => place::url(&args.at.folder()?),
    };
    let login = Login::Password { user: user.to_owned(), file: file.to_owned() };
    let header = login.read().map_err(io::Error::other)?;
    let connection = Connection::with_authorization(header.to_str().unwrap_or_default(), &url);
    Ok(connection.trusting(args.at.ca_file.as_deref()))
}

/// Updates the screen until a key ends it. A host that restarts has another cookie, so each query reads the credentials again.
fn watch(args: &TopArgs, first: &Connection) -> Result<(), CallError> {
    let mut seen = look(first)?;
    let mut scrolled = 0;
    let mut terminal = ratatui::try_init()?;
    let ended = (|| {
        loop {
            terminal.draw(|frame| screen::draw(frame, &seen, scrolled))?;
            let next = Instant::now() + Duration::from_secs(args.every);
            while event::poll(next.saturating_duration_since(Instant::now()))? {
                match event::read()? {
                    Event::Key(key) if ends(key) => return Ok(()),
                    Event::Key(KeyEvent { code: KeyCode::Down, .. }) => scrolled += 1,
                    Event::Key(KeyEvent { code: KeyCode::Up, .. }) => scrolled = scrolled.saturating_sub(1),
                    _ => {}
                }
                terminal.draw(|frame| screen::draw(frame, &seen, scrolled))?;
            }
            match connect(args).and_then(|connection| look(&connection)) {
                Ok(now) => seen = now,
                Err(error) => seen.error = Some(error.to_string()),
            }
        }
    })();
    ratatui::restore();
    ended
}

fn ends(key: KeyEvent) -> bool {
    let is_control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press && (is_control_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}
