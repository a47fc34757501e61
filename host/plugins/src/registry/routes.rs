//! The chain of each method: the plugins that its calls go through, one after the other.
//!
//! First come the wrappers that the configuration puts before the method, then the plugins of its route. The last plugin of the
//! route names the method's parameters and its help. After the last link, the host or the node answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_base::nearest::suggestion;
use outrigger_base::rate::Rate;

use super::RegistryError;
use crate::grants::RPC;
use crate::instance::Instance;
use crate::latency::Latency;
use crate::settings::{MAX_LINKS, OnFailure, Routes, WRAP, Wrap};
use outrigger_sdk::manifest::{Manifest, MethodSpec, WrapperKind};
use outrigger_service::policy::POLICY;

/// A plugin that a call goes through.
#[derive(Clone)]
pub struct Link {
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// `None` if the plugin does not run.
    pub instance: Option<Arc<Instance>>,
    /// The method; in a wrapper's link, without parameters and help.
    pub method: Arc<MethodSpec>,
    /// The method whose parameters put named arguments in order; `None` if the host does not know them.
    pub signature: Option<Arc<MethodSpec>>,
    /// The method's position in the plugin's manifest; `usize::MAX` if the manifest does not list it, as for a wrapper.
    pub position: usize,
    /// The method's recent latency, if it is inline.
    pub latency: Arc<Latency>,
    /// Whether the plugin has the grant `rpc/1`: it may ask the next link and call methods.
    pub asks: bool,
    /// Set if a call goes to the next link where this plugin has crashed, is late or does not run: limits the log's lines about it.
    pub may_fail: Option<Arc<Rate>>,
}

impl Link {
    /// A link without a position in the manifest and without the method's parameters.
    fn of(id: Arc<str>, name: &str, method: Arc<MethodSpec>, instance: Option<Arc<Instance>>) -> Self {
        let asks = instance.as_ref().is_some_and(asks);
        let (signature, position, latency) = (None, usize::MAX, Arc::default());
        Self { id, name: name.into(), instance, method, signature, position, latency, asks, may_fail: None }
    }

    /// Whether the plugin has a method of this name.
    fn has(&self, name: &str) -> bool {
        let methods = self.instance.iter().flat_map(|instance| &instance.manifest().methods);
        methods.into_iter().any(|method| method.name == name)
    }

    /// Whether the plugin's manifest lists the method: false at a wrapper.
    pub fn is_listed(&self) -> bool {
        self.position != usize::MAX
    }

    pub fn is_of(&self, instance: &Arc<Instance>) -> bool {
        self.instance.as_ref().is_some_and(|own| Arc::ptr_eq(own, instance))
    }
}

pub struct Chain {
    /// As the last plugin of the configured route describes it.
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
    may_fail: Option<Arc<Rate>>,
}

impl Wrapper {
    /// Whether calls of a method go through it.
    pub fn concerns(&self, method: &str) -> bool {
        !self.observes() && self.lists(method)
    }

    /// The instance to tell of ended calls of a method, if this plugin observes them.
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

    fn link(&self, method: &str, signature: Option<&Arc<MethodSpec>>, long_running: bool) -> Link {
        let described = MethodSpec {
            name: method.to_owned(),
            inline: self.kind == Some(WrapperKind::Inline),
            // A wrapper that asks the next link waits as long as that link runs.
            long_running: long_running && self.instance.as_ref().is_some_and(asks),
            private_keys: signature.is_none_or(|method| method.private_keys),
            needs_tip: false,
            ..MethodSpec::default()
        };
        Link {
            signature: signature.cloned(),
            latency: self.latency.clone(),
            may_fail: self.may_fail.clone(),
            ..Link::of(self.id.clone(), method, Arc::new(described), self.instance.clone())
        }
    }
}

/// Whether a method has this name, or begins with it if a `*` ends the pattern.
fn matches(pattern: &str, method: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == method, |beginning| method.starts_with(beginning))
}

/// The links of the wrappers before a method. A wrapper in the route of the method gets no second link.
pub(super) fn wrapping(
    wrappers: &[Wrapper],
    method: &str,
    signature: Option<&Arc<MethodSpec>>,
    long_running: bool,
    route: &[Link],
) -> Vec<Link> {
    let in_route = |wrapper: &Wrapper| route.iter().any(|link| link.id == wrapper.id);
    let before = wrappers.iter().filter(|wrapper| wrapper.concerns(method) && !in_route(wrapper));
    before.map(|wrapper| wrapper.link(method, signature, long_running)).collect()
}

