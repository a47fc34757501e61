//! The chain of each method: the plugins that its calls go through, one after the other.
//!
//! First come the wrappers that the configuration puts before the method, then the plugins of its route. The last plugin of the
//! route names the method's parameters and its help. After the last link comes whoever would answer without plugins: the host or the node.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Plugin, RegistryError};
use crate::grants::RPC;
use crate::instance::Instance;
use crate::latency::Latency;
use crate::settings::{MAX_LINKS, OnFailure, Routes, WRAP, Wrap};
use outrigger_sdk::manifest::{Manifest, MethodSpec, WrapperKind};

/// A plugin that a call goes through.
#[derive(Clone)]
pub struct Link {
    pub id: Arc<str>,
    /// `None`: a wrapper that does not run.
    pub instance: Option<Arc<Instance>>,
    /// The method, for a wrapper without parameters and help.
    pub method: Arc<MethodSpec>,
    /// The parameters by which arguments are put in order; `None` if the host does not know them.
    pub signature: Option<Arc<MethodSpec>>,
    /// Its position in the manifest; `usize::MAX` for the methods of others, which a wrapper sees.
    pub position: usize,
    /// The recent latency, if it is an inline method.
    pub latency: Arc<Latency>,
    /// Whether the plugin is granted `rpc/1`, with which it asks the next link and calls methods.
    pub asks: bool,
    /// Whether the next link gets calls that this one fails to judge.
    pub may_fail: bool,
}

impl Link {
    pub fn is_of(&self, instance: &Arc<Instance>) -> bool {
        self.instance.as_ref().is_some_and(|own| Arc::ptr_eq(own, instance))
    }
}

/// The links of a method.
pub struct Chain {
    /// As the last plugin of the route describes it.
    pub method: Arc<MethodSpec>,
    pub links: Vec<Link>,
}

/// The chains of the methods that plugins answer.
pub type RouteTable = BTreeMap<String, Arc<Chain>>;

/// A plugin that is put before methods.
#[derive(Clone)]
pub struct Wrapper {
    wrap: Wrap,
    id: Arc<str>,
    instance: Option<Arc<Instance>>,
    kind: Option<WrapperKind>,
    latency: Arc<Latency>,
}

impl Wrapper {
    /// Whether calls of a method go through it.
    pub fn concerns(&self, method: &str) -> bool {
        !self.observes() && self.lists(method)
    }

    /// The instance that hears of ended calls of a method.
    pub fn observer(&self, method: &str) -> Option<&Arc<Instance>> {
        self.instance.as_ref().filter(|_| self.observes() && self.lists(method))
    }

    pub fn observes(&self) -> bool {
        self.kind == Some(WrapperKind::Observe)
    }

    fn lists(&self, method: &str) -> bool {
        let methods = &self.wrap.methods;
        methods.is_empty() || methods.iter().any(|pattern| matches(pattern, method))
    }

    fn link(&self, method: &str, signature: Option<&Arc<MethodSpec>>) -> Link {
        let instance = self.instance.clone();
        let described = MethodSpec {
            name: method.to_owned(),
            inline: self.kind == Some(WrapperKind::Inline),
            // The wait of the next link, if it waits, is no time of the wrapper.
            long_running: false,
            private_keys: signature.is_none_or(|method| method.private_keys),
            needs_tip: false,
            ..MethodSpec::default()
        };
        Link {
            id: self.id.clone(),
            asks: instance.as_ref().is_some_and(asks),
            instance,
            method: Arc::new(described),
            signature: signature.cloned(),
            position: usize::MAX,
            latency: self.latency.clone(),
            may_fail: self.wrap.on_failure == OnFailure::Pass,
        }
    }
}

/// Whether a method has this name, or begins with it if a `*` ends the pattern.
fn matches(pattern: &str, method: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == method, |beginning| method.starts_with(beginning))
}

/// The links of wrappers before a method. One that has the method itself is no wrapper of it.
pub(super) fn wrapping(wrappers: &[Wrapper], method: &str, signature: Option<&Arc<MethodSpec>>) -> Vec<Link> {
    let has = |wrapper: &Wrapper| wrapper.instance.as_ref().is_some_and(|own| position(own, method).is_some());
    let before = wrappers.iter().filter(|wrapper| wrapper.concerns(method) && !has(wrapper));
    before.map(|wrapper| wrapper.link(method, signature)).collect()
}

fn asks(instance: &Arc<Instance>) -> bool {
    instance.grants.iter().any(|grant| grant.service == RPC)
}

fn position(instance: &Instance, method: &str) -> Option<usize> {
    instance.manifest().methods.iter().position(|known| known.name == method)
}

/// An error, and the position of its plugin.
pub(super) type RouteError = (Option<usize>, RegistryError);

