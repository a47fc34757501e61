//! The parent descriptors of outputs. Rows contain the numbers of descriptors, and replies contain their texts.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_sdk::service::ServiceError;
use outrigger_sdk::service::wallet::HistoryBatchView;
use outrigger_sdk::wire::ListView;

use crate::json;
use outrigger_sdk::Call;

/// The texts that one call has fetched.
pub struct DescriptorTexts<'q> {
    call: &'q Call<'q>,
    /// As JSON with its quotes; `None` if the wallet does not know the number.
    known: BTreeMap<u32, Option<Vec<u8>>>,
}

impl<'q> DescriptorTexts<'q> {
    pub fn new(call: &'q Call<'q>) -> Self {
        Self { call, known: BTreeMap::new() }
    }

    /// Writes the key `parent_descs` with the texts of these descriptors. One request fetches all missing texts of the batch.
    pub fn write(
        &mut self,
        out: &mut Vec<u8>,
        numbers: ListView<'_, u32>,
        batch: HistoryBatchView<'_>,
    ) -> Result<(), ServiceError> {
        if numbers.iter().any(|number| !self.known.contains_key(&number)) {
            self.fetch(batch)?;
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

    fn fetch(&mut self, batch: HistoryBatchView<'_>) -> Result<(), ServiceError> {
        let mut missing = BTreeSet::new();
        for row in batch.rows {
            let (transaction, _) = row.open()?;
            let parents = transaction.outputs.iter().flat_map(|output| output.descriptors.iter());
            missing.extend(parents.filter(|number| !self.known.contains_key(number)));
        }
        let numbers: Vec<u32> = missing.into_iter().collect();
        let texts = self.call.host.wallet.descriptor_texts(self.call.scope, numbers.clone())?;
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