/// The link for the host's calls to a service that a plugin provides.
pub(super) fn providing(instance: &Arc<Instance>, method: &str) -> Link {
    let is_policy = method.strip_prefix(POLICY).is_some_and(|rest| rest.starts_with('.'));
    let described = MethodSpec {
        name: method.to_owned(),
        // A policy gets no keys.
        private_keys: !is_policy,
        needs_tip: false,
        ..MethodSpec::default()
    };
    Link::of(instance.manifest().id.as_str().into(), method, Arc::new(described), Some(instance.clone()))
}

fn asks(instance: &Arc<Instance>) -> bool {
    instance.grants.iter().any(|grant| grant.service == RPC)
}

/// An error, and the position of its plugin.
pub(super) type RouteError = (Option<usize>, RegistryError);

fn refused<T>(method: &str, plugin: &str, reason: impl Into<String>) -> Result<T, RouteError> {
    let (method, plugin) = (method.to_owned(), plugin.to_owned());
    Err((None, RegistryError::Route { method, plugin, reason: reason.into() }))
}

fn not_enabled(id: &str, plugins: &[Known<'_>]) -> String {
    let meant = suggestion(id, plugins.iter().map(|plugin| &*plugin.manifest.id));
    format!("no such plugin is enabled{meant}")
}

pub(super) struct Known<'a> {
    /// Its position in the configuration.
    pub position: usize,
    pub manifest: &'a Manifest,
    pub runs: bool,
    pub instance: Option<Arc<Instance>>,
}

