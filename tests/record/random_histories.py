#!/usr/bin/env python3
"""Records data/random-histories.json: wallets through random payments, blocks, reorganisations, double spends,
replacements, abandons and late imports."""

import random

from bitcoind import Node, RpcError, program
from history import COIN, FEE, KEYPOOL, NOT_REPLACEABLE, REPLACEABLE, START_TIME, TYPES, Recorder, set_up
from keys import Key
from kinds import with_checksum
from loaded import write_rows
from wire import Input, Output, Transaction, p2wpkh

SEQUENCES = 12
STEPS = 16
# Coinbases of the stranger that the sequences spend, and blocks until the first of them can be spent.
BASE_BLOCKS = 112
# Keys that are compared elsewhere, or that say the same of every transaction: the file would be twice as long.
LEFT_OUT = ["hex", "in_mempool", "lastprocessedblock", "parent_descs"]
DUST = 1000


def slim(value):
    if isinstance(value, dict):
        return {key: slim(item) for key, item in value.items() if key not in LEFT_OUT}
    if isinstance(value, list):
        return [slim(item) for item in value]
    return value


class Sequence(Recorder):
    """One wallet's history, on the chain that the others have left."""

    def __init__(self, base, number):
        super().__init__(base.node, base.miner)
        self.__dict__.update(time=base.time, nonce=base.nonce, coins=base.coins, raw=base.raw)
        self.random = random.Random(f"history {number}")
        self.wallet = f"random-{number}"
        self.late = Key(f"late {number}")
        self.is_late = True
        self.start = self.node.call("getbestblockhash")
        self.hashes = [self.start]
        self.made = []
        self.rescanned = []
        self.told = {}
        self.requests, _ = set_up(self.node, self.wallet, [TYPES["bech32"]])

    # The wallet's and everyone else's coins.

    def strangers_coins(self):
        found = []
        for txid, vout in self.coins:
            coin = self.node.call("gettxout", txid, vout, True)
            if coin and not (coin["coinbase"] and coin["confirmations"] < 100):
                found.append((txid, vout, round(float(coin["value"].text) * COIN)))
        return found

    def own_coins(self):
        listed = self.node.call("listunspent", 0, 9999999, [], True, wallet=self.wallet)
        # The node's order is that of a salted hash table.
        return sorted((item["txid"], item["vout"], round(float(item["amount"].text) * COIN))
                      for item in listed if item["solvable"] and item["spendable"])

    def target(self):
        """Where a payment goes: mostly to the wallet."""
        kind = self.random.choice(["labelled", "labelled", "plain", "change", "late", "stranger"])
        if kind == "change":
            return self.script(self.act("getrawchangeaddress", wallet=self.wallet))
        if kind == "late":
            return p2wpkh(self.late.pubkey())
        if kind == "stranger":
            return self.stranger.script
        label = "" if kind == "plain" else self.random.choice(["rent", "shop"])
        return self.script(self.act("getnewaddress", label, wallet=self.wallet))

    def outputs(self, total, fee, rest):
        """Some outputs, and one for what they leave."""
        outputs = []
        for _ in range(self.random.randint(1, 3)):
            value = self.random.randint(DUST, total // 5)
            outputs.append(Output(value, self.target()))
        outputs.append(Output(total - fee - sum(item.value for item in outputs), rest))
        return outputs

    def sign(self, coins, own, fee):
        sequence = self.random.choice([REPLACEABLE, REPLACEABLE, NOT_REPLACEABLE])
        inputs = [Input(txid, vout, sequence=sequence) for txid, vout, _ in coins]
        values = [value for _, _, value in coins]
        if not own:
            made = self.stranger.sign(inputs, self.outputs(sum(values), fee, self.stranger.script), values)
        else:
            rest = self.script(self.act("getrawchangeaddress", wallet=self.wallet))
            text = Transaction(inputs, self.outputs(sum(values), fee, rest)).hex()
            reply = self.node.call("signrawtransactionwithwallet", text, wallet=self.wallet)
            if not reply["complete"]:
                return None
            made = Transaction.from_hex(reply["hex"])
        made.own, made.spent = own, coins
        return made

    def keep(self, made):
        self.made.append(made)
        self.raw[made.txid()] = made
        for vout, output in enumerate(made.outputs):
            if output.script == self.stranger.script:
                self.coins.append((made.txid(), vout))

    def fee(self):
        # Each pays more than all before it, so that it can take the place of any of them.
        self.fees = getattr(self, "fees", 0) + 1
        return FEE * self.fees

    # Steps.

    def pay(self, own):
        coins = self.own_coins() if own else self.strangers_coins()
        coins = [coin for coin in coins if coin[2] > 100 * DUST + 40 * FEE]
        if not coins:
            return
        chosen = self.random.sample(coins, min(len(coins), self.random.choice([1, 1, 2])))
        made = self.sign(chosen, own, self.fee())
        if made and self.offer(made):
            self.keep(made)

    def offer(self, made):
        self.step_tick(60)
        reply, error = self.node.reply("sendrawtransaction", made.hex(), 0)
        if error is None:
            self.actions.append(["sendrawtransaction", [made.hex(), 0], reply])
        return error is None

    def rival(self):
        """A transaction that spends what another spends which is in no block."""
        pool = self.node.call("getrawmempool")
        open_ones = [made for made in self.made if made.txid() in pool]
        if not open_ones:
            return None
        other = self.random.choice(open_ones)
        return self.sign(other.spent[:1], other.own, self.fee())

    def replace(self):
        made = self.rival()
        if made and self.offer(made):
            self.keep(made)

    def mine_some(self, depth=0):
        """A block on the tip, or a branch that takes the place of the last blocks."""
        candidates = list(self.made)
        if depth:
            self.miner.call("invalidateblock", self.node.call("getblockhash", self.height() - depth + 1))
        else:
            pool = self.node.call("getrawmempool")
            candidates = [made for made in candidates if made.txid() in pool]
        for _ in range(depth + 1):
            wanted = [made for made in candidates if self.random.random() < 0.6]
            if self.random.random() < 0.4:
                made = self.rival()
                if made:
                    self.keep(made)
                    wanted.insert(0, made)
            fitting = []
            for made in wanted:
                try:
                    self.miner.call("generateblock", f"raw({self.stranger.script.hex()})",
                                    [item.hex() for item in fitting + [made]], False)
                    fitting.append(made)
                except RpcError:
                    pass
            script = self.stranger.script
            if self.random.random() < 0.3:
                script = self.script(self.act("getnewaddress", "mined", wallet=self.wallet))
            self.step_tick(600)
            block = self.block(fitting, script)
            self.submit(block)
            if script == self.stranger.script:
                self.coins.append((block.transactions[0].txid(), 0))

    def height(self):
        return self.node.call("getblockcount")

    def reorganise(self):
        own = self.height() - self.node.call("getblockheader", self.start)["height"]
        if own:
            self.mine_some(self.random.randint(1, min(own, 3)))

    def abandon(self):
        if not self.txids:
            return
        txid = self.random.choice(self.txids)
        found = self.node.call("gettransaction", txid, wallet=self.wallet)
        # Release 29 gives the coinbase of a block that was left up by itself.
        if found.get("generated") and found["confirmations"] == 0:
            return
        result, error = self.node.reply("abandontransaction", txid, wallet=self.wallet)
        self.actions.append(["abandontransaction", [txid], {"error": error} if error else result])

    def import_late(self):
        if not self.is_late:
            return
        self.is_late = False
        self.step_tick(60)
        request = {"desc": with_checksum(self.node, f"wpkh({self.late.wif()})"), "timestamp": 0, "label": "late"}
        before = set(self.known())
        self.act("importdescriptors", [request], wallet=self.wallet)
        # The node keeps amounts that it has summed up before the import, until it reads the wallet again.
        self.node.call("unloadwallet", self.wallet)
        self.node.call("loadwallet", self.wallet)
        self.rescanned += sorted(set(self.known()) - before)

    def step_tick(self, seconds):
        # What came before is met by the clock of before.
        self.node.call("syncwithvalidationinterfacequeue")
        self.tick(seconds)

    def known(self):
        listed = self.node.call("listtransactions", "*", 100000, wallet=self.wallet)
        return sorted({item["txid"] for item in listed})

    def step(self):
        kinds = [
            (5, lambda: self.pay(False)),
            (5, lambda: self.pay(True)),
            (3, self.replace),
            (5, self.mine_some),
            (3, self.reorganise),
            (2, self.abandon),
            (2, self.import_late),
        ]
        self.random.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0]()

    def look(self):
        """What the wallet says now."""
        self.node.call("syncwithvalidationinterfacequeue")
        self.txids += [txid for txid in self.known() if txid not in self.txids]
        since = self.random.choice(self.hashes[-5:])
        queries = [["listsinceblock", since, self.random.randint(1, 4)]]
        if len(self.steps) % 2:
            queries.append(["listtransactions", "*", 4, self.random.randint(0, 4)])
        replies = []
        for method, *params in queries:
            result = slim(self.node.call(method, *params, wallet=self.wallet))
            if method == "listsinceblock":
                result["transactions"].sort(key=lambda item: item["txid"])
            replies.append([method, params, result])
        self.steps.append({"actions": self.actions, "gettransaction": self.news(), "queries": replies})
        self.actions = []

    def news(self):
        """The transactions of which there is more to say than that they are deeper than before, and one other."""
        news = {}
        other = self.random.choice(self.txids) if self.txids else None
        for txid in self.txids:
            found = slim(self.node.call("gettransaction", txid, wallet=self.wallet))
            state = {key: value for key, value in found.items() if key != "confirmations"}
            if txid == other or self.told.get(txid) != state:
                news[txid] = found
            self.told[txid] = state
        return news

    def play(self):
        self.pay(False)
        self.look()
        self.mine_some()
        self.look()
        while len(self.steps) < STEPS:
            self.step()
            if self.actions:
                self.look()
        self.node.call("unloadwallet", self.wallet)
        return {
            "wallet": self.wallet,
            "importdescriptors": self.requests,
            "rescanned": self.rescanned,
            "steps": self.steps,
        }


def main():
    path = program(__doc__)
    with Node(path, [f"-keypool={KEYPOOL}"]) as node, Node(path) as miner:
        node.call("setmocktime", START_TIME)
        base = Recorder(node, miner)
        base.coins, base.raw = [], {}
        for _ in range(BASE_BLOCKS):
            block = base.mine()
            base.coins.append((block.transactions[0].txid(), 0))
        sequences = []
        for number in range(SEQUENCES):
            sequence = Sequence(base, number)
            sequences.append(sequence.play())
            base.time, base.nonce = sequence.time, sequence.nonce
        write_rows(
            "random-histories.json",
            {
                "bitcoind": node.version(),
                "start_time": START_TIME,
                "base": [params[0] for method, params, _ in base.actions if method == "submitblock"],
                "base_time": START_TIME + 600 * BASE_BLOCKS,
                "sequences": sequences,
            },
        )
        print(len(sequences), "wallets", sum(len(item["steps"]) for item in sequences), "steps")


if __name__ == "__main__":
    main()
