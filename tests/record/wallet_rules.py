#!/usr/bin/env python3
"""Records data/wallet-rules.json: restored wallets, hardened wildcards, encryption, and what is replaced or orphaned."""

from bitcoind import Node, program
from history import COIN, FEE, KEYPOOL, REPLACEABLE, START_TIME, TYPES, Recorder
from keys import master_tprv
from kinds import with_checksum
from loaded import write_rows
from wire import Input, Output

SOURCE, RESTORED, INACTIVE, HARD = "source", "restored", "inactive", "hard"

# What is kept of an answer; of a transaction all but these.
KEPT = {
    "getwalletinfo": ["blank", "keypoolsize", "keypoolsize_hd_internal"],
    "getaddressinfo": ["ismine", "solvable", "desc", "parent_desc", "ischange", "hdkeypath", "labels"],
    "listunspent": ["txid", "vout"],
    "descriptors": ["desc", "active", "internal", "range", "next_index"],
}
LEFT_OUT = ["hex", "in_mempool", "timereceived", "lastprocessedblock"]


def kept(method, answer):
    if isinstance(answer, list) and method in ("listunspent", "listtransactions"):
        items = [kept(method, item) if method == "listtransactions" else only(item, KEPT[method])
                 for item in answer]
        key = lambda item: (item["txid"], item.get("category", ""), item["vout"])
        return sorted(items, key=key)
    if not isinstance(answer, dict):
        return answer
    if method == "listdescriptors":
        return [only(item, KEPT["descriptors"]) for item in answer["descriptors"]]
    if method in KEPT:
        return only(answer, KEPT[method])
    return {key: value for key, value in answer.items() if key not in LEFT_OUT}


def only(item, keys):
    return {key: value for key, value in item.items() if key in keys}


class Rules(Recorder):
    """Actions and questions are `[wallet, method, params, answer]`."""

    wallet = SOURCE

    def act(self, method, *params, wallet=None):
        result, error = self.node.reply(method, *params, wallet=wallet)
        self.actions.append([wallet, method, list(params), {"error": error} if error else result])
        return result

    def ask(self, name, questions):
        self.node.call("syncwithvalidationinterfacequeue")
        answers = []
        for wallet, method, *params in questions:
            answer = self.node.call(method, *params, wallet=wallet)
            answers.append([wallet, method, params, kept(method, answer)])
        self.steps.append({"name": name, "actions": self.actions, "answers": answers})
        self.actions = []

    def create(self, name, requests):
        self.act("createwallet", name, False, True)
        reply = self.act("importdescriptors", requests, wallet=name)
        assert all(item["success"] for item in reply), reply


def requests(node, active):
    seed = master_tprv("wallet rules")
    found = []
    for pattern in TYPES.values():
        for side in (0, 1):
            request = {"desc": with_checksum(node, pattern.format(seed, side)), "timestamp": 0,
                       "range": [0, KEYPOOL - 1], "active": active}
            if active:
                request["internal"] = side == 1
            found.append(request)
    return found


