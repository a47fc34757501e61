//! On a full disk, an import fails and stores nothing, and the wallet still opens.

use std::process::Command;

use outrigger_tests::{Host, HostOptions, XPRV, built, skip_unprivileged, wait_until};
use serde_json::json;

/// The file size limit above the largest plugin's size, in bytes: the host copies plugins, and needs a chain and a wallet.
const ROOM: u64 = 4 << 20;

/// A lower bound on a script's size in the wallet's file, in bytes: its row and its key.
const SCRIPT_BYTES: u64 = 80;

/// The step of filling the disk, and the space that a wallet and a block may take meanwhile, in bytes.
const FILL_STEP: u64 = 1 << 20;
const KEPT: u64 = 8 << 20;

#[test]
fn importdescriptors_on_a_full_disk_stores_nothing_and_keeps_the_wallet() {
    // A file size limit simulates a full disk: the same write fails.
    let largest = built().libraries.values().map(|library| library.metadata().unwrap().len()).max().unwrap();
    let limit = largest + ROOM;
    let mut host = Host::start_with(HostOptions { file_limit: Some(limit), ..HostOptions::default() });
    let mut client = host.client();
    let mut wallet = client.create_wallet("w", json!({"load_on_startup": true}));
    let address = wallet.call("getnewaddress", json!(["kept"]));
    wallet.call("generatetoaddress", json!([2, address]));
    // The wallet derives another address for the used one. getwalletinfo waits for that; listdescriptors does not.
    wallet.call("getwalletinfo", json!([]));
    let before = wallet.call("listdescriptors", json!([]));
    let long = client.with_checksum(&format!("wpkh({XPRV}/1/*)"));
    let small = client.with_checksum(&format!("wpkh({XPRV}/2/3)"));
    let requests = json!([[
        {"desc": small, "timestamp": "now"},
        {"desc": long, "timestamp": "now", "range": limit / SCRIPT_BYTES},
    ]]);
    let (code, message) = wallet.refused("importdescriptors", requests);
    assert_eq!(code, -20, "{message}");
    assert!(message.contains("the disk is full or failing, so nothing was stored"), "{message}");
    assert_eq!(wallet.call("listdescriptors", json!([])), before);
    assert_eq!(wallet.call("getwalletinfo", json!([]))["scanning"], json!(false));
    // A smaller import still succeeds and survives a kill.
    let imported = wallet.call("importdescriptors", json!([[{"desc": small, "timestamp": "now"}]]));
    assert_eq!(imported, json!([{"success": true}]));
    host = host.kill_and_restart();
    let mut wallet = host.client().wallet("w");
    let texts = wallet.call("listdescriptors", json!([]));
    assert_eq!(texts["descriptors"].as_array().unwrap().len(), before["descriptors"].as_array().unwrap().len() + 1);
    assert_eq!(wallet.call("getaddressinfo", json!([address]))["labels"], json!(["kept"]));
    assert_eq!(wallet.call("getwalletinfo", json!([]))["txcount"], json!(2));
}

/// A separate file system, in memory or in an image file. Mounting one needs privileges; without them, a test prints a message
/// and ends.
pub struct SmallDisk {
    folder: tempfile::TempDir,
    _image: Option<tempfile::NamedTempFile>,
}

impl SmallDisk {
    pub fn in_memory(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={bytes}");
        Self::mount(&["-t", "tmpfs", "-o", &size, "none"], folder, None)
    }

    fn ext4(bytes: u64) -> Option<Self> {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(bytes).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F", "-m", "0"]).arg(image.path()).status();
        if !made.is_ok_and(|status| status.success()) {
            skip_unprivileged("no ext4 can be made here");
            return None;
        }
        let path = image.path().to_str().unwrap().to_owned();
        Self::mount(&["-t", "ext4", "-o", "loop", &path], tempfile::tempdir().unwrap(), Some(image))
    }

    fn mount(arguments: &[&str], folder: tempfile::TempDir, image: Option<tempfile::NamedTempFile>) -> Option<Self> {
        let mounted = Command::new("mount").args(arguments).arg(folder.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            skip_unprivileged(&format!("nothing can be mounted here, not with {arguments:?}"));
            return None;
        }
        Some(Self { folder, _image: image })
    }

