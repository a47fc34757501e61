//! The library of the group webhooks, which the host loads.

// The plugin holds signing secrets and payment histories.
outrigger_sdk::wipe_freed_memory!();

outrigger_sdk::export_plugin!(outrigger_webhooks::WebhooksPlugin);
