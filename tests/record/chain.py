#!/usr/bin/env python3
"""Records data/chain.hex, data/chain.json, data/signing-chain.json and data/reorg.json."""

from bitcoind import Node, program
from keys import Key
from kinds import Coin, all_kinds, sign, unsigned
from loaded import write_lines, write_rows
from wire import SEQUENCE_FINAL, Block, Input, Output, Transaction, p2wpkh

START_TIME = 1_700_000_000
BLOCK_SECONDS = 600
# Coinbases of these heights pay the kinds in turn and mature at 101 confirmations.
MATURING = 110
FINAL_HEIGHT = 300
SPENDS_PER_KIND = 9
RESERVED_PER_KIND = 9
UNIT = 5_000_000
FEE = 20_000
MANY = 100


def block_time(height):
    """Ten minutes apart, with a jitter that makes some blocks older than their parent."""
    # The first blocks have too few ancestors for the median to lie far enough back.
    jitter = 2 * ((height * 7919) % 1201) - 1200 if height > 20 else 0
    return START_TIME + BLOCK_SECONDS * height + jitter


class Recorder:
    """Mines on the node and keeps what it mined."""

    def __init__(self, node):
        self.node = node
        self.height = 0
        self.blocks = []
        self.spends = []

    def mine(self, transactions=(), script=None, change=None):
        """One block with exactly these transactions; `change` edits it before mining."""
        self.height += 1
        time = block_time(self.height)
        self.node.call("setmocktime", time)
        script = script or p2wpkh(Key("miner").pubkey())
        raw = [item.hex() for item in transactions]
        made = self.node.call("generateblock", f"raw({script.hex()})", raw, False)
        block = Block.from_hex(made["hex"])
        assert block.time == time, (block.time, time)
        if change is not None:
            change(block)
            block.set_root()
            block.mine()
        found = self.node.call("submitblock", block.hex())
        assert found is None, found
        self.blocks.append(block)
        return block

    def coinbase(self, height, kind):
        transaction = self.blocks[height - 1].transactions[0]
        return Coin(transaction.txid(), 0, transaction.outputs[0].value, kind)

    def note(self, transaction, coins, sighash):
        for index, coin in enumerate(coins):
            self.spends.append(
                {
                    "height": self.height + 1,
                    "txid": transaction.txid(),
                    "vin": index,
                    "kind": coin.kind.name,
                    "sighash": sighash,
                }
            )


def fan_out(node, source, kinds, count, values):
    """A transaction with `count` outputs of each kind, and the coins it makes."""
    outputs = [
        Output(values(len(kinds) * turn + index), kind.script)
        for turn in range(count)
        for index, kind in enumerate(kinds)
    ]
    change = sum(coin.value for coin in source) - sum(item.value for item in outputs) - FEE
    miner = Key("change").pubkey()
    outputs.append(Output(change, p2wpkh(miner)))
    transaction = sign(node, unsigned(source, outputs), source)
    coins = {kind.name: [] for kind in kinds}
    for index, item in enumerate(outputs[:-1]):
        kind = kinds[index % len(kinds)]
        coins[kind.name].append(Coin(transaction.txid(), index, item.value, kind))
    return transaction, coins


