//! What steers a network of peers: taken note of as a node without peers would, though there is nobody to connect to.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::error::ChainError;
use crate::{Context, Outcome, args};

/// How long a ban lasts where nothing is said, in seconds.
const DEFAULT_BAN: i64 = 24 * 60 * 60;
/// The kinds of network that addresses of nodes are counted by.
const NETWORKS: [&str; 6] = ["ipv4", "ipv6", "onion", "i2p", "cjdns", "all_networks"];
/// The longest time that the scheduler is advanced by, in seconds.
const MAX_SCHEDULED: i64 = 60 * 60;

/// A range of addresses. It is sorted as bitcoind lists it: the addresses of version 4 first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Subnet {
    first: IpAddr,
    bits: u32,
}

fn width(address: IpAddr) -> u32 {
    if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS }
}

/// An address without the bits behind the first so many.
fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(v4) => (v4 & Ipv4Addr::from(u32::MAX.checked_shl(Ipv4Addr::BITS - bits).unwrap_or(0))).into(),
        IpAddr::V6(v6) => (v6 & Ipv6Addr::from(u128::MAX.checked_shl(Ipv6Addr::BITS - bits).unwrap_or(0))).into(),
    }
}

impl Subnet {
    /// Reads an address, or a range as bits (`/24`) or as a mask (`/255.255.255.0`); none for what no node can have.
    fn parse(text: &str) -> Option<Self> {
        let Some((address, mask)) = text.split_once('/') else {
            let address = text.parse::<IpAddr>().ok()?.to_canonical();
            let reserved = matches!(address, IpAddr::V4(Ipv4Addr::BROADCAST))
                || matches!(address, IpAddr::V6(v6) if v6.segments().starts_with(&[0x2001, 0xdb8]));
            return (!address.is_unspecified() && !reserved).then(|| Self::single(address));
        };
        let address = address.parse::<IpAddr>().ok()?.to_canonical();
        let bits = match mask.parse::<u32>() {
            Ok(bits) => Some(bits).filter(|bits| *bits <= width(address))?,
            Err(_) => {
                let ones = match mask.parse().ok()? {
                    IpAddr::V4(mask) if address.is_ipv4() => u32::from(mask).leading_ones(),
                    IpAddr::V6(mask) if address.is_ipv6() => u128::from(mask).leading_ones(),
                    _ => return None,
                };
                let all = if address.is_ipv4() { Ipv4Addr::BROADCAST.into() } else { Ipv6Addr::from(u128::MAX).into() };
                (masked(all, ones) == mask.parse::<IpAddr>().ok()?).then_some(ones)?
            }
        };
        Some(Self { first: masked(address, bits), bits })
    }

    fn single(address: IpAddr) -> Self {
        Self { first: address, bits: width(address) }
    }

    fn contains(&self, address: IpAddr) -> bool {
        self.first.is_ipv4() == address.is_ipv4() && masked(address, self.bits) == self.first
    }
}

impl std::fmt::Display for Subnet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

/// A ban, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Ban {
    created: i64,
    until: i64,
}

#[derive(Default)]
struct Kept {
    added: Vec<String>,
    bans: BTreeMap<Subnet, Ban>,
    inactive: bool,
}

/// What was said about peers. It is kept until the host stops.
#[derive(Default)]
pub struct Peers(Mutex<Kept>);

impl Peers {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether peers might be connected to.
    pub fn is_active(&self) -> bool {
        !self.lock().inactive
    }
}

pub fn add_node(context: &Context<'_>) -> Outcome {
    let (node, command) = (args::text(context.params.get(0))?, args::text(context.params.get(1))?);
    let mut kept = context.plugin.peers.lock();
    let known = kept.added.iter().position(|added| added == node);
    match (command, known) {
        ("onetry", _) => {}
        ("add", Some(_)) => return Err(ChainError::NodeAlreadyAdded),
        ("add", None) => kept.added.push(node.to_owned()),
        ("remove", Some(index)) => drop(kept.added.remove(index)),
        ("remove", None) => return Err(ChainError::NodeNotAdded),
        _ => return Err(ChainError::Usage("addnode \"node\" \"command\" ( v2transport )")),
    }
    Ok(Value::Null)
}

