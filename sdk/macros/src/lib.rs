//! The attributes with which a plugin declares its methods, its manifest and its options.
//!
//! `outrigger-sdk` exports them and documents them with examples. They generate the manifest as a constant, so the host can read it
//! from the library's file without running code.

mod docs;
mod methods;
mod options;
mod pieces;
mod plugin;

use proc_macro::TokenStream;

/// Declares the methods of an `impl` block. See `outrigger_sdk::methods`.
#[proc_macro_attribute]
pub fn methods(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand(methods::expand(attributes.into(), item.into()))
}

/// Declares a plugin on its `impl Plugin`. See `outrigger_sdk::methods`.
#[proc_macro_attribute]
pub fn plugin(attributes: TokenStream, item: TokenStream) -> TokenStream {
    expand(plugin::expand(attributes.into(), item.into()))
}

/// Declares the options of a plugin as a struct. See `outrigger_sdk::options`.
#[proc_macro_derive(PluginOptions, attributes(option))]
pub fn options(item: TokenStream) -> TokenStream {
    expand(options::expand(item.into()))
}

fn expand(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
