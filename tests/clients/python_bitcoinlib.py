"""A session of python-bitcoinlib: it finds the cookie through bitcoin.conf, and speaks in transactions and blocks of its own."""

import pathlib
from decimal import Decimal

import bitcoin
import bitcoin.rpc
from bitcoin.core import (
    COIN, CBlock, CMutableTransaction, CMutableTxIn, CMutableTxOut, COutPoint, CTransaction, CTxInWitness, CTxWitness,
    b2lx, b2x, lx, x,
)
from bitcoin.core.script import CScript, CScriptWitness
from bitcoin.wallet import CBitcoinAddress, P2WPKHBitcoinAddress

from common import DATADIR, DESCRIPTOR, PORT, SUBSIDY, expect, refusal

bitcoin.SelectParams("regtest")
conf = pathlib.Path(DATADIR) / "bitcoin.conf"
conf.write_text(f"# Where the host is.\nrpcconnect=127.0.0.1\nrpcport={PORT}\ndatadir={DATADIR}\n")
proxy = bitcoin.rpc.Proxy(btc_conf_file=str(conf))

# Wallet and blocks.
expect("createwallet", proxy.call("createwallet", "lib")["name"], "lib")
address = proxy.getnewaddress("mine")
expect("an address of its own kind", isinstance(address, P2WPKHBitcoinAddress), True)
hashes = list(proxy.generatetoaddress(101, address))
expect("blocks", (proxy.getblockcount(), proxy.getbestblockhash()), (101, hashes[-1]))
expect("balance", proxy.getbalance(), 50 * COIN)
block = proxy.getblock(hashes[0])
expect("a block", (block.GetHash(), block.vtx[0].vout[0].scriptPubKey), (hashes[0], address.to_scriptPubKey()))
expect("a header", proxy.getblockheader(hashes[0]).hashMerkleRoot, block.hashMerkleRoot)
expect("a hash by height", proxy.getblockhash(1), hashes[0])
expect("mine", proxy.validateaddress(str(address))["isvalid"], True)

# Import: a key whose coins are the wallet's from now on.
proxy.call("createwallet", "other", False, True)
other = bitcoin.rpc.Proxy(f"http://{pathlib.Path(DATADIR, 'regtest/.cookie').read_text().strip()}@127.0.0.1:{PORT}/wallet/other")
wallet = bitcoin.rpc.Proxy(f"http://{pathlib.Path(DATADIR, 'regtest/.cookie').read_text().strip()}@127.0.0.1:{PORT}/wallet/lib")
expect("import", other.call("importdescriptors", [{"desc": DESCRIPTOR, "timestamp": "now"}]), [{"success": True}])
imported = CBitcoinAddress(proxy.call("deriveaddresses", DESCRIPTOR)[0])

# Send, and look at the transaction in the mempool.
paid = wallet.sendtoaddress(imported, int(1.25 * COIN))
expect("the mempool", proxy.getrawmempool(), [paid])
expect("the payment", [out.nValue for out in proxy.getrawtransaction(paid).vout if out.scriptPubKey == imported.to_scriptPubKey()], [int(1.25 * COIN)])
sent = wallet.gettransaction(paid)
expect("sent", (sent["amount"], sent["details"][0]["category"], sent["confirmations"]), (Decimal("-1.25"), "send", 0))
expect("received", other.call("gettransaction", b2lx(paid))["details"][0]["category"], "receive")

# Sign a transaction that was made here.
coin = wallet.listunspent(0)[0]
spending = CMutableTransaction(
    [CMutableTxIn(coin["outpoint"])], [CMutableTxOut(coin["amount"] - 10_000, address.to_scriptPubKey())], nVersion=2
)
signed = wallet.call("signrawtransactionwithwallet", b2x(spending.serialize()))
expect("signed", signed["complete"], True)
moved = wallet.sendrawtransaction(CTransaction.deserialize(x(signed["hex"])))
expect("it is what was sent", proxy.getrawtransaction(moved).vin[0].prevout, coin["outpoint"])

# Template: a block is made here of what it says, without the coinbase's witness, and taken.
template = proxy.call("getblocktemplate", {"rules": ["segwit"]})
expect("template", {lx(entry["txid"]) for entry in template["transactions"]}, {paid, moved})
fees = sum(entry["fee"] for entry in template["transactions"])
expect("its value", template["coinbasevalue"], SUBSIDY + fees)
coinbase = CMutableTransaction(
    [CMutableTxIn(COutPoint(), CScript([template["height"], 0]))],
    [
        CMutableTxOut(template["coinbasevalue"], address.to_scriptPubKey()),
        CMutableTxOut(0, CScript(x(template["default_witness_commitment"]))),
    ],
)
transactions = [CTransaction.from_tx(coinbase)] + [CTransaction.deserialize(x(e["data"])) for e in template["transactions"]]
mined = CBlock(
    template["version"], lx(template["previousblockhash"]), bytes(32), template["curtime"], int(template["bits"], 16), 0, transactions
)
root, target = mined.calc_merkle_root(), int(template["target"], 16)
for nonce in range(1 << 16):
    mined = CBlock(mined.nVersion, mined.hashPrevBlock, root, mined.nTime, mined.nBits, nonce, transactions)
    if int(b2lx(mined.GetHash()), 16) <= target:
        break
expect("taken", proxy.submitblock(mined), None)
expect("it is the best one", (proxy.getblockcount(), proxy.getbestblockhash()), (102, mined.GetHash()))
expect("taken once", proxy.submitblock(mined), "duplicate")
stored = proxy.getblock(mined.GetHash())
witness = CTxWitness([CTxInWitness(CScriptWitness([bytes(32)]))])
expect("the coinbase was given its witness", stored.vtx[0].wit, witness)

# History.
expect("confirmed", wallet.gettransaction(paid)["confirmations"], 1)
since = wallet.call("listsinceblock", template["previousblockhash"])
categories = sorted((entry["category"], entry["confirmations"]) for entry in since["transactions"])
expect("history", categories, [("immature", 1), ("receive", 1), ("send", 1), ("send", 1)])
expect("unspent", other.getbalance(), int(1.25 * COIN))

# Errors have classes here.
rpc = bitcoin.rpc
unknown = CMutableTransaction([CMutableTxIn(COutPoint(bytes(31) + b"\1", 0))], [CMutableTxOut(1000, imported.to_scriptPubKey())])
refusal(rpc.VerifyError, proxy.sendrawtransaction, unknown)
refusal(rpc.VerifyAlreadyInChainError, proxy.sendrawtransaction, CTransaction.deserialize(x(signed["hex"])))
refusal(rpc.InvalidAddressOrKeyError, proxy.call, "getrawtransaction", "11" * 32)
refusal(rpc.InvalidParameterError, proxy.call, "getblockhash", 1_000_000)
greedy = CMutableTransaction(
    [CMutableTxIn(COutPoint(moved, 0))], [CMutableTxOut(49 * COIN, address.to_scriptPubKey())], nVersion=2
)
refused = wallet.call("signrawtransactionwithwallet", b2x(greedy.serialize()))
refusal(rpc.VerifyRejectedError, proxy.sendrawtransaction, CTransaction.deserialize(x(refused["hex"])))
batch = proxy._batch([{"method": "getblockcount", "params": [], "id": 1}, {"method": "nosuch", "params": [], "id": 2}])
expect("a batch", [(one["result"], (one["error"] or {}).get("code"), one["id"]) for one in batch], [(102, None, 1), (None, -32601, 2)])
