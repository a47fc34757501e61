//! The header compiles and works.

mod compiled;
