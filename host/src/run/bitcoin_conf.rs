//! Reads users from a bitcoin.conf: its lines `rpcauth`, `rpcwhitelist` and `rpcwhitelistdefault`, as bitcoind does.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_rpc::RpcUser;

/// The settings of a file for one network: its section's settings precede those outside of any section.
struct Settings<'t> {
    of_network: Vec<(&'t str, &'t str)>,
    of_all: Vec<(&'t str, &'t str)>,
}

impl<'t> Settings<'t> {
    fn parse(text: &'t str, network: &str) -> Result<Self, String> {
        let (mut of_network, mut of_all, mut section) = (Vec::new(), Vec::new(), "");
        for (number, line) in (1_usize..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name;
                continue;
            }
            let setting = line.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
            let Some((name, value)) = setting.filter(|(name, _)| !name.starts_with('-')) else {
                return Err(format!("line {number} is not a setting: name=value, without a leading -"));
            };
            // `regtest.rpcauth=` is equivalent to the section.
            let (of, name) =
                if section.is_empty() { name.split_once('.').unwrap_or(("", name)) } else { (section, name) };
            if of.is_empty() {
                of_all.push((name, value));
            } else if of == network {
                of_network.push((name, value));
            }
        }
        Ok(Self { of_network, of_all })
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'t str> {
        self.of_network.iter().chain(&self.of_all).filter(move |(found, _)| *found == name).map(|(_, value)| *value)
    }

    /// The allowed methods by user: the intersection of the user's whitelists. An empty list allows nothing.
    fn whitelists(&self) -> BTreeMap<&'t str, BTreeSet<String>> {
        let mut lists: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
        for line in self.all("rpcwhitelist") {
            let (user, methods) = line.split_once(':').map_or((line, None), |(user, methods)| (user, Some(methods)));
            let methods = methods.map(|methods| methods.split([',', ' ']).map(str::to_owned).collect::<BTreeSet<_>>());
            let known = lists.get(user);
            let list = match (known, methods) {
                (Some(known), Some(methods)) => known.intersection(&methods).cloned().collect(),
                (Some(known), None) => known.clone(),
                (None, methods) => methods.unwrap_or_default(),
            };
            lists.insert(user, list);
        }
        lists
    }
}

/// Reads the users of a file. `network` is bitcoind's name of the section. If the file has any whitelist, a user without
/// one may call nothing, unless `rpcwhitelistdefault` says otherwise.
///
/// # Errors
/// A line is invalid; bitcoind refuses it, too.
pub fn users(text: &str, network: &str) -> Result<Vec<RpcUser>, String> {
    let settings = Settings::parse(text, network)?;
    if settings.all("includeconf").next().is_some() {
        tracing::warn!("rpc.bitcoin_conf: files that includeconf names are not read");
    }
    let lists = settings.whitelists();
    let is_true = |value: &str| value.is_empty() || value.parse::<i64>().is_ok_and(|number| number != 0);
    let denies = settings.all("rpcwhitelistdefault").next().map_or(!lists.is_empty(), is_true);
    let user = |entry: &str| {
        let user = RpcUser::from_rpcauth(entry).map_err(|error| error.to_string())?;
        Ok(match lists.get(user.name()) {
            Some(list) => user.allowing(list.clone()),
            None if denies => user.allowing([]),
            None => user,
        })
    };
    settings.all("rpcauth").map(user).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part after the user's name.
    const SECRET: &str =
        ":0123456789abcdef0123456789abcdef$36eec41693efe2766d65afc49dcabcd63a478f61cd99bb469a80f7ad8885432b";

    /// The users of a file, and the methods of `a`, `b` and `c` that each may call.
    fn read(text: &str) -> Vec<String> {
        let users = users(&text.replace('$', SECRET), "regtest").unwrap();
        let may = |user: &RpcUser| {
            ["a", "b", "c"].into_iter().filter(|method| user.origin.may_call(method)).collect::<String>()
        };
        users.iter().map(|user| format!("{} {}", user.name(), may(user))).collect()
    }

    #[test]
    fn rpcauth_lines_are_read_of_all_sections_that_hold() {
        assert_eq!(read("# x\nserver=1\nrpcauth=u$ # alice\n"), ["u abc"]);
        let sections = "rpcauth = u$\nregtest.rpcauth=v$\ntest.rpcauth=w$\n[regtest]\nrpcauth=x$\n[main]\nrpcauth=y$\n";
        assert_eq!(read(sections), ["v abc", "x abc", "u abc"]);
        assert_eq!(read(""), [""; 0]);
    }

    #[test]
    fn rpcwhitelist_lines_of_a_user_are_intersected_and_others_may_call_nothing() {
        assert_eq!(read("rpcauth=u$\nrpcauth=v$\nrpcwhitelist=u:a,b\n"), ["u ab", "v "]);
        assert_eq!(read("rpcauth=u$\nrpcwhitelist=u:a, b\nrpcwhitelist=u:b,c\n"), ["u b"]);
        assert_eq!(read("rpcauth=u$\nrpcwhitelist=u\n"), ["u "]);
        assert_eq!(read("rpcauth=u$\nrpcwhitelist=w:a\nrpcwhitelistdefault=0\n"), ["u abc"]);
        assert_eq!(read("rpcauth=u$\nrpcwhitelistdefault=1\n"), ["u "]);
        assert_eq!(read("rpcauth=u$\nrpcwhitelistdefault=1\n[regtest]\nrpcwhitelistdefault=0\n"), ["u abc"]);
    }

    #[test]
    fn lines_that_bitcoind_refuses_are_refused() {
        let refused = |text: &str| users(text, "regtest").err().unwrap();
        assert_eq!(refused("server=1\nrpcauth\n"), "line 2 is not a setting: name=value, without a leading -");
        assert_eq!(refused("-rpcauth=u\n"), "line 1 is not a setting: name=value, without a leading -");
        assert!(refused("rpcauth=u:salt\n").contains("does not read NAME:SALT$HMAC"));
    }
}
