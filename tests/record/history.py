#!/usr/bin/env python3
"""Records data/history.json: what a descriptor wallet says while its chain grows and forks."""

from bitcoind import Node, program
from keys import Key, master_tprv
from kinds import with_checksum
from loaded import write_rows
from wire import (
    SEQUENCE_FINAL,
    Block,
    Input,
    Output,
    Transaction,
    multisig,
    p2wpkh,
)

WALLET = "history"
START_TIME = 1_700_000_000
COIN = 100_000_000
FEE = 20_000
KEYPOOL = 20
# One below: replaceable (BIP 125).
REPLACEABLE = SEQUENCE_FINAL - 2
NOT_REPLACEABLE = SEQUENCE_FINAL - 1

TYPES = {
    "bech32": "wpkh({}/84h/1h/0h/{}/*)",
    "legacy": "pkh({}/44h/1h/0h/{}/*)",
    "p2sh-segwit": "sh(wpkh({}/49h/1h/0h/{}/*))",
    "bech32m": "tr({}/86h/1h/0h/{}/*)",
}


class Stranger:
    """Everyone else: one key whose outputs are kept track of here."""

    def __init__(self, node):
        self.node = node
        self.key = Key("history stranger")
        self.script = p2wpkh(self.key.pubkey())

    def sign(self, inputs, outputs, values):
        prevtxs = [
            {
                "txid": item.txid,
                "vout": item.vout,
                "scriptPubKey": self.script.hex(),
                "amount": f"{value / COIN:.8f}",
            }
            for item, value in zip(inputs, values)
        ]
        text = Transaction(inputs, outputs).hex()
        reply = self.node.call("signrawtransactionwithkey", text, [self.key.wif()], prevtxs)
        assert reply["complete"], reply
        return Transaction.from_hex(reply["hex"])


class Recorder:
    wallet = WALLET

    def __init__(self, node, miner):
        self.node, self.miner = node, miner
        self.stranger = Stranger(miner)
        self.time = START_TIME
        self.steps = []
        self.actions = []
        self.txids = []
        self.hashes = []
        self.nonce = 0

    # Actions are written down as [method, params, result].
    def act(self, method, *params, wallet=None):
        result, error = self.node.reply(method, *params, wallet=wallet)
        assert error is None, error
        self.actions.append([method, list(params), result])
        return result

    def tick(self, seconds=600):
        self.time += seconds
        self.act("setmocktime", self.time)
        self.miner.call("setmocktime", self.time)

    def block(self, transactions=(), script=None):
        """Mines on the miner's tip, without telling the observed node."""
        script = script or self.stranger.script
        raw = [item.hex() for item in transactions]
        made = self.miner.call("generateblock", f"raw({script.hex()})", raw, False)
        block = Block.from_hex(made["hex"])
        self.nonce += 1
        block.transactions[0].inputs[0].script += b"\2" + self.nonce.to_bytes(2, "big")
        block.set_root()
        block.mine()
        assert self.miner.call("submitblock", block.hex()) is None
        return block

    def submit(self, block):
        answer = self.act("submitblock", block.hex())
        self.hashes.append(block.hash())
        return answer

    def mine(self, transactions=(), script=None):
        self.tick()
        block = self.block(transactions, script)
        assert self.submit(block) is None
        return block

    def send(self, transaction):
        self.tick(60)
        self.act("sendrawtransaction", transaction.hex(), 0)
        return transaction

    def own(self, inputs, outputs):
        """A transaction signed by the observed wallet."""
        text = Transaction(inputs, outputs).hex()
        reply = self.node.call("signrawtransactionwithwallet", text, wallet=self.wallet)
        assert reply["complete"], reply
        return Transaction.from_hex(reply["hex"])

    def script(self, address):
        return bytes.fromhex(self.node.call("validateaddress", address)["scriptPubKey"])

    def new(self, label, kind):
        return self.script(self.act("getnewaddress", label, kind, wallet=self.wallet))

    def change(self, kind="bech32"):
        return self.script(self.act("getrawchangeaddress", kind, wallet=self.wallet))

    def checkpoint(self, name, queries):
        """Ends a step: what the wallet says about each transaction and about each query."""
        self.node.call("syncwithvalidationinterfacequeue")
        replies = []
        for method, *params in queries + [["getbalances"]]:
            result, error = self.node.reply(method, *params, wallet=self.wallet)
            if method == "listsinceblock":
                # The node's order is that of a salted hash table. The sort is stable.
                result["transactions"].sort(key=lambda item: item["txid"])
            replies.append([method, params, result if error is None else {"error": error}])
        listed = self.node.call("listsinceblock", wallet=self.wallet)["transactions"]
        self.txids += sorted({item["txid"] for item in listed} - set(self.txids))
        transactions = {}
        for txid in self.txids:
            found = self.node.call("gettransaction", txid, wallet=self.wallet)
            found["hex"] = None  # it is among the actions
            transactions[txid] = found
        self.steps.append(
            {
                "name": name,
                "actions": self.actions,
                "tip": self.node.call("getbestblockhash"),
                "gettransaction": transactions,
                "queries": replies,
            }
        )
        self.actions = []