def restore(r):
    """A wallet is paid at addresses that it gave; another one gets its descriptors later."""
    r.create(SOURCE, requests(r.node, True))
    new = lambda label, kind: r.act("getnewaddress", label, kind, wallet=SOURCE)
    change = lambda: r.act("getrawchangeaddress", "bech32", wallet=SOURCE)
    given = [new(f"shop {index}", "bech32") for index in range(4)] + [new("", "bech32m")]
    inner = [change() for _ in range(3)]
    r.ask("drawn", [[SOURCE, "listdescriptors"], [SOURCE, "getwalletinfo"]])
    first = r.mine()
    while len(r.hashes) < 101:
        r.mine()
    coinbase = first.transactions[0]
    outputs = [Output(COIN, r.script(address)) for address in (given[1], inner[1], given[4])]
    outputs.append(Output(COIN, r.script(given[2])))
    outputs.append(Output(50 * COIN - FEE - 4 * COIN, r.stranger.script))
    paid = r.stranger.sign([Input(coinbase.txid(), 0)], outputs, [50 * COIN])
    r.mine([paid])
    r.create(RESTORED, requests(r.node, True))
    r.create(INACTIVE, requests(r.node, False))
    # One that is seen in the mempool, beyond those before.
    rest = Input(paid.txid(), 4, sequence=REPLACEABLE)
    late = [Output(COIN // 2, r.script(given[3])), Output(45 * COIN, r.stranger.script)]
    late = r.stranger.sign([rest], late, [50 * COIN - FEE - 4 * COIN])
    r.send(late)
    questions = []
    for wallet in (SOURCE, RESTORED, INACTIVE):
        questions += [[wallet, "listtransactions"], [wallet, "listdescriptors"], [wallet, "getwalletinfo"]]
        questions += [[wallet, "getaddressinfo", address] for address in given + inner]
        questions += [[wallet, "gettransaction", paid.txid()]]
    r.ask("restored", questions)
    r.mine([late])
    r.ask("restored, confirmed", [[RESTORED, "listtransactions", "*", 3], [INACTIVE, "gettransaction", late.txid()]])
    return paid, inner


def hardened(r):
    seed = master_tprv("wallet rules, hardened")
    request = {"desc": with_checksum(r.node, f"wpkh({seed}/7h/*h)"), "timestamp": "now", "active": True,
               "range": [0, 4]}
    r.create(HARD, [request])
    address = r.act("getnewaddress", "", "bech32", wallet=HARD)
    questions = [[HARD, "getaddressinfo", address], [HARD, "getwalletinfo"], [HARD, "listdescriptors"]]
    r.ask("hardened wildcard", questions)
    r.act("encryptwallet", "pass", wallet=HARD)
    r.ask("encrypted while blank", questions)
    for _ in range(KEYPOOL):
        r.act("getnewaddress", "", "bech32", wallet=HARD)
    r.ask("used up while locked", questions)


def replace(r, paid, inner):
    """A payment of two coins gives way to one of the first coin."""
    coin = lambda vout: Input(paid.txid(), vout, sequence=REPLACEABLE)
    script = r.script(inner[2])
    first = r.own([coin(0), coin(1)], [Output(COIN // 2, r.stranger.script), Output(COIN, script)])
    r.send(first)
    child = r.own([Input(first.txid(), 1, sequence=REPLACEABLE)], [Output(COIN - FEE, script)])
    r.send(child)
    told = [[SOURCE, "gettransaction", found.txid()] for found in (first, child)]
    unspent = [[SOURCE, "listunspent", 0]]
    r.ask("before the replacement", told + unspent)
    second = r.own([coin(0)], [Output(COIN // 4, r.stranger.script)])
    r.send(second)
    told.append([SOURCE, "gettransaction", second.txid()])
    r.ask("replaced", told + unspent)
    block = r.mine([second])
    r.ask("the replacement is mined", told + unspent + [[SOURCE, "listtransactions", "*", 4]])
    refused = r.act("abandontransaction", first.txid(), wallet=SOURCE)
    assert refused is None
    r.act("invalidateblock", block.hash())
    r.ask("its block is gone", told + unspent)
    r.act("reconsiderblock", block.hash())
    r.ask("its block is back", told + unspent)


def orphan(r, paid, inner):
    """A coinbase's block leaves the chain, with a payment of the coinbase and of another coin in the mempool."""
    script = r.script(inner[0])
    block = r.mine(script=script)
    for _ in range(100):
        r.mine()
    coinbase = block.transactions[0].txid()
    both = [Input(coinbase, 0, sequence=REPLACEABLE), Input(paid.txid(), 3, sequence=REPLACEABLE)]
    spent = r.own(both, [Output(COIN, r.stranger.script), Output(COIN, script)])
    r.send(spent)
    questions = [[SOURCE, "gettransaction", coinbase], [SOURCE, "gettransaction", spent.txid()],
                 [SOURCE, "listunspent", 0], [SOURCE, "listtransactions", "*", 4]]
    r.ask("a coinbase is spent", questions)
    r.act("invalidateblock", block.hash())
    r.ask("it is orphaned", questions)
    r.act("reconsiderblock", block.hash())
    r.ask("its block is back", questions)
    r.send(spent)
    r.ask("what spends it is seen again", questions)


def main():
    path = program(__doc__)
    arguments = [f"-keypool={KEYPOOL}", "-addresstype=bech32"]
    with Node(path, arguments) as node, Node(path) as miner:
        node.call("setmocktime", START_TIME)
        r = Rules(node, miner)
        paid, inner = restore(r)
        hardened(r)
        replace(r, paid, inner)
        orphan(r, paid, inner)
        write_rows("wallet-rules.json",
                   {"bitcoind": node.version(), "start_time": START_TIME, "steps": r.steps})
        print(len(r.steps), "steps")


if __name__ == "__main__":
    main()
