//! `#[methods]`: generates the manifest entries, dispatch and argument parsing for the methods of an `impl` block.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, ImplItem, ImplItemFn, ItemImpl, Lit, LitBool, LitStr, Pat,
    PathArguments, Result, ReturnType, Type,
};

use crate::docs::{Docs, Param};
use crate::pieces::Pieces;

/// The flags of a method.
const FLAGS: [&str; 5] = ["inline", "long_running", "private_keys", "wallet_only", "needs_tip"];

/// The types that `kind` may give an argument whose Rust type is not enough, and the types of members.
const KINDS: [&str; 11] =
    ["amount", "amounts", "any", "array", "boolean", "hex", "numeric", "object", "outputs", "string", "verbosity"];

/// The settings of a method's attribute, with the block's attribute as defaults.
#[derive(Clone, Default)]
struct Attributes {
    name: Option<String>,
    category: Option<String>,
    /// Whether the host does not check the types of arguments.
    unchecked: bool,
    flags: Vec<(&'static str, bool)>,
}

impl Attributes {
    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let text = || meta.value()?.parse::<LitStr>().map(|text| text.value());
        if meta.path.is_ident("name") {
            self.name = Some(text()?);
        } else if meta.path.is_ident("category") {
            self.category = Some(text()?);
        } else if meta.path.is_ident("unchecked") {
            self.unchecked = true;
        } else if let Some(flag) = FLAGS.iter().find(|flag| meta.path.is_ident(flag)) {
            let value = if meta.input.peek(syn::Token![=]) { meta.value()?.parse::<LitBool>()?.value } else { true };
            self.flags.retain(|(known, _)| known != flag);
            self.flags.push((flag, value));
        } else {
            return Err(meta.error(
                "expected name, category, unchecked, inline, long_running, private_keys, wallet_only or needs_tip",
            ));
        }
        Ok(())
    }
}

/// The settings of an argument's attribute `#[arg(...)]`.
#[derive(Default)]
struct ArgAttributes {
    kind: Option<String>,
    aliases: Vec<String>,
    default: Option<Expr>,
}

/// An argument of a method.
struct Argument {
    name: String,
    ty: Type,
    attributes: ArgAttributes,
}

/// A parameter of the function.
enum Given {
    Call,
    Reply,
    Argument(Box<Argument>),
}

struct Method {
    ident: syn::Ident,
    name: String,
    attributes: Attributes,
    docs: Docs,
    has_self: bool,
    given: Vec<Given>,
}

pub fn expand(attributes: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut common = Attributes::default();
    syn::meta::parser(|meta| common.read(&meta)).parse2(attributes)?;
    let mut block: ItemImpl = syn::parse2(item)?;
    let mut methods = Vec::new();
    for item in &mut block.items {
        if let ImplItem::Fn(function) = item
            && let Some(at) = function.attrs.iter().position(|attribute| attribute.path().is_ident("method"))
        {
            let attribute = function.attrs.remove(at);
            methods.push(Method::read(&attribute, common.clone(), function)?);
        }
    }
    if methods.is_empty() {
        return Err(Error::new_spanned(&block.self_ty, "no function of this block has the attribute #[method]"));
    }
    let plugin = &block.self_ty;
    let mut pieces = Pieces::default();
    for (position, method) in methods.iter().enumerate() {
        pieces.json(if position == 0 { "" } else { "," });
        method.describe(&mut pieces)?;
    }
    let pieces = pieces.finish();
    let arms = methods.iter().map(|method| method.arm(plugin));
    Ok(quote! {
        #block

        /// The methods of this module.
        pub(crate) const METHODS: ::outrigger_sdk::methods::Methods<#plugin> = ::outrigger_sdk::methods::Methods {
            manifest: &#pieces,
            answer: |plugin, call, reply| {
                match call.method {
                    #(#arms)*
                    _ => return ::core::option::Option::Some(reply),
                }
                ::core::option::Option::None
            },
        };
    })
}

