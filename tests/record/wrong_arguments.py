#!/usr/bin/env python3
"""Records data/wrong-arguments.json: answers to calls whose arguments are absent, null, of a wrong type or too many."""

from bitcoind import Node, dump, parse_exact, program
from loaded import write_rows

# A key without coins.
KEY = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v"
# Without its checksum, which is refused.
DESCRIPTOR = "wpkh(0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798)"
TXID = "11" * 32
COIN = {"txid": TXID, "vout": 0, "scriptPubKey": f"a914{'00' * 20}87", "redeemScript": "51", "witnessScript": "51", "amount": 2}
SEGWIT = {"rules": ["segwit"]}
TEXTS = ["", "x", "*", "all"]
# The values tried for each argument. The host accepts arrays and objects as text, so these are not among them.
VALUES = [None, True, False, 5, -1, 1.5, 1 << 31, 1 << 63, *TEXTS, [], [5], ["x"], [None], [[]], [{}], [KEY, 5], {}, {"a": 1}]
CONTAINERS = ["x", 5, {"x": 1}, {"args": []}, {"args": 5}]


def without(members, name):
    return {key: value for key, value in members.items() if key != name}


def records(raw):
    """Calls whose objects have a wrong member, or lack one."""
    for name in COIN:
        for coin in [without(COIN, name)] + [COIN | {name: value} for value in VALUES]:
            yield "signrawtransactionwithkey", [raw, [KEY], [coin]]
    requests = [SEGWIT | {name: value} for name in ("mode", "rules", "data", "capabilities") for value in VALUES]
    requests += [{"mode": "proposal", "data": value} for value in VALUES] + [{"mode": "x", "rules": [5]}, {"mode": "x", "longpollid": "x"}]
    # A value of another type waits for a new block.
    requests += [SEGWIT | {"longpollid": value} for value in [None, "zz" * 32] + TEXTS]
    for request in requests:
        yield "getblocktemplate", [request]


def calls(raw, tip):
    yield from records(raw)
    for method, good in [
        ("signrawtransactionwithkey", [raw, [KEY], [COIN], "ALL"]),
        ("signrawtransactionwithwallet", [raw, [COIN], "ALL"]),
        ("importdescriptors", [[{"desc": DESCRIPTOR, "timestamp": "now"}]]),
        ("getblocktemplate", [SEGWIT]),
        ("submitblock", ["00", "x"]),
        ("gettransaction", [TXID, True, False]),
        ("listsinceblock", [tip, 1, False, True, False, "x"]),
        ("listtransactions", ["*", 10, 0, False]),
    ]:
        for index in range(len(good)):
            yield method, good[:index]
            for value in VALUES:
                changed = good[:index] + [value]
                yield method, changed
                yield method, changed + good[index + 1 :]
                # With two wrong arguments, the error names both.
                yield method, [5] + changed[1:] + good[index + 1 :]
        for container in CONTAINERS:
            yield method, container
        # The importdescriptors of Knots takes a further argument.
        yield method, good + ([[], []] if method == "importdescriptors" else ["x"])


def answer(node, method, params):
    """The result, or the error's code and message: the code alone where the message is the help, which differs."""
    reply = parse_exact(node.exchange(method, params, wallet="w")[1])
    result, error = reply["result"], reply["error"]
    if error is not None:
        is_help = error["code"] == -1 and error["message"].startswith(method)
        return error["code"] if is_help else [error["code"], error["message"]]
    if method == "getblocktemplate":
        return "a template"
    # Only Knots has these.
    return without(without(result, "fee"), "feerate") if isinstance(result, dict) else result


def main():
    with Node(program(__doc__)) as node:
        node.call("createwallet", "w")
        raw = node.call("createrawtransaction", [{"txid": TXID, "vout": 0}], [])
        different = {dump(call): call for call in calls(raw, node.call("getbestblockhash"))}
        rows = [[method, params, answer(node, method, params)] for method, params in different.values()]
        write_rows("wrong-arguments.json", {"bitcoind": node.version(), "rows": rows})


if __name__ == "__main__":
    main()
