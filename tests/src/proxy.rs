//! The programs of `config/proxies.md`, run with the configurations of that page in front of a host.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::{Authority, Host, free_port, groups, skip_without, wait_until};

/// A running proxy.
pub struct Proxy {
    child: Child,
    pub port: u16,
    pub authority: Authority,
    _folder: TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        // SIGTERM, so that its child processes end too.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

/// A folder with the files for TLS that the page names, and their authority.
pub fn certified_folder() -> (TempDir, Authority) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(&folder.path().join("authority.pem"));
    let (certificate, key) = (folder.path().join("fullchain.pem"), folder.path().join("key.pem"));
    authority.issue(&["127.0.0.1"], "proxy").write(&certificate, &key);
    let both = [fs::read_to_string(certificate).unwrap(), fs::read_to_string(key).unwrap()].concat();
    fs::write(folder.path().join("haproxy.pem"), both).unwrap();
    (folder, authority)
}

/// A connection to a port of this machine from one of its other addresses, 127.0.0.N.
pub fn connect_from(last: u8, port: u16) -> std::io::Result<TcpStream> {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &SocketAddr::from(([127, 0, 0, last], 0)))?;
    connect(&socket, &SocketAddr::from(([127, 0, 0, 1], port)))?;
    Ok(socket.into())
}

impl Proxy {
    /// Starts the program of the page's block that is marked with this word. None, with a note, if it is not installed.
    pub fn start(word: &str, host: &Host, (folder, authority): (TempDir, Authority)) -> Option<Self> {
        let name = word.split('-').next().unwrap();
        if Command::new(name).arg("-v").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            skip_without(&format!("{name} is not installed"));
            return None;
        }
        let port = free_port();
        let mut replaced = vec![
            ("127.0.0.1:8337", host.address.to_string()),
            ("/etc/outrigger/tls", folder.path().display().to_string()),
            ("https://localhost:8443", format!("https://localhost:{port}, https://127.0.0.1:{port}")),
            ("listen 8443", format!("listen 127.0.0.1:{port}")),
            ("bind :8443", format!("bind 127.0.0.1:{port}")),
        ];
        replaced.extend(proxy_port(host).map(|port| ("127.0.0.1:8344", format!("127.0.0.1:{port}"))));
        let text = replaced.iter().fold(block(word), |text, (from, to)| text.replace(from, to));
        let file = folder.path().join("configuration");
        fs::write(&file, text).unwrap();
        let mut command = match name {
            "nginx" => nginx(folder.path(), &file),
            "haproxy" => haproxy(&file),
            _ => caddy(folder.path(), &file),
        };
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        wait_until("the proxy listens", || {
            assert!(child.try_wait().unwrap().is_none(), "{word} does not start");
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(Self { child, port, authority, _folder: folder })
    }

    /// A TLS connection from 127.0.0.N.
    pub fn connect(&self, last: u8) -> std::io::Result<BufReader<impl Read + Write + use<>>> {
        Ok(BufReader::new(self.authority.connect(connect_from(last, self.port)?, None)?))
    }
}

/// The block of the page that is marked with this word.
fn block(word: &str) -> String {
    let page = fs::read_to_string(groups("proxies.md")).unwrap();
    let (_, rest) = page.split_once(&format!("```{word}\n")).unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// The port where the host speaks the PROXY protocol, if it does.
pub fn proxy_port(host: &Host) -> Option<u16> {
    let (_, rest) = host.ready.split_once("proxy:127.0.0.1:")?;
    rest.split(' ').next()?.parse().ok()
}

/// With the directives that a distribution's nginx.conf has around such a file.
fn nginx(folder: &Path, file: &Path) -> Command {
    let (temporary, file) = (folder.display(), file.display());
    let paths: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {temporary}/{name};\n"))
        .concat();
    let user = if rustix::process::getuid().is_root() { "user root;" } else { "" };
    let main = format!(
        "{user} pid {temporary}/pid; daemon off; error_log stderr crit;\nevents {{}}\nhttp {{ access_log off;\n{paths}include {file};\n}}\n"
    );
    let path = folder.join("nginx.conf");
    fs::write(&path, main).unwrap();
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).arg("-c").arg(path);
    command
}

fn haproxy(file: &Path) -> Command {
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(file);
    command
}

/// Without the admin API, and without writes outside of the folder.
fn caddy(folder: &Path, file: &Path) -> Command {
    let text =
        format!("{{\n    admin off\n    auto_https disable_redirects\n}}\n{}", fs::read_to_string(file).unwrap());
    fs::write(file, text).unwrap();
    let mut command = Command::new("caddy");
    command.arg("run").args(["--adapter", "caddyfile", "--config"]).arg(file).env("HOME", folder);
    command
}
