//! The library of the group webhooks, which the host loads.

// Secrets and histories are private.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(outrigger_webhooks::WebhooksPlugin);
