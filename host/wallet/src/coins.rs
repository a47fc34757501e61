//! The table of coins. Every change updates the sums of the coins, too.

use bitcoin::{OutPoint, Script};

use super::error::Result;
use super::ownership::outputs_key;
use super::store::rows::{CoinRow, ScriptRow};
use super::store::tables::{get, outpoint_from, outpoint_key, script_key};
use super::write::Write;

impl Write<'_> {
    pub fn put_coin(&mut self, outpoint: &OutPoint, coin: &CoinRow) -> Result<()> {
        let key = outpoint_key(outpoint);
        let former: Option<CoinRow> = get(self.t.coins, self.reads(), &key)?;
        if former.as_ref() == Some(coin) {
            return Ok(());
        }
        if let Some(former) = former {
            self.sums.note(&outpoint.txid, &former, -1);
        }
        self.sums.note(&outpoint.txid, coin, 1);
        self.wallet.follow_coin(outpoint);
        self.store_row(self.t.coins, &key, coin)
    }

    pub fn delete_coin(&mut self, outpoint: &OutPoint) -> Result<()> {
        let key = outpoint_key(outpoint);
        if let Some(coin) = get(self.t.coins, self.reads(), &key)? {
            self.sums.note(&outpoint.txid, &coin, -1);
            self.delete(self.t.coins, &key)?;
        }
        Ok(())
    }

    /// Whether a transaction of the wallet has spent from a script. If one does `now`, marks the script and its coins as reused.
    pub fn mark_spent_from(&mut self, script: &Script, now: bool) -> Result<bool> {
        let key = script_key(script);
        let row: Option<ScriptRow> = get(self.t.scripts, self.reads(), &key)?;
        let row = match row {
            Some(row) if now && !row.spent_from => row,
            other => return Ok(other.is_some_and(|row| row.spent_from)),
        };
        self.store_row(self.t.scripts, &key, &ScriptRow { spent_from: true, ..row })?;
        let mut outputs = Vec::new();
        for entry in self.t.outputs.prefix_iter(self.reads(), &outputs_key(script))? {
            outputs.push(outpoint_from(entry?.0.get(32..).unwrap_or_default())?);
        }
        for outpoint in outputs {
            let coin: Option<CoinRow> = get(self.t.coins, self.reads(), &outpoint_key(&outpoint))?;
            if let Some(coin) = coin.filter(|coin| coin.script.as_script() == script) {
                self.put_coin(&outpoint, &CoinRow { reused: true, ..coin })?;
            }
        }
        Ok(true)
    }
}
