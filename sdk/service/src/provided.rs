//! Services that plugins implement and the host calls: `keys-provider/1`, `policy/1`.
//!
//! The host calls a function as the plugin's method `SERVICE.FUNCTION`, which no client can call. The only argument (by position)
//! and the result are messages: JSON ([`crate::json`]), or hexadecimal bytes for a plugin of this SDK (`binary_messages` in its manifest).

/// Declares such a service: the trait that a plugin implements, the service's description, and the function that answers the host's
/// calls.
macro_rules! provided {
    (@item $(#[doc = $fn_doc:literal])* fn $function:ident($arg:ident: $arg_type:ty) -> $ret:ty) => {
        $(#[doc = $fn_doc])*
        ///
        /// # Errors
        /// The host refuses the client's call with -4 and the error's message.
        fn $function(&self, scope: $crate::Scope, $arg: &$arg_type) -> Result<$ret, outrigger_values::RpcError>;
    };
    (@item $(#[doc = $fn_doc:literal])* fn $function:ident($arg:ident: $arg_type:ty) -> $ret:ty = $default:expr) => {
        $(#[doc = $fn_doc])*
        ///
        /// # Errors
        /// The host refuses the client's call with -4 and the error's message.
        fn $function(&self, scope: $crate::Scope, $arg: &$arg_type) -> Result<$ret, outrigger_values::RpcError> {
            let _ = (scope, $arg);
            Ok($default)
        }
    };
    ($(#[doc = $doc:literal])* pub trait $name:ident = $wire_name:ident {
        $($(#[doc = $fn_doc:literal])* fn $function:ident($arg:ident: $arg_type:ty) -> $ret:ty $(= $default:expr)?;)*
    }) => {
        $(#[doc = $doc])*
        ///
        /// The scope is that of the host's call.
        pub trait $name {
            $($crate::provided::provided! {
                @item $(#[doc = $fn_doc])* fn $function($arg: $arg_type) -> $ret $(= $default)?
            })*
        }

        /// The service's functions.
        pub const SHAPE: $crate::wire::ServiceShape = $crate::wire::ServiceShape {
            name: $wire_name,
            docs: &[
                $($doc,)*
                "",
                " The host calls the plugin's method `SERVICE.FUNCTION`. The message is the only parameter, by position.",
            ],
            functions: &[$($crate::wire::FunctionShape {
                name: stringify!($function),
                docs: &[$($fn_doc),*],
                since: 0,
                request: &[$crate::wire::FieldShape::of::<$arg_type>("message", &[], 0)],
                response: <$ret as $crate::wire::Wire>::SHAPE,
            }),*],
        };

        /// Answers a call of the host. `message` encodes the function's only argument. Returns the encoded result.
        ///
        /// # Errors
        /// For an unknown function or a malformed message, and the errors of the plugin.
        pub fn provide(
            plugin: &dyn $name,
            scope: $crate::Scope,
            function: &str,
            message: &[u8],
        ) -> Result<Vec<u8>, outrigger_values::RpcError> {
            use outrigger_values::RpcError;
            match function {
                $(stringify!($function) => {
                    let argument: $arg_type = $crate::wire::from_bytes(message)?;
                    Ok($crate::wire::to_bytes(&plugin.$function(scope, &argument)?))
                })*
                _ => Err(RpcError::no_method(function)),
            }
        }
    };
}
pub(crate) use provided;
