//! Builds the text of a manifest from pieces: literal text, and constants that the compiler evaluates.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};

/// Pieces of JSON text.
#[derive(Default)]
pub struct Pieces {
    done: Vec<TokenStream>,
    text: String,
}

impl Pieces {
    /// Appends JSON text.
    pub fn json(&mut self, text: &str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    /// Appends a JSON string.
    pub fn string(&mut self, text: &str) -> &mut Self {
        let text = string(text);
        self.json(&text)
    }

    /// Appends a member whose value is a string, after a comma.
    pub fn member(&mut self, name: &str, text: &str) -> &mut Self {
        self.json(",\"").json(name).json("\":").string(text)
    }

    /// Appends a constant of type `&str`.
    pub fn constant(&mut self, constant: impl ToTokens) -> &mut Self {
        self.end_text();
        self.done.push(constant.to_token_stream());
        self
    }

    fn end_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.done.push(quote!(#text));
        }
    }

    /// An array of constants of type `&str`.
    pub fn finish(mut self) -> TokenStream {
        self.end_text();
        let pieces = self.done;
        quote!([#(#pieces),*])
    }
}

/// The text as a JSON string.
pub fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
