"""A session of bitcoin-cli 29: the cookie's file, named and positional arguments, its batches, and its exit codes."""

import json
import subprocess
import sys

from common import COOKIE, DESCRIPTOR, KEY, PORT, SUBSIDY, expect

PROGRAM = [sys.argv[1], "-regtest", f"-rpcport={PORT}", f"-rpccookiefile={COOKIE}"]


def run(*arguments, wallet=None, typed=None):
    options = [f"-rpcwallet={wallet}"] if wallet else []
    return subprocess.run(
        [*PROGRAM, *options, *map(str, arguments)], input=typed or "", capture_output=True, text=True, check=False
    )


def cli(*arguments, **options):
    """What a call printed: JSON where it is, text otherwise."""
    done = run(*arguments, **options)
    if done.returncode != 0:
        raise SystemExit(f"{arguments}: exit code {done.returncode}: {done.stdout}{done.stderr}")
    text = done.stdout.strip()
    return json.loads(text) if text[:1] in ("{", "[") else text


def fails(*arguments, **options):
    """The exit code of a call that fails: the error's code without its sign, modulo 256."""
    done = run(*arguments, **options)
    return done.returncode, done.stderr


# Wallets and blocks.
expect("createwallet", cli("-named", "createwallet", "wallet_name=payer")["name"], "payer")
generated = cli("-generate", 101)
expect("-generate", (len(generated["blocks"]), generated["blocks"][-1]), (101, cli("getbestblockhash")))
expect("balance", cli("getbalance"), "50.00000000")
info = cli("-getinfo")
for line in ("Chain: regtest", "Blocks: 101", "Balance: 50.00000000", "Wallet: payer", "Network: in 0, out 0, total 0"):
    expect(f"-getinfo has {line!r}", line in info.splitlines(), True)
expect("-netinfo", "Local addresses: n/a" in cli("-netinfo", 4), True)
expect("-addrinfo", cli("-addrinfo")["addresses_known"]["total"], 0)
cli("createwallet", "shop", "false", "true")
info = cli("-getinfo")
expect("-getinfo with two wallets", "Balances" in info and "50.00000000 payer" in info, True)
code, said = fails("getbalance")
expect("a wallet must be named", (code, "error code: -19" in said), (19, True))

# Import.
descriptors = json.dumps([{"desc": DESCRIPTOR, "timestamp": "now", "label": "till"}])
expect("importdescriptors", cli("-stdin", "importdescriptors", wallet="shop", typed=descriptors), [{"success": True}])
shop_address = cli("deriveaddresses", DESCRIPTOR)[0]
watched = json.dumps([{"scriptPubKey": {"address": generated["address"]}, "timestamp": "now", "watchonly": True}])
cli("-named", "createwallet", "wallet_name=watch", "disable_private_keys=true", "blank=true")
expect("importmulti", cli("importmulti", watched, '{"rescan": false}', wallet="watch")[0]["success"], True)

# Send, by name and by position.
paid = cli("-named", "sendtoaddress", f"address={shop_address}", "amount=1.25", "fee_rate=20", "comment=rent", wallet="payer")
sent = cli("gettransaction", paid, wallet="payer")
expect("sent", (sent["amount"], sent["details"][0]["category"], sent["confirmations"], sent["comment"]), (-1.25, "send", 0, "rent"))
received = cli("gettransaction", paid, wallet="shop")["details"][0]
expect("received", (received["category"], received["amount"], received["label"]), ("receive", 1.25, "till"))

# Sign, with the wallet and with a key alone.
coin = next(coin for coin in cli("listunspent", 0, wallet="payer"))
inputs = json.dumps([{"txid": coin["txid"], "vout": coin["vout"]}])
by_hand = cli("createrawtransaction", inputs, json.dumps({generated["address"]: f"{coin['amount'] - 0.0001:.8f}"}))
signed = cli("signrawtransactionwithwallet", by_hand, wallet="payer")
expect("signed", signed["complete"], True)
expect("would be taken", cli("testmempoolaccept", json.dumps([signed["hex"]]))[0]["allowed"], True)
moved = cli("-stdin", "sendrawtransaction", typed=signed["hex"])
coin = cli("listunspent", 0, wallet="shop")[0]
back = cli("createrawtransaction", json.dumps([{"txid": coin["txid"], "vout": coin["vout"]}]), json.dumps({generated["address"]: 1.2499}))
signed = cli("signrawtransactionwithkey", back, json.dumps([KEY]))
expect("signed with the key", signed["complete"], True)
returned = cli("sendrawtransaction", signed["hex"])

# Template, then a block.
template = cli("getblocktemplate", '{"rules": ["segwit"]}')
expect("template", {entry["txid"] for entry in template["transactions"]}, {paid, moved, returned})
expect("its value", template["coinbasevalue"], SUBSIDY + sum(entry["fee"] for entry in template["transactions"]))
before = cli("getbestblockhash")
mined = cli("generatetoaddress", 1, generated["address"])
expect("mined", (mined[0], cli("getmempoolinfo")["size"]), (cli("getblockhash", 102), 0))

# History.
since = cli("listsinceblock", before, wallet="payer")["transactions"]
expect("since", {entry["txid"] for entry in since if entry["category"] != "immature"}, {paid, moved, returned})
expect("depth", {entry["confirmations"] for entry in since}, {1})
last = cli("listtransactions", "*", 10, wallet="shop")
expect("history", [(entry["category"], entry["amount"]) for entry in last], [("receive", 1.25), ("send", -1.2499)])

# Errors come back as exit codes, help as text.
expect("an unknown method", fails("nosuchmethod")[0], -(-32601) % 256)
expect("a wrong height", fails("getblockhash", 1_000_000)[0], 8)
expect("an unknown transaction", fails("gettransaction", "00" * 32, wallet="payer")[0], 5)
expect("too much", fails("sendtoaddress", shop_address, 100000, wallet="payer")[0], 6)
code, said = fails("getblockhash")
expect("a wrong count is answered with help", (code, said.splitlines()[2]), (1, "getblockhash height"))
expect("help", cli("help", "getblockhash").splitlines()[0], "getblockhash height")
expect("help of all", "== Blockchain ==" in cli("help"), True)
wrong = subprocess.run([sys.argv[1], "-regtest", f"-rpcport={PORT}", "-rpcuser=x", "-rpcpassword=y", "uptime"], capture_output=True, text=True, check=False)
expect("a wrong password", (wrong.returncode, "Authorization failed" in wrong.stderr), (1, True))
expect("stop", cli("stop").endswith("stopping"), True)
