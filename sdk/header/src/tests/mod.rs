//! The header compiles and works; messages grow compatibly.

mod compiled;
mod growth;