impl Method {
    fn read(attribute: &Attribute, mut attributes: Attributes, function: &mut ImplItemFn) -> Result<Self> {
        if !matches!(attribute.meta, syn::Meta::Path(_)) {
            attribute.parse_nested_meta(|meta| attributes.read(&meta))?;
        }
        let ident = function.sig.ident.clone();
        let name = attributes.name.clone().unwrap_or_else(|| ident.unraw().to_string());
        let mut docs = Docs::read(&function.attrs)?;
        if docs.result.is_empty() && returns_nothing(&function.sig.output) {
            docs.result = "null    (json null)".to_owned();
        }
        let (mut has_self, mut given) = (false, Vec::new());
        for input in &mut function.sig.inputs {
            match input {
                FnArg::Receiver(_) => has_self = true,
                FnArg::Typed(typed) => {
                    let attributes = take_arg_attributes(&mut typed.attrs)?;
                    given.push(match last_segment(&typed.ty).as_deref() {
                        Some("Call") => Given::Call,
                        Some("Reply") => Given::Reply,
                        _ => {
                            let Pat::Ident(pattern) = &*typed.pat else {
                                return Err(Error::new_spanned(&typed.pat, "an argument of a method needs a name"));
                            };
                            let name = pattern.ident.unraw().to_string().trim_start_matches('_').to_owned();
                            Given::Argument(Box::new(Argument { name, ty: (*typed.ty).clone(), attributes }))
                        }
                    });
                }
            }
        }
        // The comments are help texts, in which brackets are neither links nor tags.
        function.attrs.push(syn::parse_quote!(#[allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags)]));
        let method = Self { ident, name, attributes, docs, has_self, given };
        method.check()?;
        Ok(method)
    }

    fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.given.iter().filter_map(|given| match given {
            Given::Argument(argument) => Some(&**argument),
            _ => None,
        })
    }

    /// Checks that the documentation lists exactly the arguments, in order.
    fn check(&self) -> Result<()> {
        let error = |message: String| Err(Error::new(self.ident.span(), message));
        if self.docs.help.is_empty() {
            return error(format!("the method '{}' has no documentation comment, which is its help", self.name));
        }
        if self.attributes.category.is_none() {
            return error(format!("the method '{}' has no category", self.name));
        }
        for param in &self.docs.params {
            if !param.kind.is_empty() {
                return error(format!(
                    "`{}` is an argument, and its type is its Rust type: only members have a type in brackets",
                    param.name
                ));
            }
            if let Some(member) = param.members.iter().find(|member| !KINDS.contains(&member.kind.as_str())) {
                let (name, kinds) = (&member.name, KINDS.join(", "));
                return error(format!("the member `{name}` has no type: * `{name}` (TYPE) - ..., with one of {kinds}"));
            }
        }
        let mut listed = self.docs.params.iter().map(|param| &param.name);
        for argument in self.arguments() {
            match listed.next() {
                Some(name) if *name == argument.name => {}
                Some(name) => {
                    return error(format!("the documentation describes `{name}` where `{}` stands", argument.name));
                }
                None => return error(format!("the documentation has no line for `{0}`: * `{0}` - ...", argument.name)),
            }
        }
        match listed.next() {
            Some(name) => error(format!("the documentation describes `{name}`, which is no argument")),
            None => Ok(()),
        }
    }

    /// Appends the method's object in the manifest.
    fn describe(&self, pieces: &mut Pieces) -> Result<()> {
        pieces.json("{\"name\":").string(&self.name);
        pieces.member("category", self.attributes.category.as_deref().unwrap_or_default());
        pieces.member("help", &self.docs.help);
        if !self.attributes.unchecked {
            pieces.json(",\"check_types\":true");
        }
        for (flag, value) in &self.attributes.flags {
            pieces.json(&format!(",\"{flag}\":{value}"));
        }
        pieces.json(",\"params\":[");
        for (position, (argument, param)) in self.arguments().zip(&self.docs.params).enumerate() {
            pieces.json(if position == 0 { "" } else { "," });
            argument.describe(param, pieces)?;
        }
        pieces.json("]").member("result", &self.docs.result);
        pieces.member("example", self.docs.example.trim_matches('`')).json("}");
        Ok(())
    }

    /// The match arm that answers a call of the method.
    fn arm(&self, plugin: &Type) -> TokenStream {
        let (ident, name) = (&self.ident, &self.name);
        let reads: Vec<TokenStream> =
            self.arguments().enumerate().map(|(position, argument)| argument.read(position)).collect();
        let count = reads.len();
        let values: Vec<_> = (0..count).map(|position| format_ident!("value{position}")).collect();
        let (mut inputs, mut next, mut deferred) = (Vec::new(), values.iter(), false);
        if self.has_self {
            inputs.push(quote!(plugin));
        }
        for given in &self.given {
            match given {
                Given::Call => inputs.push(quote!(&*call)),
                Given::Reply => {
                    deferred = true;
                    inputs.push(quote!(reply));
                }
                Given::Argument(_) => inputs.extend(next.next().map(|value| quote!(#value))),
            }
        }
        let params = (count > 0).then(|| {
            quote! {
                let mut params = ::core::mem::take(&mut call.params);
                let [#(#values),*] = params.first::<#count>();
            }
        });
        let answer = quote!(<#plugin>::#ident(#(#inputs),*));
        let answer = if deferred {
            quote!(#answer;)
        } else {
            quote!(::outrigger_sdk::methods::Answer::send(#answer.map_err(::outrigger_sdk::RpcError::from), reply);)
        };
        quote! {
            #name => {
                #params
                #(#reads)*
                #answer
            }
        }
    }
}

impl Argument {
    fn describe(&self, param: &Param, pieces: &mut Pieces) -> Result<()> {
        let ty = &self.ty;
        let argument = quote!(<#ty as ::outrigger_sdk::methods::Argument<'_>>);
        pieces.json("{\"name\":").string(&self.name).json(",\"type\":\"");
        match &self.attributes.kind {
            Some(kind) => pieces.json(kind),
            None => pieces.constant(quote!(#argument::TYPE)),
        };
        pieces.json("\"");
        if self.attributes.default.is_none() {
            pieces.json(",\"required\":").constant(quote!(::outrigger_sdk::methods::json_bool(#argument::REQUIRED)));
        }
        let default = match &self.attributes.default {
            Some(_) if !param.default.is_empty() => {
                return Err(Error::new_spanned(ty, "both the documentation and the attribute have a default"));
            }
            Some(default) => written(default),
            None => param.default.clone(),
        };
        if !default.is_empty() {
            pieces.member("default", &default);
        }
        pieces.member("help", &param.help);
        if !self.attributes.aliases.is_empty() {
            pieces.json(",\"aliases\":[");
            for (position, name) in self.attributes.aliases.iter().enumerate() {
                pieces.json(if position == 0 { "" } else { "," }).string(name);
            }
            pieces.json("]");
        }
        if !param.members.is_empty() {
            pieces.json(",\"members\":[");
            for (position, member) in param.members.iter().enumerate() {
                pieces.json(if position == 0 { "{\"name\":" } else { ",{\"name\":" }).string(&member.name);
                pieces.member("type", &member.kind);
                if !member.default.is_empty() {
                    pieces.member("default", &member.default);
                }
                pieces.member("help", &member.help).json("}");
            }
            pieces.json("]");
        }
        pieces.json("}");
        Ok(())
    }

    /// The code that reads the argument from the value at its position.
    fn read(&self, position: usize) -> TokenStream {
        let (ty, name) = (&self.ty, &self.name);
        let value = format_ident!("value{position}");
        let (ty, given) = match &self.attributes.default {
            None => (quote!(#ty), quote!(::core::result::Result::Ok(given) => given,)),
            Some(default) => {
                // A text is the default of a `String`, too.
                let into = matches!(default, Expr::Lit(ExprLit { lit: Lit::Str(_), .. })).then(|| quote!(.into()));
                (
                    quote!(::core::option::Option<#ty>),
                    quote! {
                        ::core::result::Result::Ok(::core::option::Option::Some(given)) => given,
                        ::core::result::Result::Ok(::core::option::Option::None) => #default #into,
                    },
                )
            }
        };
        quote! {
            let #value = match <#ty as ::outrigger_sdk::methods::Argument<'_>>::read(#value, #name) {
                #given
                ::core::result::Result::Err(error) => {
                    reply.fail(error);
                    return ::core::option::Option::None;
                }
            };
        }
    }
}

/// A default as the help shows it: JSON.
fn written(default: &Expr) -> String {
    match default {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => format!("{:?}", text.value()),
        other => quote!(#other).to_string().replace(' ', ""),
    }
}

/// Removes the attributes `#[arg(...)]`, which the compiler does not know, and parses them.
fn take_arg_attributes(attributes: &mut Vec<Attribute>) -> Result<ArgAttributes> {
    let mut found = ArgAttributes::default();
    for attribute in attributes.extract_if(.., |attribute| attribute.path().is_ident("arg")) {
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("kind") {
                let kind = meta.value()?.parse::<LitStr>()?;
                if !KINDS.contains(&kind.value().as_str()) {
                    return Err(Error::new(kind.span(), format!("expected one of {}", KINDS.join(", "))));
                }
                found.kind = Some(kind.value());
            } else if meta.path.is_ident("alias") {
                found.aliases.push(meta.value()?.parse::<LitStr>()?.value());
            } else if meta.path.is_ident("default") {
                found.default = Some(meta.value()?.parse()?);
            } else {
                return Err(meta.error("expected kind, alias or default"));
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// Whether a function returns `Result<(), E>`.
fn returns_nothing(output: &ReturnType) -> bool {
    let ReturnType::Type(_, ty) = output else { return false };
    let Type::Path(path) = &**ty else { return false };
    let arguments = path.path.segments.last().map(|segment| &segment.arguments);
    let Some(PathArguments::AngleBracketed(arguments)) = arguments else { return false };
    matches!(arguments.args.first(), Some(GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty())
}

/// The last segment of a type's path, without references.
fn last_segment(ty: &Type) -> Option<String> {
    match ty {
        Type::Reference(reference) => last_segment(&reference.elem),
        Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}
