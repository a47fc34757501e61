mod calls;
mod channel;
mod confine;
mod connects;
mod files;
mod landlocked;
mod memory;
mod namespaces;
mod notifier;
mod options;
mod probe;
mod raw;
mod rules;

pub use channel::Listener;
pub use confine::confine;
pub use notifier::{Notifier, Watch};
pub use probe::probe;
