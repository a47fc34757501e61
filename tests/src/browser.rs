//! Headless Chromium, controlled by its DevTools protocol.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::skip_without;
use crate::{WebSocket, wait_until};

/// The program's names on different systems.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one open page.
pub struct Browser {
    child: Child,
    socket: WebSocket,
    session: Value,
    commands: u64,
    /// The errors of the page: logged errors, exceptions, and files that did not load.
    pub errors: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// None if this machine has no Chromium: the test is then skipped.
    pub fn start() -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--hide-scrollbars",
        ];
        let started = NAMES.iter().find_map(|name| {
            let mut command = Command::new(name);
            command.args(arguments).arg("--remote-debugging-port=0");
            command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()
        });
        let Some(mut child) = started else {
            skip_without("Chromium is not installed");
            return None;
        };
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut addresses =
            lines.filter_map(|line| line.strip_prefix("DevTools listening on ws://").map(str::to_owned));
        let address = addresses.next().expect("the address of DevTools");
        // Read the rest of its output, so that a full pipe does not block it.
        std::thread::spawn(move || addresses.count());
        let (host, path) = address.split_once('/').unwrap();
        let socket = WebSocket::open(TcpStream::connect(host).unwrap(), &format!("/{path}"), "none");
        let (session, errors) = (Value::Null, Vec::new());
        let mut browser = Self { child, socket, session, commands: 0, errors, _profile: profile };
        let target = browser.command("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.command("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].clone();
        for domain in ["Page", "Runtime", "Log"] {
            browser.command(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and gives its result.
    #[track_caller]
    pub fn command(&mut self, method: &str, params: Value) -> Value {
        self.commands += 1;
        let mut command = json!({"id": self.commands, "method": method, "params": params});
        if !self.session.is_null() {
            command["sessionId"] = self.session.clone();
        }
        self.socket.send(&command);
        loop {
            let message = self.socket.receive();
            if message["id"] == self.commands {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            let told = &message["params"];
            let is_error = match message["method"].as_str() {
                Some("Runtime.exceptionThrown") => true,
                Some("Runtime.consoleAPICalled") => told["type"] == "error" || told["type"] == "warning",
                Some("Log.entryAdded") => told["entry"]["level"] == "error" || told["entry"]["level"] == "warning",
                _ => false,
            };
            if is_error {
                self.errors.push(told.to_string());
            }
        }
    }

    /// Opens a page and waits until it has loaded.
    pub fn open(&mut self, url: &str) {
        self.command("Page.navigate", json!({"url": url}));
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// The value of a script.
    #[track_caller]
    pub fn value(&mut self, script: &str) -> Value {
        let asked = json!({"expression": script, "returnByValue": true, "awaitPromise": true});
        let answer = self.command("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{script}: {answer}");
        answer["result"]["value"].clone()
    }

    #[track_caller]
    pub fn wait(&mut self, script: &str) {
        wait_until(script, || self.value(script) == true);
    }

    /// Types text into the focused field.
    pub fn type_text(&mut self, text: &str) {
        self.command("Input.insertText", json!({"text": text}));
    }

    /// Presses a key: `Tab`, `Enter` or `ArrowUp`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "ArrowUp" => (38, ""),
            _ => (9, ""),
        };
        let mut event =
            json!({"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text});
        self.command("Input.dispatchKeyEvent", event.clone());
        event["type"] = json!("keyUp");
        self.command("Input.dispatchKeyEvent", event);
    }

    /// Sets the width in pixels and the colour scheme, `light` or `dark`.
    pub fn show(&mut self, width: u32, scheme: &str) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", size);
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.command("Emulation.setEmulatedMedia", features);
    }

    /// Writes a picture of the whole page (PNG).
    pub fn picture(&mut self, file: &Path) {
        let taken = self.command("Page.captureScreenshot", json!({"captureBeyondViewport": true}));
        std::fs::write(file, STANDARD.decode(taken["data"].as_str().unwrap()).unwrap()).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
