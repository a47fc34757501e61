//! `#[derive(PluginOptions)]`: the options in a plugin's configuration as a struct.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Expr, ExprLit, ExprUnary, Fields, Lit, Result, UnOp};

use crate::docs;
use crate::pieces::Pieces;

pub fn expand(item: TokenStream) -> Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "options are a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "options are a struct with named fields"));
    };
    let mut pieces = Pieces::default();
    let mut reads = Vec::new();
    for (position, field) in fields.named.iter().enumerate() {
        let (Some(ident), ty) = (&field.ident, &field.ty) else { continue };
        let name = ident.unraw().to_string();
        let help = docs::text(&field.attrs);
        if help.is_empty() {
            return Err(Error::new_spanned(field, "the option has no documentation comment, which is its help"));
        }
        let mut default = None;
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("option")) {
            attribute.parse_nested_meta(|meta| {
                if !meta.path.is_ident("default") {
                    return Err(meta.error("expected default"));
                }
                default = Some(meta.value()?.parse::<Expr>()?);
                Ok(())
            })?;
        }
        pieces.json(if position == 0 { "{\"name\":" } else { ",{\"name\":" }).string(&name);
        pieces.json(",\"type\":\"").constant(quote!(<#ty as ::outrigger_sdk::options::OptionValue>::TYPE)).json("\"");
        match default {
            Some(default) => pieces.json(",\"default\":").json(&json(&default)?),
            None => pieces.constant(quote!(<#ty as ::outrigger_sdk::options::OptionValue>::DEFAULT)),
        };
        pieces.member("help", &help).json("}");
        reads.push(quote!(#ident: ::outrigger_sdk::options::read(&mut given, #name)?));
    }
    let (ident, pieces) = (&input.ident, pieces.finish());
    Ok(quote! {
        impl ::outrigger_sdk::options::PluginOptions for #ident {
            const MANIFEST: &'static str = {
                const PARTS: &[&[&str]] = &[&#pieces];
                const TEXT: [u8; ::outrigger_sdk::methods::length(PARTS)] = ::outrigger_sdk::methods::join(PARTS);
                ::outrigger_sdk::methods::text(&TEXT)
            };

            fn read(
                mut given: ::outrigger_sdk::serde_json::Map<::std::string::String, ::outrigger_sdk::serde_json::Value>,
            ) -> ::core::result::Result<Self, ::std::string::String> {
                ::core::result::Result::Ok(Self { #(#reads),* })
            }
        }
    })
}

/// Converts a default to JSON. It must be a literal, a negative number, a list of these, or `{}`.
fn json(default: &Expr) -> Result<String> {
    match default {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Ok(crate::pieces::string(&text.value())),
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => Ok(value.value.to_string()),
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => Ok(number.base10_digits().to_owned()),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => Ok(number.base10_digits().to_owned()),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => Ok(format!("-{}", json(expr)?)),
        Expr::Array(array) => {
            let items = array.elems.iter().map(json).collect::<Result<Vec<_>>>()?;
            Ok(format!("[{}]", items.join(",")))
        }
        Expr::Block(block) if block.block.stmts.is_empty() => Ok("{}".to_owned()),
        other => {
            let reason = "the default must be a text, a number, true, false, a list of these or {}";
            Err(Error::new_spanned(other, reason))
        }
    }
}