/// The wrappers of the configuration, running or not.
pub(super) fn wrappers(plugins: &[Plugin], configured: &Routes) -> Result<Vec<Wrapper>, RouteError> {
    let wrapper = |wrap: &Wrap| {
        let plugin = plugins.iter().find(|plugin| plugin.code.is_some() && plugin.id() == wrap.plugin);
        let manifest = plugin.and_then(|plugin| Some(&plugin.code.as_ref()?.manifest));
        check_wrap(wrap, manifest)?;
        let kind = manifest.and_then(|manifest| manifest.wrapper);
        let instance = plugin.and_then(|plugin| plugin.instance.clone());
        Ok(Wrapper { wrap: wrap.clone(), id: wrap.plugin.as_str().into(), instance, kind, latency: Arc::default() })
    };
    configured.wrap.iter().map(wrapper).collect()
}

/// Checks an entry of `wrap` against the manifest of its plugin.
pub(super) fn check_wrap(wrap: &Wrap, manifest: Option<&Manifest>) -> Result<(), RouteError> {
    let reason = match manifest {
        Some(manifest) if manifest.wrapper.is_some() => return Ok(()),
        Some(_) => "that plugin wraps no methods: its manifest does not say that it is a wrapper",
        None => "no such plugin is enabled",
    };
    Err((None, RegistryError::Route { method: WRAP.to_owned(), plugin: wrap.plugin.clone(), reason }))
}

/// The table of the running instances, each with its position. `known` are the ids of all plugins.
pub(super) fn routes(
    instances: &[(usize, Arc<Instance>)],
    known: &[String],
    configured: &Routes,
    wrappers: &[Wrapper],
    builtins: &[&str],
) -> Result<RouteTable, RouteError> {
    let manifests: Vec<_> = instances.iter().map(|(position, instance)| (*position, instance.manifest())).collect();
    let chain = |(name, owners): (String, Vec<usize>)| {
        let mut links: Vec<Link> = Vec::new();
        for owner in owners {
            let (_, instance) = instances.get(owner)?;
            let position = position(instance, &name)?;
            let method = Arc::new(instance.manifest().methods.get(position)?.clone());
            links.push(Link {
                id: instance.manifest().id.as_str().into(),
                asks: asks(instance),
                instance: Some(instance.clone()),
                signature: Some(method.clone()),
                method,
                position,
                latency: Arc::default(),
                may_fail: false,
            });
        }
        let method = links.last()?.method.clone();
        let links = wrapping(wrappers, &name, Some(&method)).into_iter().chain(links).collect();
        Some((name, Arc::new(Chain { method, links })))
    };
    Ok(owners(&manifests, known, configured, builtins)?.into_iter().filter_map(chain).collect())
}

/// The plugins of each method in the order of its route: its only claimant, or the configured plugins. If a configured plugin
/// does not run, the method has no route: falling back to another would silently change the method.
///
/// `manifests` are those of the running plugins with their positions, `known` the ids of all plugins.
pub(super) fn owners(
    manifests: &[(usize, &Manifest)],
    known: &[String],
    configured: &Routes,
    builtins: &[&str],
) -> Result<BTreeMap<String, Vec<usize>>, RouteError> {
    let mut owners: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, (position, manifest)) in manifests.iter().enumerate() {
        for method in &manifest.methods {
            let name = &method.name;
            if builtins.contains(&name.as_str()) {
                let (method, plugin) = (name.clone(), manifest.id.clone());
                return Err((Some(*position), RegistryError::Reserved { method, plugin }));
            }
            if configured.chains.contains_key(name) {
                continue;
            }
            if let Some((_, first)) =
                owners.insert(name.clone(), vec![index]).and_then(|first| manifests.get(*first.first()?))
            {
                let (method, first, second) = (name.clone(), first.id.clone(), manifest.id.clone());
                return Err((Some(*position), RegistryError::DuplicateMethod { method, first, second }));
            }
        }
    }
    for (method, plugins) in &configured.chains {
        let mut chain = Vec::new();
        for (at, plugin) in plugins.iter().enumerate() {
            let refused = |reason| {
                let (method, plugin) = (method.clone(), plugin.clone());
                Err((None, RegistryError::Route { method, plugin, reason }))
            };
            if builtins.contains(&method.as_str()) {
                return refused("that method is reserved for the host");
            }
            if at + configured.wrap.len() >= MAX_LINKS {
                return refused("its calls would go through more than 8 plugins");
            }
            if plugins.iter().take(at).any(|earlier| earlier == plugin) {
                return refused("a plugin can be in a route once");
            }
            let found = manifests.iter().position(|(_, manifest)| manifest.id == *plugin);
            let has = |at: &usize| {
                manifests
                    .get(*at)
                    .is_some_and(|(_, manifest)| manifest.methods.iter().any(|known| known.name == *method))
            };
            match found {
                Some(at) if has(&at) => chain.push(at),
                Some(_) => return refused("that plugin has no such method"),
                None if known.contains(plugin) => {}
                None => return refused("no such plugin is enabled"),
            }
        }
        if !chain.is_empty() && chain.len() == plugins.len() {
            owners.insert(method.clone(), chain);
        }
    }
    Ok(owners)
}
