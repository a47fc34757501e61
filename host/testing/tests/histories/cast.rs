//! The scripts of random histories, and the imports that make them the wallet's.

use bitcoin::bip32::Xpriv;
use bitcoin::opcodes::all::OP_CHECKMULTISIG;
use bitcoin::{Address, Network, ScriptBuf, script};
use outrigger_descriptor::{Checksum, Descriptor};
use outrigger_service::wallet::{Import, KeysImport, Ownership};
use outrigger_testing::made::{self, foreign, p2wpkh, public, wif};

/// Indexes of the scripts in [`roles`]. The wallet owns the first three from the beginning.
pub const LABELLED: usize = 0;
pub const RENT: usize = 1;
pub const CHANGE: usize = 2;
pub const DESCRIPTOR: usize = 3;
pub const WATCHED: usize = 4;
pub const PUBKEY: usize = 5;
pub const BARE: usize = 6;
pub const STRANGER: usize = 7;
/// Two scripts of a ranged descriptor that a late import may activate.
pub const LOW: usize = 8;
pub const HIGH: usize = 9;
pub const NOTE: usize = 10;
pub const ROLES: usize = 11;
/// The indexes of `LOW` and `HIGH` in the ranged descriptor.
pub const INDEXES: [(usize, u32); 2] = [(LOW, 1), (HIGH, 3)];

pub struct Role {
    pub script: ScriptBuf,
    /// The script of the address that the wallet shows for it, if any.
    pub address_script: Option<ScriptBuf>,
}

impl Role {
    fn plain(script: ScriptBuf) -> Self {
        Self { address_script: Some(script.clone()), script }
    }

    pub fn address(&self) -> Option<String> {
        let script = self.address_script.as_ref()?;
        Some(Address::from_script(script, Network::Regtest).unwrap().to_string())
    }
}

/// The ownership and descriptor of a script after an import.
pub struct Owned {
    pub role: usize,
    pub ownership: Ownership,
    pub parent: Option<String>,
}

/// An import and its effects.
pub struct Late {
    pub import: Import,
    pub owned: Vec<Owned>,
    /// The script whose address the import labels, and the label.
    pub label: Option<(usize, &'static str)>,
    /// Whether it activates the ranged descriptor, whose next index is then 0.
    pub activates: bool,
    /// If this script is spendable, the import is refused and has no effect.
    pub unless_spendable: Option<usize>,
}

impl Late {
    /// An import that only makes scripts the wallet's.
    fn of(import: Import, owned: Vec<Owned>) -> Self {
        Self { import, owned, label: None, activates: false, unless_spendable: None }
    }
}

const KEYS: [u8; 4] = [11, 12, 13, 14];
const IMPORTED_KEY: u8 = 21;
const OTHER_KEY: u8 = 22;

/// A ranged descriptor, as text and parsed.
fn wildcard() -> (String, Descriptor) {
    let master = Xpriv::new_master(Network::Regtest, &[31; 32]).unwrap();
    let text = format!("wpkh({master}/0/*)");
    let parsed = Descriptor::parse(&text, Network::Regtest, Checksum::Optional).unwrap().remove(0);
    (text, parsed)
}

pub fn roles() -> Vec<Role> {
    let [labelled, rent, change, descriptor] = KEYS.map(|number| Role::plain(p2wpkh(number)));
    let imported = public(IMPORTED_KEY);
    let bare = script::Builder::new()
        .push_int(1)
        .push_key(&imported)
        .push_key(&public(OTHER_KEY))
        .push_int(2)
        .push_opcode(OP_CHECKMULTISIG)
        .into_script();
    let roles = vec![
        labelled,
        rent,
        change,
        descriptor,
        Role::plain(p2wpkh(IMPORTED_KEY)),
        Role { script: ScriptBuf::new_p2pk(&imported), address_script: None },
        Role { script: bare, address_script: None },
        Role::plain(foreign(7)),
        Role::plain(wildcard().1.expand(INDEXES[0].1).unwrap().scripts.remove(0).script_pubkey),
        Role::plain(wildcard().1.expand(INDEXES[1].1).unwrap().scripts.remove(0).script_pubkey),
        Role { script: ScriptBuf::new_op_return([1, 2, 3]), address_script: None },
    ];
    assert_eq!(roles.len(), ROLES);
    roles
}

/// An import of a descriptor, which a range activates.
fn of_descriptor(text: &str, range: Option<(u32, u32)>, internal: bool, label: Option<&str>) -> Import {
    made::descriptor(text, |import| {
        (import.range, import.active) = (range, range.is_some());
        (import.internal, import.label) = (Some(internal), label.map(str::to_owned));
    })
}

fn descriptor(role: usize, internal: bool, label: Option<&'static str>) -> Late {
    let text = format!("wpkh({})", wif(KEYS[role]).expose());
    let parsed = Descriptor::parse(&text, Network::Regtest, Checksum::Optional).unwrap();
    let owned = Owned { role, ownership: Ownership::Spendable, parent: Some(parsed[0].to_public_string()) };
    let label_of_role = label.map(|label| (role, label));
    Late { label: label_of_role, ..Late::of(of_descriptor(&text, None, internal, label), vec![owned]) }
}

/// The wallet's first scripts: two with labels and one for change.
pub fn first_imports() -> Vec<Late> {
    vec![descriptor(LABELLED, false, Some("")), descriptor(RENT, false, Some("rent")), descriptor(CHANGE, true, None)]
}

fn keys(roles: &[Role], role: usize, change: impl FnOnce(&mut KeysImport)) -> Import {
    made::keys(|keys| {
        (keys.script_pubkeys, keys.solving_data) = (vec![roles[role].script.clone()], false);
        change(keys);
    })
}

fn watch(roles: &[Role], role: usize, label: Option<&'static str>) -> Late {
    let import = keys(roles, role, |keys| {
        keys.internal = label.is_none();
        keys.label = label.unwrap_or_default().to_owned();
    });
    let owned = Owned { role, ownership: Ownership::WatchOnly, parent: None };
    let label = label.map(|label| (role, label));
    Late { label, unless_spendable: Some(role), ..Late::of(import, vec![owned]) }
}

/// Activates the ranged descriptor. Its range is so long that no payment extends it.
fn activation() -> Late {
    let (text, parsed) = wildcard();
    let own = |(role, _): (usize, u32)| Owned {
        role,
        ownership: Ownership::Spendable,
        parent: Some(parsed.to_public_string()),
    };
    Late { activates: true, ..Late::of(of_descriptor(&text, Some((0, 99)), false, None), INDEXES.map(own).into()) }
}

/// The number of late imports.
pub const LATE: usize = 6;

pub fn late(roles: &[Role], number: usize) -> Late {
    match number {
        0 => descriptor(DESCRIPTOR, false, Some("late")),
        1 => watch(roles, WATCHED, Some("watched")),
        // Change has no label.
        2 => watch(roles, PUBKEY, None),
        3 => watch(roles, BARE, Some("")),
        4 => activation(),
        // The private key makes all scripts spendable that need only its signature.
        _ => {
            let import = keys(roles, WATCHED, |keys| {
                keys.private_keys = vec![wif(IMPORTED_KEY)];
                keys.solving_data = true;
                keys.label = "mine".to_owned();
            });
            let own = |role| Owned { role, ownership: Ownership::Spendable, parent: None };
            let label = Some((WATCHED, "mine"));
            Late { label, unless_spendable: Some(WATCHED), ..Late::of(import, vec![own(WATCHED), own(PUBKEY)]) }
        }
    }
}