def spend_singly(recorder, kinds, coins):
    """Each kind with each sighash type, two outputs, one of them sometimes null data."""
    made = []
    for turn in range(7):
        for index, kind in enumerate(kinds):
            coin = coins[kind.name].pop()
            sighash = kind.sighashes()[turn]
            other = kinds[(index + turn + 1) % len(kinds)]
            outputs = [Output(coin.value // 2, other.script)]
            if (index + turn) % 3 == 0:
                outputs.append(Output(0, b"\x6a\x0arecorded %d" % turn))
            else:
                outputs.append(Output(coin.value // 2 - FEE, kinds[turn].script))
            transaction = sign(recorder.node, unsigned([coin], outputs), [coin], sighash)
            made.append((transaction, [coin], sighash))
    return made


def nonstandard(recorder, coin):
    """Outputs nobody signs for, and the transaction that spends them all."""
    puzzles = [
        (b"\x51", b"", ()),  # OP_TRUE
        (b"\x93\x55\x87", b"\x52\x53", ()),  # two numbers that add up to five
        (b"\x51\x02\x4e\x73", b"", ()),  # pay to anchor
        (b"\x52\x20" + bytes(range(32)), b"", (b"anything",)),  # future witness version
        (b"\x60\x28" + bytes(range(40)), b"", ()),  # version 16, longest program
    ]
    value = coin.value // 10
    outputs = [Output(value, script) for script, _, _ in puzzles]
    outputs.append(Output(0, b"\x6a"))
    outputs.append(Output(0, b"\x6a" + b"\x4c\x50" + b"n" * 80))
    outputs.append(Output(1, b"\x4c"))  # does not parse; never spendable
    outputs.append(Output(546, b""))
    first = sign(recorder.node, unsigned([coin], outputs), [coin])
    inputs = [
        Input(first.txid(), index, script, SEQUENCE_FINAL, witness)
        for index, (_, script, witness) in enumerate(puzzles)
    ]
    back = Output(value * len(puzzles) - FEE, p2wpkh(Key("change").pubkey()))
    second = Transaction(inputs, [back], version=1)
    return first, second


def chained(recorder, coin, kinds):
    """Transactions that each spend the one before, for one block."""
    made = []
    for kind in kinds:
        outputs = [Output(coin.value - FEE, kind.script)]
        transaction = sign(recorder.node, unsigned([coin], outputs), [coin])
        made.append((transaction, [coin], None))
        coin = Coin(transaction.txid(), 0, outputs[0].value, kind)
    return made


def edits():
    """Changes to blocks that stay valid: what other miners' blocks look like."""

    def no_commitment(block):
        block.transactions[0].outputs.pop()
        block.transactions[0].inputs[0].witness = []

    def version_bits(block):
        block.version = 0x3FFFE000

    def less_than_allowed(block):
        block.transactions[0].outputs[0].value -= 12_345

    def more_outputs(block):
        outputs = block.transactions[0].outputs
        outputs[0].value -= 1000
        outputs.insert(1, Output(600, p2wpkh(Key("pool").pubkey())))
        outputs.insert(2, Output(0, b"\x6a\x04pool"))

    def long_script(block):
        found = block.transactions[0].inputs[0]
        found.script = (found.script + b"/outrigger recording/" * 5)[:100]

    def version_four(block):
        block.version = 4

    return [no_commitment, version_bits, less_than_allowed, more_outputs, long_script, version_four]


def schedule(recorder, kinds):
    """Everything after the maturing blocks, as a list of blocks' transactions."""
    node = recorder.node
    plain = [kind for kind in kinds if kind.sequence == SEQUENCE_FINAL]
    by_height = {height: plain[(height - 1) % len(plain)] for height in range(1, MATURING + 1)}
    coinbase = lambda height: recorder.coinbase(height, by_height[height])

    first, coins = fan_out(node, [coinbase(1), coinbase(2)], kinds, SPENDS_PER_KIND,
                           lambda index: UNIT + 10 * index)
    recorder.note(first, [coinbase(1), coinbase(2)], None)
    recorder.mine([first])
    reserve_tx, reserve = fan_out(node, [coinbase(3), coinbase(4)], kinds, RESERVED_PER_KIND,
                                  lambda index: UNIT + 7 * index)
    recorder.note(reserve_tx, [coinbase(3), coinbase(4)], None)
    recorder.mine([reserve_tx])
    wpkh = next(kind for kind in kinds if kind.name == "wpkh")
    many_tx, many = fan_out(node, [coinbase(5)], [wpkh], MANY, lambda index: UNIT + index)
    recorder.note(many_tx, [coinbase(5)], None)
    recorder.mine([many_tx])
    while recorder.height < 124:
        recorder.mine()

    singles = spend_singly(recorder, kinds, coins)
    for start in range(0, len(singles), 2):
        group = singles[start : start + 2]
        for item in group:
            recorder.note(*item)
        recorder.mine([item[0] for item in group])
    # A lock time is a height or a time, so one of the two absolute locks stays out.
    everything = [coins[kind.name].pop() for kind in kinds if kind.name != "wsh-cltv-time"]
    total = sum(coin.value for coin in everything)
    mixed = sign(node, unsigned(everything, [Output(total - FEE, wpkh.script)]), everything)
    recorder.note(mixed, everything, None)
    recorder.mine([mixed])
    joined = sign(node, unsigned(many[wpkh.name], [Output(UNIT, wpkh.script)] * 3), many[wpkh.name])
    recorder.note(joined, many[wpkh.name], None)
    recorder.mine([joined])
    links = chained(recorder, coinbase(6), plain)
    for item in links:
        recorder.note(*item)
    recorder.mine([item[0] for item in links])
    first, second = nonstandard(recorder, coinbase(7))
    recorder.mine([first])
    recorder.mine([second])
    transactions = locked(recorder, [coinbase(8), coinbase(9), coinbase(10)])
    recorder.mine(transactions, change=claim_fees(len(transactions) * FEE))
    for change in edits():
        recorder.mine(change=change)
    height = 11
    while recorder.height < FINAL_HEIGHT:
        if height > 60:
            recorder.mine()
            continue
        coin = coinbase(height)
        transaction = sign(node, unsigned([coin], [Output(coin.value - FEE, wpkh.script)]), [coin])
        recorder.note(transaction, [coin], None)
        recorder.mine([transaction])
        height += 1
    return reserve


def claim_fees(fees):
    """The node's `generateblock` claims the subsidy only; miners also take the fees."""

    def change(block):
        block.transactions[0].outputs[0].value += fees

    return change


def locked(recorder, coins):
    """Lock times at their limits: height, median time past, and one that is disabled."""
    node = recorder.node
    median = node.call("getblockchaininfo")["mediantime"]
    plans = [
        (recorder.height, 0),  # below the height of the block: final
        (median - 1, SEQUENCE_FINAL - 1),
        (0xFFFFFFFF, SEQUENCE_FINAL),
    ]
    made = []
    for (lock_time, sequence), coin in zip(plans, coins):
        outputs = [Output(coin.value - FEE, p2wpkh(Key("change").pubkey()))]
        transaction = unsigned([coin], outputs, version=1, lock_time=lock_time)
        transaction.inputs[0].sequence = sequence
        made.append(sign(node, transaction, [coin]))
        recorder.note(made[-1], [coin], None)
    return made


def describe(recorder):
    node = recorder.node
    info = node.call("getblockchaininfo")
    kept = ("blocks", "bestblockhash", "bits", "target", "time", "mediantime", "chainwork")
    serialized = node.call("gettxoutsetinfo", "hash_serialized_3")
    return {
        "bitcoind": node.version(),
        "blocks": [
            {
                "height": index + 1,
                "hash": block.hash(),
                "time": block.time,
                "transactions": len(block.transactions),
            }
            for index, block in enumerate(recorder.blocks)
        ],
        "getblockchaininfo": {key: info[key] for key in kept},
        "gettxoutsetinfo": {
            "height": serialized["height"],
            "bestblock": serialized["bestblock"],
            "txouts": serialized["txouts"],
            "bogosize": serialized["bogosize"],
            "hash_serialized_3": serialized["hash_serialized_3"],
            "total_amount": serialized["total_amount"],
        },
        "spends": recorder.spends,
    }


def signing_chain(recorder, kinds, reserve):
    """Signing requests for outputs of the recorded chain, judged by the mempool's rules."""
    node = recorder.node
    rows = []
    for kind in kinds:
        for turn, sighash in enumerate(kind.sighashes()):
            coin = reserve[kind.name][turn]
            outputs = [Output(coin.value - FEE, p2wpkh(Key("change").pubkey()))]
            rows.append(signing_row(node, f"{kind.name} {sighash}", [coin], outputs, sighash))
    coins = [
        reserve[kind.name][7]
        for kind in kinds
        if not kind.wallet and kind.name != "wsh-cltv-time"
    ]
    outputs = [Output(sum(coin.value for coin in coins) - FEE, p2wpkh(Key("change").pubkey()))]
    rows.append(signing_row(node, "all kinds with keys", coins, outputs, None))
    return rows


def signing_row(node, name, coins, outputs, sighash):
    text = unsigned(coins, outputs).hex()
    prevtxs = [coin.prevtx() for coin in coins if coin.kind.extra]
    row = {"name": name}
    if coins[0].kind.wallet:
        row["wallet_descriptors"] = [coins[0].kind.wallet]
        row["method"] = "signrawtransactionwithwallet"
        row["params"] = [text, None, sighash]
        row["reply"] = node.call(row["method"], *row["params"], wallet=coins[0].kind.name)
    else:
        row["method"] = "signrawtransactionwithkey"
        wifs = sorted({wif for coin in coins for wif in coin.kind.wifs()})
        row["params"] = [text, wifs, prevtxs or None, sighash]
        row["reply"] = node.call(row["method"], *row["params"])
    accept = node.call("testmempoolaccept", [row["reply"]["hex"]], 0)[0]
    row["accepted"] = accept["allowed"]
    row["testmempoolaccept"] = accept
    return row


def reorg(recorder, bitcoind, reserve):
    """Branches A and B on the tip, and what a second node says when fed both."""
    node = recorder.node
    coin = reserve["wpkh"][8]
    again = reserve["pkh"][8]
    dropped = reserve["sh-wpkh"][8]
    target = p2wpkh(Key("change").pubkey())
    first = sign(node, unsigned([coin], [Output(coin.value - FEE, target)]), [coin])
    second = sign(node, unsigned([coin], [Output(coin.value - 2 * FEE, target)]), [coin])
    remined = sign(node, unsigned([again], [Output(again.value - FEE, target)]), [again])
    leftover = sign(node, unsigned([dropped], [Output(dropped.value - FEE, target)]), [dropped])
    fork = recorder.height
    script = [p2wpkh(Key(f"branch {name}").pubkey()) for name in "ab"]
    a = [recorder.mine(group, script[0]) for group in ([first], [remined], [leftover])]
    node.call("invalidateblock", a[0].hash())
    recorder.height = fork
    b = [recorder.mine(group, script[1]) for group in ([], [second], [remined], [])]
    steps = []
    with Node(bitcoind, ["-par=1"]) as fresh:
        fresh.call("setmocktime", block_time(fork + 4))
        for block in recorder.blocks[:fork]:
            assert fresh.call("submitblock", block.hex()) is None
        for name, block in [(f"a{i + 1}", x) for i, x in enumerate(a)] + [
            (f"b{i + 1}", x) for i, x in enumerate(b)
        ]:
            steps.append(
                {
                    "block": name,
                    "submitblock": fresh.call("submitblock", block.hex()),
                    "bestblockhash": fresh.call("getbestblockhash"),
                    "mempool": sorted(fresh.call("getrawmempool")),
                    "hash_serialized_3": fresh.call("gettxoutsetinfo")["hash_serialized_3"],
                }
            )
        tips = fresh.call("getchaintips")
    return {
        "bitcoind": node.version(),
        "fork_height": fork,
        "fork_hash": recorder.blocks[fork - 1].hash(),
        "spent_in_a": first.txid(),
        "spent_again_in_b": second.txid(),
        "in_both": remined.txid(),
        "only_in_a": leftover.txid(),
        "branch_a": [{"hash": block.hash(), "hex": block.hex()} for block in a],
        "branch_b": [{"hash": block.hash(), "hex": block.hex()} for block in b],
        "steps": steps,
        "getchaintips": tips,
    }


def main():
    bitcoind = program(__doc__)
    with Node(bitcoind, ["-par=1"]) as node:
        recorder = Recorder(node)
        node.call("setmocktime", START_TIME)
        kinds = all_kinds(node)
        plain = [kind for kind in kinds if kind.sequence == SEQUENCE_FINAL]
        for height in range(1, MATURING + 1):
            recorder.mine(script=plain[(height - 1) % len(plain)].script)
        reserve = schedule(recorder, kinds)
        write_lines("chain.hex", [block.hex() for block in recorder.blocks])
        write_rows("chain.json", describe(recorder))
        rows = signing_chain(recorder, kinds, reserve)
        write_rows("signing-chain.json", {"bitcoind": node.version(), "rows": rows})
        refused = [row["name"] for row in rows if not row["accepted"]]
        assert not refused, refused
        write_rows("reorg.json", reorg(recorder, bitcoind, reserve))


if __name__ == "__main__":
    main()
