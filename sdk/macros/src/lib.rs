//! The attributes by which a plugin declares its methods, its manifest and its options.
//!
//! `outrigger-sdk` exports them and documents them with examples. The manifest that they make is a constant: the host reads it from
//! the library's bytes, without running code.

mod docs;
mod methods;
mod options;
mod pieces;
mod plugin;

use proc_macro::TokenStream;

/// Declares the methods of an `impl` block; `outrigger_sdk::methods` describes it.
#[proc_macro_attribute]
pub fn methods(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand(methods::expand(attributes.into(), item.into()))
}

/// Declares a plugin at its `impl Plugin`; `outrigger_sdk::methods` describes it.
#[proc_macro_attribute]
pub fn plugin(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand(plugin::expand(attributes.into(), item.into()))
}

/// Declares the options of a plugin as a struct; `outrigger_sdk::options` describes it.
#[proc_macro_derive(PluginOptions, attributes(option))]
pub fn options(item: TokenStream) -> TokenStream {
    expand(options::expand(item.into()))
}

fn expand(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