pub fn get_added_node_info(context: &Context<'_>) -> Outcome {
    let wanted = context.params.given(0).map(args::text).transpose()?;
    let kept = context.plugin.peers.lock();
    let chosen: Vec<&String> = kept.added.iter().filter(|node| wanted.is_none_or(|wanted| wanted == **node)).collect();
    if wanted.is_some() && chosen.is_empty() {
        return Err(ChainError::NodeUnknown);
    }
    Ok(chosen.iter().map(|node| json!({"addednode": node, "connected": false, "addresses": []})).collect())
}

pub fn disconnect_node(context: &Context<'_>) -> Outcome {
    let address = context.params.given(0).map(args::text).transpose()?;
    let id: Option<i64> = context.params.given(1).map(args::integer).transpose()?;
    match (address, id) {
        (Some(_), None) | (None | Some(""), Some(_)) => Err(ChainError::NotConnected),
        _ => Err(ChainError::AddressOrId),
    }
}

pub fn set_ban(context: &Context<'_>) -> Outcome {
    let (text, command) = (args::text(context.params.get(0))?, args::text(context.params.get(1))?);
    if !matches!(command, "add" | "remove") {
        return Err(ChainError::Usage("setban \"subnet\" \"command\" ( bantime absolute )"));
    }
    let subnet = Subnet::parse(text).ok_or(ChainError::InvalidSubnet)?;
    let now = now(context)?;
    let mut kept = context.plugin.peers.lock();
    if command == "remove" {
        return kept.bans.remove(&subnet).map(|_| Value::Null).ok_or(ChainError::NotBanned);
    }
    let concerns = |banned: &Subnet| *banned == subnet || (!text.contains('/') && banned.contains(subnet.first));
    if kept.bans.iter().any(|(banned, ban)| ban.until > now && concerns(banned)) {
        return Err(ChainError::AlreadyBanned);
    }
    let time: i64 = context.params.given(2).map_or(Ok(0), args::integer)?;
    let absolute = context.params.flag_or(3, false)?;
    if absolute && time < now {
        return Err(ChainError::BanInThePast);
    }
    let until = match time {
        ..=0 => now.saturating_add(DEFAULT_BAN),
        _ if absolute => time,
        _ => now.saturating_add(time),
    };
    kept.bans.insert(subnet, Ban { created: now, until });
    Ok(Value::Null)
}

pub fn list_banned(context: &Context<'_>) -> Outcome {
    let now = now(context)?;
    let mut kept = context.plugin.peers.lock();
    kept.bans.retain(|_, ban| ban.until >= now);
    let show = |(subnet, ban): (&Subnet, &Ban)| {
        json!({
            "address": subnet.to_string(),
            "ban_created": ban.created,
            "banned_until": ban.until,
            "ban_duration": ban.until.saturating_sub(ban.created),
            "time_remaining": ban.until.saturating_sub(now).max(0),
        })
    };
    Ok(kept.bans.iter().map(show).collect())
}

pub fn clear_banned(context: &Context<'_>) -> Outcome {
    context.plugin.peers.lock().bans.clear();
    Ok(Value::Null)
}

pub fn set_network_active(context: &Context<'_>) -> Outcome {
    let active = args::flag(context.params.get(0))?;
    context.plugin.peers.lock().inactive = !active;
    Ok(json!(active))
}

pub fn get_addrman_info() -> Outcome {
    let none = |name: &&str| ((*name).to_owned(), json!({"new": 0, "tried": 0, "total": 0}));
    Ok(Value::Object(NETWORKS.iter().map(none).collect::<Map<_, _>>()))
}

/// Advances the clock of the tasks that a node does now and then; there are none here that a test would wait for.
pub fn mock_scheduler(context: &Context<'_>) -> Outcome {
    if context.network()? != bitcoin::Network::Regtest {
        return Err(ChainError::MockSchedulerOffRegtest);
    }
    let seconds: i64 = args::integer(context.params.get(0))?;
    match (1..=MAX_SCHEDULED).contains(&seconds) {
        true => Ok(Value::Null),
        false => Err(ChainError::MockSchedulerTime),
    }
}

fn now(context: &Context<'_>) -> Result<i64, ChainError> {
    Ok(i64::try_from(context.host.chain.time(context.scope)?).unwrap_or(i64::MAX))
}
