//! `#[plugin]`: generates the manifest of a plugin and the dispatch to its methods.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, ImplItem, ItemImpl, LitStr, Path, Result, Token, bracketed};

use crate::pieces::{Pieces, string};

/// The members of the manifest that are texts.
const TEXTS: [&str; 2] = ["id", "summary"];
const WRAPPERS: [&str; 3] = ["pooled", "inline", "observe"];
const REQUIREMENTS: [&str; 6] = ["embedded", "network", "release", "txindex", "blockfilterindex", "spent_outputs"];
const LISTS: [&str; 6] = ["services", "optional", "events", "reach", "calls", "provides"];
/// The services that a plugin can provide, each with the function of `outrigger_sdk::methods` that answers the host's calls.
const PROVIDED: [(&str, &str); 2] = [("keys-provider/1", "provide_keys"), ("policy/1", "provide_policy")];
const FLAGS: [&str; 3] = ["restartable", "critical", "folder"];

pub fn expand(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut block: ItemImpl = syn::parse2(item)?;
    let mut head = Pieces::default();
    let mut version = quote!(::core::env!("CARGO_PKG_VERSION"));
    let mut modules: Option<Vec<Path>> = None;
    let (mut given, mut requires, mut provided, mut timers) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let read = syn::meta::parser(|meta| {
        let name = name_of(&meta);
        if given.contains(&name) {
            return Err(meta.error("given twice"));
        }
        if name == "version" {
            let given = meta.value()?.parse::<LitStr>()?;
            version = quote!(#given);
        } else if name == "wrapper" {
            let kind = meta.value()?.parse::<LitStr>()?;
            if !WRAPPERS.contains(&kind.value().as_str()) {
                return Err(Error::new(kind.span(), format!("expected one of {}", WRAPPERS.join(", "))));
            }
            let is_wrap = |item: &ImplItem| matches!(item, ImplItem::Fn(function) if function.sig.ident == "wrap");
            if kind.value() != "observe" && !block.items.iter().any(is_wrap) {
                return Err(Error::new(kind.span(), "a wrapper implements `Plugin::wrap`"));
            }
            head.member(&name, &kind.value());
        } else if TEXTS.contains(&name.as_str()) {
            head.member(&name, &meta.value()?.parse::<LitStr>()?.value());
        } else if LISTS.contains(&name.as_str()) {
            let value = meta.value()?;
            let list;
            bracketed!(list in value);
            let items: Vec<String> = list.parse_terminated(list_item, Token![,])?.into_iter().collect();
            if name == "provides" {
                let known = |item: &String| PROVIDED.iter().find(|(service, _)| string(service) == *item);
                let unknown =
                    || meta.error(format!("expected one of {}", PROVIDED.map(|(service, _)| service).join(", ")));
                for item in &items {
                    provided.push(format_ident!("{}", known(item).ok_or_else(unknown)?.1));
                }
            }
            head.json(&format!(",\"{name}\":[{}]", items.join(",")));
        } else if FLAGS.contains(&name.as_str()) {
            head.json(&format!(",\"{name}\":true"));
        } else if name == "methods" {
            let value = meta.value()?;
            let list;
            bracketed!(list in value);
            let paths = Punctuated::<Path, Token![,]>::parse_terminated_with(&list, Path::parse_mod_style)?;
            modules = Some(paths.into_iter().collect());
        } else if name == "requires" {
            meta.parse_nested_meta(|meta| {
                requires.push(requirement(&meta)?);
                Ok(())
            })?;
        } else if name == "timers" {
            meta.parse_nested_meta(|meta| {
                timers.push(timer(&meta)?);
                Ok(())
            })?;
        } else {
            return Err(meta.error(
                "expected id, summary, version, services, optional, provides, events, timers, reach, calls, requires, restartable, critical, folder, wrapper or methods",
            ));
        }
        given.push(name);
        Ok(())
    });
    read.parse2(attributes)?;
    for needed in TEXTS {
        if !given.iter().any(|name| name == needed) {
            return Err(Error::new_spanned(&block.self_ty, format!("the plugin has no {needed}")));
        }
    }
    if !provided.is_empty() {
        head.json(",\"binary_messages\":true");
    }
    if !timers.is_empty() {
        head.json(&format!(",\"timers\":[{}]", timers.join(",")));
    }
    if !requires.is_empty() {
        head.json(&format!(",\"requires\":{{{}}}", requires.join(",")));
    }
    complete(&mut block, &version, head, modules, &provided);
    Ok(quote!(#block))
}

fn name_of(meta: &ParseNestedMeta<'_>) -> String {
    meta.path.get_ident().map(ToString::to_string).unwrap_or_default()
}

/// A member of the manifest's `requires`: `txindex`, `network = "main"`, `release = 28`.
fn requirement(meta: &ParseNestedMeta<'_>) -> Result<String> {
    let name = name_of(meta);
    if !REQUIREMENTS.contains(&name.as_str()) {
        return Err(meta.error(format!("expected one of {}", REQUIREMENTS.join(", "))));
    }
    let value = if meta.input.peek(Token![=]) { meta.value()?.parse::<syn::Lit>()? } else { syn::parse_quote!(true) };
    Ok(match value {
        syn::Lit::Str(text) => format!("\"{name}\":{}", string(&text.value())),
        syn::Lit::Int(number) => format!("\"{name}\":{}", number.base10_digits()),
        other => format!("\"{name}\":{}", quote!(#other)),
    })
}

/// An entry of the manifest's `timers`: `flush = 60`, `report = "03:30"`.
fn timer(meta: &ParseNestedMeta<'_>) -> Result<String> {
    let time = match meta.value()?.parse::<syn::Lit>()? {
        syn::Lit::Int(seconds) => format!("\"every\":{}", seconds.base10_digits()),
        syn::Lit::Str(time) => format!("\"at\":{}", string(&time.value())),
        other => return Err(Error::new(other.span(), "expected seconds, or a time such as \"03:30\"")),
    };
    Ok(format!("{{\"name\":{},{time}}}", string(&name_of(meta))))
}

/// Converts a list item to JSON: a text, or `"to" = "help"` for an entry of `reach` with its reason.
fn list_item(input: ParseStream<'_>) -> Result<String> {
    let to = string(&input.parse::<LitStr>()?.value());
    if !input.peek(Token![=]) {
        return Ok(to);
    }
    input.parse::<Token![=]>()?;
    let help = string(&input.parse::<LitStr>()?.value());
    Ok(format!("{{\"to\":{to},\"help\":{help}}}"))
}

/// Adds `MANIFEST`, `call` and, if it is missing, `Options` to the implementation of `Plugin`.
fn complete(
    block: &mut ItemImpl,
    version: &TokenStream,
    mut head: Pieces,
    modules: Option<Vec<Path>>,
    provided: &[Ident],
) {
    let plugin = block.self_ty.clone();
    let tables: Vec<TokenStream> = match modules {
        None => vec![quote!(METHODS)],
        Some(modules) => modules.iter().map(|module| quote!(#module::METHODS)).collect(),
    };
    if !block.items.iter().any(|item| matches!(item, ImplItem::Type(ty) if ty.ident == "Options")) {
        block.items.push(syn::parse_quote!(
            type Options = ::outrigger_sdk::options::NoOptions;
        ));
    }
    head.json(",\"options\":[").constant(
        quote!(<<#plugin as ::outrigger_sdk::Plugin>::Options as ::outrigger_sdk::options::PluginOptions>::MANIFEST),
    );
    head.json("],\"methods\":[");
    let (head, mut lists) = (head.finish(), Vec::new());
    for (position, table) in tables.iter().enumerate() {
        lists.extend((position > 0).then(|| quote!(&[","])));
        lists.push(quote!(#table.manifest));
    }
    let joined = quote!(&[&["{\"version\":\"", #version, "\""], &#head, #(#lists,)* &["]}"]]);
    block.items.push(syn::parse_quote! {
        #[allow(long_running_const_eval, reason = "joining a long manifest takes many steps")]
        const MANIFEST: &'static str = {
            const PARTS: &[&[&str]] = #joined;
            const TEXT: [u8; ::outrigger_sdk::methods::length(PARTS)] = ::outrigger_sdk::methods::join(PARTS);
            ::outrigger_sdk::methods::text(&TEXT)
        };
    });
    block.items.push(syn::parse_quote! {
        fn call(&self, mut call: ::outrigger_sdk::Call<'_>, reply: ::outrigger_sdk::Reply) {
            #(let ::core::option::Option::Some(reply) = ::outrigger_sdk::methods::#provided(self, &call, reply) else { return };)*
            #(let ::core::option::Option::Some(reply) = (#tables.answer)(self, &mut call, reply) else { return };)*
            <Self as ::outrigger_sdk::Plugin>::wrap(self, call, reply);
        }
    });
}
