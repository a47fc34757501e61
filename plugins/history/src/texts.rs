//! The descriptors that outputs were derived from: rows name them by number, replies show their texts.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_sdk::service::wallet::HistoryBatchView;
use outrigger_sdk::wire::ListView;

use crate::CallContext;
use crate::error::HistoryError;
use crate::json;

/// The texts that one call has asked for so far.
pub struct DescriptorTexts<'q> {
    context: &'q CallContext<'q>,
    /// As JSON, quotes included; none for a number that the wallet does not know.
    known: BTreeMap<u32, Option<Vec<u8>>>,
}

impl<'q> DescriptorTexts<'q> {
    /// None asked for yet.
    pub fn new(context: &'q CallContext<'q>) -> Self {
        Self { context, known: BTreeMap::new() }
    }

    /// Writes the key `parent_descs` with the texts of these descriptors. Of a batch that names others that are not known
    /// yet, all are asked for at once.
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        numbers: ListView<'_, u32>,
        batch: HistoryBatchView<'_>,
    ) -> Result<(), HistoryError> {
        if numbers.iter().any(|number| !self.known.contains_key(&number)) {
            self.learn(batch)?;
        }
        json::key!(out, "parent_descs");
        out.push(b'[');
        for text in numbers.iter().filter_map(|number| self.known.get(&number)?.as_ref()) {
            json::item(out);
            out.extend_from_slice(text);
        }
        out.push(b']');
        Ok(())
    }

    fn learn(&mut self, batch: HistoryBatchView<'_>) -> Result<(), HistoryError> {
        let mut unknown = BTreeSet::new();
        for row in batch.rows {
            let (transaction, _) = row.open()?;
            let named = transaction.outputs.iter().flat_map(|output| output.descriptors.iter());
            unknown.extend(named.filter(|number| !self.known.contains_key(number)));
        }
        let numbers: Vec<u32> = unknown.into_iter().collect();
        let texts = self.context.host.wallet.descriptor_texts(self.context.scope, numbers.clone())?;
        for (number, text) in numbers.into_iter().zip(texts) {
            let quoted = text.map(|text| {
                let mut quoted = Vec::with_capacity(text.len() + 2);
                json::text(&mut quoted, &text);
                quoted
            });
            self.known.insert(number, quoted);
        }
        Ok(())
    }
}
