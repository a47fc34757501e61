//! The header compiles and does what it says; messages grow as they may.

mod compiled;
mod growth;
