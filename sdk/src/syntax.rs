//! Descriptors as a release of Bitcoin Core writes them.

use outrigger_descriptor::Syntax;

use crate::standard::release::Rules;

/// The rules of a release for the text of descriptors.
pub fn descriptor_syntax(rules: &Rules) -> Syntax {
    Syntax { musig: rules.musig, unused: rules.unused, strict: rules.strict_descriptors }
}