def set_up(node, wallet, patterns):
    """Makes a wallet of these patterns of descriptors, and gives its imports and what they were answered."""
    node.call("createwallet", wallet, False, True)
    seed = master_tprv(wallet)
    requests = [
        {
            "desc": with_checksum(node, pattern.format(seed, side)),
            "timestamp": 0,
            "active": True,
            "internal": side == 1,
            "range": [0, KEYPOOL - 1],
            "next_index": 0,
        }
        for pattern in patterns
        for side in (0, 1)
    ]
    reply = node.call("importdescriptors", requests, wallet=wallet)
    assert all(item["success"] for item in reply), reply
    return requests, reply


def coinbases(r):
    """Two coinbases of the stranger, three of the wallet; the third is one short of mature."""
    kinds = ["bech32", "legacy", "bech32m"]
    scripts = [None, None] + [r.new(f"mined {kind}", kind) for kind in kinds]
    blocks = [r.mine(script=script) for script in scripts]
    r.checkpoint("immature", [["listsinceblock"], ["listtransactions", "*", 2]])
    while len(r.hashes) < 104:
        r.mine()
    r.checkpoint("first two mature", [["listsinceblock"], ["listsinceblock", r.hashes[2]]])
    return blocks


def receive(r, blocks):
    source = blocks[0].transactions[0]
    labelled, legacy = r.new("rent", "bech32"), r.new("", "legacy")
    # Derived by the wallet but never handed out.
    descriptor = r.descriptors[2]["desc"]
    unlisted = r.script(r.node.call("deriveaddresses", descriptor, [7, 7])[0])
    outputs = [
        Output(3 * COIN // 2, labelled),
        Output(40 * COIN, r.stranger.script),
        Output(COIN // 2, legacy),
        Output(COIN // 4, unlisted),
        Output(COIN // 8, labelled),
        Output(0, b"\x6a\x05hello"),
    ]
    outputs.append(Output(50 * COIN - FEE - sum(item.value for item in outputs), r.stranger.script))
    sent = r.stranger.sign([Input(source.txid(), 0)], outputs, [50 * COIN])
    r.send(sent)
    r.checkpoint("received, unconfirmed", [["listsinceblock", r.hashes[-1]],
                                           ["listtransactions", "*", 10]])
    r.mine([sent])
    r.checkpoint("received, confirmed", [["listsinceblock", r.hashes[-2]],
                                         ["listsinceblock", r.hashes[-1]],
                                         ["listsinceblock", None, 3],
                                         ["listtransactions", "rent", 10]])
    return sent


def spend(r, blocks):
    """A payment with change, then one of that change: elsewhere, to itself, null data."""
    mined = blocks[2].transactions[0]
    to_self = r.new("self", "p2sh-segwit")
    first = r.own(
        [Input(mined.txid(), 0, sequence=NOT_REPLACEABLE)],
        [Output(10 * COIN, r.stranger.script), Output(40 * COIN - FEE, r.change())],
    )
    r.send(first)
    value = 40 * COIN - FEE
    outputs = [
        Output(5 * COIN, to_self),
        Output(3 * COIN, r.stranger.script),
        Output(0, b"\x6a\x04note"),
        Output(2 * COIN, r.stranger.script),
        Output(COIN, r.stranger.script),
    ]
    outputs.append(Output(value - FEE - sum(item.value for item in outputs), r.change("bech32m")))
    second = r.own([Input(first.txid(), 1, sequence=REPLACEABLE)], outputs)
    r.send(second)
    r.checkpoint("sent, unconfirmed", [["listsinceblock", r.hashes[-1]],
                                       ["listtransactions", "*", 12],
                                       ["listtransactions", "*", 3, 2]])
    r.mine([first, second], r.new("mined again", "bech32"))
    r.checkpoint("sent, confirmed", [["listsinceblock", r.hashes[-2]],
                                     ["listtransactions", "*", 12]])
    return first, second


def replace(r, received, second):
    """Replacements: of a payment to the wallet, and of one that the wallet makes."""
    target = r.new("replaced", "bech32")
    coin = Input(received.txid(), 1, sequence=REPLACEABLE)
    pay = lambda value, fee: r.stranger.sign(
        [coin], [Output(value, target), Output(40 * COIN - value - fee, r.stranger.script)],
        [40 * COIN])
    first, better = pay(4 * COIN, FEE), pay(3 * COIN, 5 * FEE)
    r.send(first)
    r.send(better)
    change = Input(second.txid(), 5, sequence=REPLACEABLE)
    value = second.outputs[5].value
    script = r.change()
    own = lambda fee: r.own([change], [Output(6 * COIN, r.stranger.script),
                                       Output(value - 6 * COIN - fee, script)])
    mine_first, mine_better = own(FEE), own(5 * FEE)
    child = r.own([Input(received.txid(), 0, sequence=REPLACEABLE)],
                  [Output(COIN, r.stranger.script),
                   Output(COIN // 2 - FEE, r.new("late", "legacy"))])
    r.send(mine_first)
    r.send(mine_better)
    r.send(child)
    r.checkpoint("replaced in the mempool", [["listsinceblock", r.hashes[-1]],
                                             ["listtransactions", "*", 8]])
    r.act("abandontransaction", mine_first.txid(), wallet=WALLET)
    r.checkpoint("abandoned", [["listsinceblock", r.hashes[-1]]])
    r.mine([better, mine_better])
    r.checkpoint("replacements confirmed", [["listsinceblock", r.hashes[-2]],
                                            ["listsinceblock", r.hashes[-1]],
                                            ["listtransactions", "*", 8]])
    return mine_better, child, better


def reorganise(r, better, stranger_coin):
    """Branch a (2 blocks) gives way to branch b (3 blocks)."""
    fork = r.hashes[-1]
    coin = Input(better.txid(), 1, sequence=REPLACEABLE)
    value = better.outputs[1].value
    change = r.change()
    pay = lambda outputs, fee: r.own([coin], outputs + [
        Output(value - sum(item.value for item in outputs) - fee, change)])
    target = r.new("double", "bech32")
    # No address form, and nothing the mempool's policy takes, but a block does.
    bare = multisig(1, [Key(f"history multisig {index}").pubkey() for index in range(2)])
    lost = pay([Output(2 * COIN, r.stranger.script)], FEE)
    winner = pay([Output(COIN, target), Output(COIN, bare)], 2 * FEE)
    outputs = lambda amount, left: [
        Output(amount, target), Output(left - amount - FEE, r.stranger.script)]
    again = r.stranger.sign([Input(stranger_coin.txid(), 1)],
                            outputs(COIN * 7 // 10, stranger_coin.outputs[1].value),
                            [stranger_coin.outputs[1].value])
    back = r.stranger.sign([Input(again.txid(), 1)],
                           outputs(COIN * 3 // 10, again.outputs[1].value),
                           [again.outputs[1].value])
    child = Transaction([Input(lost.txid(), 1)],
                        [Output(lost.outputs[1].value - FEE, r.stranger.script)])
    r.send(lost)
    r.send(again)
    signed = r.node.call("signrawtransactionwithwallet", child.hex(), wallet=WALLET)
    child = Transaction.from_hex(signed["hex"])
    r.send(child)
    a = [r.mine([lost, again], r.new("mined in a", "bech32")), r.mine([child, back])]
    since = [["listsinceblock", fork]]
    r.checkpoint("branch a", since)
    r.miner.call("invalidateblock", a[0].hash())
    r.tick()
    b = []
    for group in ([winner], [again], []):
        b.append(r.block(group))
        r.submit(b[-1])
        r.tick()
    r.checkpoint("branch b", since + [
        ["listsinceblock", a[1].hash()],
        ["listsinceblock", a[1].hash(), 1, False, False],
        ["listsinceblock", a[0].hash(), 2],
        ["listsinceblock", b[0].hash()],
        ["listsinceblock", None, 1],
        ["listtransactions", "*", 12],
    ])
    last = r.mine([back])
    r.checkpoint("branch b grows", since + [["listsinceblock", a[1].hash()]])
    r.act("invalidateblock", b[0].hash())
    r.checkpoint("branch b invalidated", since + [["listsinceblock", last.hash()]])
    r.act("invalidateblock", a[0].hash())
    r.checkpoint("both branches invalidated", since + [["listsinceblock", a[1].hash()]])
    r.act("reconsiderblock", a[0].hash())
    r.act("reconsiderblock", b[0].hash())
    r.checkpoint("branch b again", since)


def main():
    path = program(__doc__)
    with Node(path, [f"-keypool={KEYPOOL}"]) as node, Node(path) as miner:
        node.call("setmocktime", START_TIME)
        r = Recorder(node, miner)
        r.descriptors, imported = set_up(node, WALLET, TYPES.values())
        blocks = coinbases(r)
        received = receive(r, blocks)
        _, second = spend(r, blocks)
        better, _, stranger_coin = replace(r, received, second)
        reorganise(r, better, stranger_coin)
        write_rows(
            "history.json",
            {
                "bitcoind": node.version(),
                "start_time": START_TIME,
                "importdescriptors": [[item, answer] for item, answer in
                                      zip(r.descriptors, imported)],
                "steps": r.steps,
            },
        )
        print(len(r.steps), "steps", len(r.txids), "transactions")


if __name__ == "__main__":
    main()
