"""A session of python-bitcoinrpc: JSON-RPC 1.1 over one kept connection, amounts as decimals."""

from decimal import Decimal

from bitcoinrpc.authproxy import AuthServiceProxy, JSONRPCException

from common import DESCRIPTOR, KEY, PASSWORD, SUBSIDY, USER, expect, refusal, url_of


def client(wallet=None):
    return AuthServiceProxy(url_of(USER, PASSWORD, f"/wallet/{wallet}" if wallet else ""))


def code(call, *arguments):
    return refusal(JSONRPCException, call, *arguments).code


node = client()
expect("chain", node.getblockchaininfo()["chain"], "regtest")
expect("peers", node.getpeerinfo(), [])

# Two wallets: one that mines and pays, and one that holds only what is imported.
expect("createwallet", node.createwallet("payer")["name"], "payer")
node.createwallet("shop", False, True)
expect("listwallets", node.listwallets(), ["payer", "shop"])
payer, shop = client("payer"), client("shop")
expect("a wallet must be named", code(node.getbalance), -19)

# Blocks: of 101 coinbases one can be spent.
address = payer.getnewaddress("mine", "bech32")
blocks = payer.generatetoaddress(101, address)
expect("blocks", (len(blocks), blocks[-1]), (101, node.getbestblockhash()))
balances = payer.getbalances()["mine"]
expect("balances", (balances["trusted"], balances["immature"]), (Decimal(50), Decimal(5000)))

# Import: a key with its descriptor, and an address to watch.
expect("importdescriptors", shop.importdescriptors([{"desc": DESCRIPTOR, "timestamp": "now", "label": "till"}]), [{"success": True}])
shop_address = node.deriveaddresses(DESCRIPTOR)[0]
expect("imported", shop.getaddressinfo(shop_address)["ismine"], True)
refused = shop.importdescriptors([{"desc": "wpkh(", "timestamp": "now"}])[0]
expect("a bad descriptor", (refused["success"], refused["error"]["code"]), (False, -5))
node.createwallet("watch", True, True)
watch = client("watch")
request = {"scriptPubKey": {"address": address}, "timestamp": 0, "watchonly": True}
expect("importmulti", watch.importmulti([request])[0]["success"], True)
expect("a rescan finds what was mined", watch.gettransaction(node.getblock(blocks[0])["tx"][0], True)["confirmations"], 101)

# Send: the wallet chooses, signs and sends.
paid = payer.sendtoaddress(shop_address, Decimal("1.25"), "rent")
sent = payer.gettransaction(paid)
expect("sent", (sent["amount"], sent["confirmations"], sent["comment"]), (Decimal("-1.25"), 0, "rent"))
expect("its category", [detail["category"] for detail in sent["details"]], ["send"])
fee = -sent["fee"]
expect("a fee is paid", Decimal(0) < fee < Decimal("0.001"), True)
received = shop.gettransaction(paid)["details"][0]
wanted = ("receive", Decimal("1.25"), "till", shop_address)
expect("received", (received["category"], received["amount"], received["label"], received["address"]), wanted)
expect("too much", code(payer.sendtoaddress, shop_address, 100000), -6)

# Sign: the wallet's coins by hand, and the key alone.
coin = payer.listunspent(0)[0]
inputs = [{"txid": coin["txid"], "vout": coin["vout"]}]
by_hand = node.createrawtransaction(inputs, {address: coin["amount"] - Decimal("0.0001")})
signed = payer.signrawtransactionwithwallet(by_hand)
expect("signed", signed["complete"], True)
expect("would be taken", node.testmempoolaccept([signed["hex"]])[0]["allowed"], True)
moved = node.sendrawtransaction(signed["hex"])
expect("sent by hand", moved, node.decoderawtransaction(signed["hex"])["txid"])
coin = shop.listunspent(0)[0]
spent = {key: coin[key] for key in ("txid", "vout", "scriptPubKey", "amount")}
by_key = node.createrawtransaction([{"txid": coin["txid"], "vout": coin["vout"]}], {address: Decimal("1.2499")})
signed = node.signrawtransactionwithkey(by_key, [KEY], [spent])
expect("signed with the key", signed["complete"], True)
returned = node.sendrawtransaction(signed["hex"])
expect("a double spend", code(node.sendrawtransaction, node.signrawtransactionwithkey(
    node.createrawtransaction([{"txid": moved, "vout": 9}], {address: 1}), [KEY])["hex"]), -25)

# Template: the three transactions, with their fees in the coinbase's value.
template = node.getblocktemplate({"rules": ["segwit"]})
expect("template", {entry["txid"] for entry in template["transactions"]}, {paid, moved, returned})
expect("its value", template["coinbasevalue"], SUBSIDY + sum(entry["fee"] for entry in template["transactions"]))
expect("its fees", [e["fee"] for e in template["transactions"] if e["txid"] == paid], [int(fee * 100_000_000)])

# History: all of it is confirmed by one block.
before = node.getbestblockhash()
payer.generatetoaddress(1, address)
since = payer.listsinceblock(before)
expect("since", {entry["txid"] for entry in since["transactions"] if entry["category"] != "immature"}, {paid, moved, returned})
expect("depth", {entry["confirmations"] for entry in since["transactions"]}, {1})
last = shop.listtransactions("*", 10)
expect("history", [(entry["category"], entry["amount"]) for entry in last], [("receive", Decimal("1.25")), ("send", Decimal("-1.2499"))])
expect("an unknown transaction", code(payer.gettransaction, "00" * 32), -5)

# Errors carry bitcoind's codes. This client cannot read a batch of Bitcoin Core 29, whose answers leave out "error".
expect("an unknown method", code(node.nosuchmethod), -32601)
expect("a wrong count", code(node.getblockhash), -1)
expect("a wrong height", code(node.getblockhash, 1_000_000), -8)
expect("a batch", refusal(KeyError, node.batch_, [["getblockcount"], ["getbestblockhash"]]).args, ("error",))
expect("the connection is good for more", client().getblockcount(), 102)