    pub fn path(&self) -> &std::path::Path {
        self.folder.path()
    }

    fn free(&self) -> u64 {
        let disk = rustix::fs::statvfs(self.folder.path()).unwrap();
        disk.f_bavail * disk.f_frsize
    }

    /// Runs `work` while only `room` bytes of the disk are free.
    pub fn filled_but<T>(&self, room: u64, work: impl FnOnce() -> T) -> T {
        let ballast = tempfile::NamedTempFile::new_in(self.folder.path()).unwrap();
        let (mut length, mut overtaken) = (0, 0);
        // Repeat, since the file's metadata takes space as well.
        while self.free() > room {
            let more = (self.free() - room).min(FILL_STEP);
            match rustix::fs::fallocate(ballast.as_file(), rustix::fs::FallocateFlags::empty(), length, more) {
                Ok(()) => length += more,
                // The host has just taken some of the space.
                Err(rustix::io::Errno::NOSPC) if overtaken < 10 => overtaken += 1,
                Err(error) => panic!("{error}"),
            }
        }
        let done = work();
        drop(ballast);
        wait_until("the disk has room again", || self.free() >= length.saturating_sub(KEPT));
        done
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A file system that is still in use stays mounted.
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).status();
    }
}

/// Makes a wallet and a block at each amount of free space of `rooms`; acknowledged ones must survive a kill.
fn sweep(disk: &SmallDisk, rooms: impl Iterator<Item = u64>) {
    let folder = tempfile::tempdir_in(disk.folder.path()).unwrap();
    let mut host = Host::start_in(folder, HostOptions::with(&["wallet.keypool=3"]));
    let mut client = host.client();
    let mut first = client.create_wallet("first", json!({"load_on_startup": true}));
    let address = first.call("getnewaddress", json!(["kept"]));
    let (mut made, mut refused, mut blocks) = (Vec::new(), Vec::new(), 0);
    for room in rooms {
        let name = format!("with-{room}-bytes");
        let (wallet, block) = disk.filled_but(room, || {
            let wallet = client.try_call("createwallet", json!([name]));
            (wallet, client.try_call("generatetoaddress", json!([1, address])))
        });
        match wallet {
            Ok(_) => made.push(name),
            Err(failure) => {
                assert!(!failure.message.is_empty() && failure.code < 0, "{room}: {failure:?}");
                refused.push((room, failure));
            }
        }
        blocks += u32::from(block.is_ok());
        assert_eq!(client.call("getblockcount", json!([])), json!(blocks), "{room}");
    }
    assert!(!refused.is_empty(), "the disk was never full");
    assert!(!made.is_empty(), "the disk was always full: {:?}", refused.last());
    // With free space, the host works again.
    client.call("createwallet", json!(["after"]));
    made.push("after".to_owned());
    client.call("generatetoaddress", json!([1, address]));
    host = host.kill_and_restart();
    let mut client = host.client();
    let listed = client.call("listwalletdir", json!([]))["wallets"].clone();
    // Only the acknowledged ones and the first: a wallet that could not be made leaves nothing.
    assert_eq!(listed.as_array().unwrap().len(), made.len() + 1, "{listed} {made:?}");
    assert_eq!(client.call("getblockcount", json!([])), json!(blocks + 1));
    assert_eq!(client.wallet("first").call("getaddressinfo", json!([address]))["labels"], json!(["kept"]));
    for name in made {
        client.call("loadwallet", json!([name]));
        client.wallet(&name).call("getnewaddress", json!([]));
    }
}

fn size() -> u64 {
    let plugins: u64 = built().libraries.values().map(|library| library.metadata().unwrap().len()).sum();
    plugins + (96 << 20)
}

/// The amounts of free space, in bytes: from none in single pages, then in larger steps.
fn rooms() -> impl Iterator<Item = u64> {
    let pages = (0..48).chain((48..240).step_by(16)).map(|pages| pages * 4096);
    pages.chain([4 << 20])
}

#[test]
fn createwallet_on_a_nearly_full_disk_in_memory_or_of_ext4_is_an_error_and_the_host_goes_on() {
    for make in [SmallDisk::in_memory, SmallDisk::ext4] {
        if let Some(disk) = make(size()) {
            sweep(&disk, rooms());
        }
    }
}