/// The wrappers of the configuration, running or not.
fn wrappers(plugins: &[Known<'_>], configured: &Routes, is_strict: bool) -> Result<Vec<Wrapper>, RouteError> {
    let wrapper = |wrap: &Wrap| {
        let plugin = plugins.iter().find(|plugin| plugin.manifest.id == wrap.plugin);
        let kind = match plugin.map(|plugin| plugin.manifest.wrapper) {
            Some(None) => {
                return refused(WRAP, &wrap.plugin, "that plugin wraps no methods: its manifest has no `wrapper`");
            }
            None if is_strict => return refused(WRAP, &wrap.plugin, not_enabled(&wrap.plugin, plugins)),
            kind => kind.flatten(),
        };
        let instance = plugin.and_then(|plugin| plugin.instance.clone());
        let may_fail = (wrap.on_failure == OnFailure::Pass).then(|| Arc::new(Rate::per_second(1)));
        let (wrap, id, latency) = (wrap.clone(), wrap.plugin.as_str().into(), Arc::default());
        Ok(Wrapper { wrap, id, instance, kind, latency, may_fail })
    };
    configured.wrap.iter().map(wrapper).collect()
}

/// The route table of these plugins, and the wrappers. Without `is_strict`, plugins that were not started yet may be missing.
pub(super) fn routes(
    plugins: &[Known<'_>],
    configured: &Routes,
    builtins: &[&str],
    is_strict: bool,
) -> Result<(RouteTable, Vec<Wrapper>), RouteError> {
    let wrappers = wrappers(plugins, configured, is_strict)?;
    let mut table = RouteTable::new();
    for (name, owners) in owners(plugins, configured, builtins, is_strict)? {
        let after = replaced(plugins, &owners, &name).map(|other| link(Owner::Known(other), &name));
        let links: Vec<Link> = owners.into_iter().map(|owner| link(owner, &name)).collect();
        let described = links.iter().rev().find_map(|link| link.signature.clone());
        let method = described.unwrap_or_else(|| Arc::new(MethodSpec { name: name.clone(), ..MethodSpec::default() }));
        let before = wrapping(&wrappers, &name, Some(&method), method.long_running, &links);
        if let Some(wrapper) = before.iter().find(|link| link.has(&name)) {
            return refused(
                &name,
                &wrapper.id,
                "that plugin is put before the method and has it: it must be in the route",
            );
        }
        let links: Vec<Link> = before.into_iter().chain(links).chain(after).collect();
        if links.len() > MAX_LINKS {
            return refused(
                &name,
                links.last().map_or("", |link| &link.id),
                "its calls would go through more than 8 plugins",
            );
        }
        table.insert(name, Arc::new(Chain { method, links }));
    }
    Ok((table, wrappers))
}

/// The link of a plugin that has the method. A plugin that does not run refuses calls: a fallback to another plugin would silently
/// change the method.
fn link(owner: Owner<'_>, name: &str) -> Link {
    let (id, manifest, instance) = match owner {
        Owner::Known(known) => (known.manifest.id.as_str(), Some(known.manifest), known.instance.clone()),
        Owner::Missing(id) => (id, None, None),
    };
    let position = manifest.and_then(|manifest| manifest.methods.iter().position(|method| method.name == name));
    let signature = manifest.zip(position).and_then(|(manifest, at)| manifest.methods.get(at).cloned().map(Arc::new));
    let link = Link::of(id.into(), name, signature.clone().unwrap_or_default(), instance);
    Link { signature, position: position.unwrap_or(usize::MAX), ..link }
}

/// The plugin that a route of one plugin replaces. It runs, and no third plugin has the method. The replacing plugin passes calls on to it.
fn replaced<'a>(plugins: &'a [Known<'a>], route: &[Owner<'_>], name: &str) -> Option<&'a Known<'a>> {
    let &[Owner::Known(only)] = route else { return None };
    let has_method = |plugin: &&Known<'_>| plugin.manifest.methods.iter().any(|method| method.name == name);
    let mut others = plugins.iter().filter(|plugin| plugin.runs && plugin.position != only.position).filter(has_method);
    others.next().filter(|_| others.next().is_none())
}

/// A plugin of a route.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Known(&'a Known<'a>),
    /// It was not started yet, so its manifest is not known.
    Missing(&'a str),
}

/// The plugins of each method in the order of its route: the configured plugins, or else the running plugin that claims it.
fn owners<'a>(
    plugins: &'a [Known<'a>],
    configured: &'a Routes,
    builtins: &[&str],
    is_strict: bool,
) -> Result<BTreeMap<String, Vec<Owner<'a>>>, RouteError> {
    let mut claimed: BTreeMap<&str, &Known<'a>> = BTreeMap::new();
    for plugin in plugins.iter().filter(|plugin| plugin.runs) {
        let id = &plugin.manifest.id;
        for method in &plugin.manifest.methods {
            let name = &method.name;
            if builtins.contains(&name.as_str()) {
                let reason = format!("the method '{name}' is reserved for the host; '{id}' cannot have it");
                return Err((Some(plugin.position), RegistryError::Refused(reason)));
            }
            if configured.chains.contains_key(name) {
                continue;
            }
            if let Some(first) = claimed.insert(name, plugin) {
                let reason = format!(
                    "the method '{name}' is claimed by '{}' and by '{id}'; \
                     say which has it: [routes] {name} = \"...\"",
                    first.manifest.id
                );
                return Err((Some(plugin.position), RegistryError::Refused(reason)));
            }
        }
    }
    let mut owners: BTreeMap<String, Vec<Owner<'a>>> =
        claimed.into_iter().map(|(name, plugin)| (name.to_owned(), vec![Owner::Known(plugin)])).collect();
    for (method, ids) in &configured.chains {
        let mut route = Vec::new();
        for (at, id) in ids.iter().enumerate() {
            if builtins.contains(&method.as_str()) {
                return refused(method, id, "that method is reserved for the host");
            }
            if ids.iter().take(at).any(|earlier| earlier == id) {
                return refused(method, id, "a plugin can be in a route once");
            }
            route.push(match plugins.iter().find(|plugin| plugin.manifest.id == *id) {
                Some(plugin) if plugin.manifest.methods.iter().any(|known| known.name == *method) => {
                    Owner::Known(plugin)
                }
                Some(plugin) => {
                    let meant = suggestion(method, plugin.manifest.methods.iter().map(|known| &*known.name));
                    return refused(method, id, format!("that plugin has no such method{meant}"));
                }
                None if is_strict => return refused(method, id, not_enabled(id, plugins)),
                None => Owner::Missing(id),
            });
        }
        owners.insert(method.clone(), route);
    }
    Ok(owners)
}
