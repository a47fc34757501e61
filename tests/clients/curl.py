"""A session of curl: one program per call, as scripts and monitors do it, and what stands on the wire."""

import json
import subprocess
import sys

from common import COOKIE, DESCRIPTOR, KEY, PASSWORD, SUBSIDY, URL, USER, expect


def curl(body, path="/", *options, user=f"{USER}:{PASSWORD}"):
    """The status, the headers in lower case, and the body of an answer."""
    done = subprocess.run(
        [sys.argv[1], "--silent", "--show-error", "--include", "--user", user, "--data-binary", "@-", *options, URL + path],
        input=body, capture_output=True, text=True, check=True,
    )
    head, _, answer = done.stdout.partition("\r\n\r\n") if "\r\n\r\n" in done.stdout else done.stdout.partition("\n\n")
    status, *lines = head.splitlines()
    return status, dict(line.lower().split(": ", 1) for line in lines), answer


def ask(method, *params, path="/", **more):
    status, _, answer = curl(json.dumps({"method": method, "params": params, "id": "curl"} | more), path)
    return int(status.split()[1]), json.loads(answer)


def result(method, *params, wallet=None):
    status, answer = ask(method, *params, path=f"/wallet/{wallet}" if wallet else "/")
    expect(f"{method}: status, error and id", (status, answer["error"], answer["id"]), (200, None, "curl"))
    return answer["result"]


# What every answer is on the wire.
status, headers, answer = curl('{"method": "getblockcount"}')
expect("status line", status, "HTTP/1.1 200 OK")
expect("content type", headers["content-type"], "application/json")
expect("length, not chunked", (int(headers["content-length"]), headers.get("transfer-encoding")), (len(answer), None))
expect("one line", (answer.startswith("{"), answer.endswith("}\n"), answer.count("\n")), (True, True, 1))
expect("the oldest shape", answer, '{"result":0,"error":null}\n')
for kind in ("text/plain", "text/json", "application/json; charset=UTF-8", ""):
    status, _, answer = curl('{"method": "getblockcount", "id": 1}\r\n', "/", "--header", f"content-type: {kind}" if kind else "Content-Type:")
    expect(f"content type {kind!r}", (status, json.loads(answer)["result"]), ("HTTP/1.1 200 OK", 0))
status, headers, answer = curl('{"method": "getblockcount"}', "/", "--http1.0")
expect("HTTP/1.0", (status.split()[1], json.loads(answer)["result"]), ("200", 0))

# Both dialects, batches, and refusals at the door.
expect("2.0", ask("getblockcount", jsonrpc="2.0"), (200, {"jsonrpc": "2.0", "result": 0, "id": "curl"}))
status, answer = ask("nosuch", jsonrpc="2.0")
expect("an error in 2.0", (status, answer["error"]["code"], "result" in answer), (200, -32601, False))
status, answer = ask("nosuch")
expect("an error in 1.0", (status, answer["error"]["code"], answer["result"]), (404, -32601, None))
expect("another error in 1.0", ask("getblockhash", 5)[0], 500)
status, _, answer = curl('{"jsonrpc": "2.0", "method": "getblockcount"}')
expect("a notification", (status.split()[1], answer), ("204", ""))
batch = [{"method": "getblockcount", "id": 1}, {"jsonrpc": "2.0", "method": "uptime", "id": 2}, {"method": "nosuch", "id": 3}]
status, _, answer = curl(json.dumps(batch))
answers = json.loads(answer)
expect("a batch", (status.split()[1], [one["id"] for one in answers], ["jsonrpc" in one for one in answers]), ("200", [1, 2, 3], [False, True, False]))
status, headers, answer = curl('{"method": "uptime"}', user="x:y")
expect("a wrong password", (status.split()[1], headers["www-authenticate"], answer), ("401", 'basic realm="jsonrpc"', ""))
expect("no JSON", json.loads(curl("getblockcount")[2])["error"]["code"], -32700)
expect("the cookie", json.loads(curl('{"method": "uptime"}', user=open(COOKIE).read().strip())[2])["error"], None)

# Wallet, blocks, import.
result("createwallet", "payer")
result("createwallet", "shop", False, True)
address = result("getnewaddress", "mine", "bech32", wallet="payer")
result("generatetoaddress", 101, address)
expect("balance", result("getbalances", wallet="payer")["mine"]["trusted"], 50)
expect("import", result("importdescriptors", [{"desc": DESCRIPTOR, "timestamp": "now"}], wallet="shop"), [{"success": True}])
shop_address = result("deriveaddresses", DESCRIPTOR)[0]

# Send, sign, template.
paid = result("sendtoaddress", shop_address, 1.25, wallet="payer")
coin = result("listunspent", 0, wallet="shop")[0]
expect("received", (coin["txid"], coin["amount"]), (paid, 1.25))
unsigned = result("createrawtransaction", [{"txid": coin["txid"], "vout": coin["vout"]}], [{address: 1.2499}])
signed = result("signrawtransactionwithkey", unsigned, [KEY])
expect("signed with the key", signed["complete"], True)
expect("signed by the wallet", result("signrawtransactionwithwallet", unsigned, wallet="shop"), signed)
returned = result("sendrawtransaction", signed["hex"])
template = result("getblocktemplate", {"rules": ["segwit"]})
expect("template", [entry["txid"] for entry in template["transactions"]], [paid, returned])
expect("its value", template["coinbasevalue"], SUBSIDY + sum(entry["fee"] for entry in template["transactions"]))

# History.
before = result("getbestblockhash")
result("generatetoaddress", 1, address)
since = result("listsinceblock", before, wallet="shop")["transactions"]
expect("history", sorted((e["category"], e["amount"], e["confirmations"]) for e in since), [("receive", 1.25, 1), ("send", -1.2499, 1)])
expect("one transaction", result("gettransaction", paid, wallet="payer")["amount"], -1.25)

# By name, as one object.
status, answer = ask("getblockhash")
expect("no argument", (status, answer["error"]["code"], answer["error"]["message"].startswith("getblockhash height")), (500, -1, True))
named = json.loads(curl('{"method": "getblockhash", "params": {"height": 101}, "id": 7}')[2])
expect("a named argument", named, {"result": before, "error": None, "id": 7})
