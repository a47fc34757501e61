#!/usr/bin/env python3
"""Records data/bad-blocks.json: blocks on the recorded tip and what the node says to them."""

from bitcoind import Node, program
from keys import Key, N
from loaded import load_chain, recorded, write_rows
from texts import der
from wire import (
    SEQUENCE_FINAL,
    Block,
    Input,
    Output,
    Transaction,
    p2wpkh,
    push,
    script_number,
)

# Longer runs of one byte are written as [byte, count].
LONG_RUN = 2000
MAX_MONEY = 2_100_000_000_000_000
MAX_SIGOPS_COST = 80_000


class Recorder:
    def __init__(self, node):
        self.node = node
        self.chain = load_chain(node)
        self.tip = Block.from_hex(self.chain[-1])
        self.height = len(self.chain)
        self.signed = {
            row["name"]: row["reply"]["hex"] for row in recorded("signing-chain.json")["rows"]
        }
        self.rows = []

    def spend(self, name):
        """A signed, valid transaction that spends a reserved output of the chain."""
        return Transaction.from_hex(self.signed[name])

    def block(self, transactions=()):
        """A block on the tip with these transactions, valid as far as they are."""
        script = p2wpkh(Key("bad blocks").pubkey())
        made = self.node.call("generateblock", f"raw({script.hex()})", [], False)
        block = Block.from_hex(made["hex"])
        # Makes each case a block of its own.
        block.transactions[0].inputs[0].script += bytes([2]) + len(self.rows).to_bytes(2, "big")
        block.transactions += transactions
        return block

    def finish(self, block, commit=True, root=True):
        if commit:
            block.set_commitment()
        if root:
            block.set_root()
        block.mine()
        return block

    def answer(self, method, *params):
        result, error = self.node.reply(method, *params)
        return result if error is None else error

    def record(self, name, block):
        """Proposes, submits, submits again and proposes again."""
        text = block if isinstance(block, str) else block.hex()
        proposal = [{"mode": "proposal", "rules": ["segwit"], "data": text}]
        row = {"name": name}
        row.update(compact(text))
        row["proposal"] = self.answer("getblocktemplate", *proposal)
        row["submitblock"] = self.answer("submitblock", text)
        row["accepted"] = self.node.call("getbestblockhash") != self.tip.hash()
        row["submitblock_again"] = self.answer("submitblock", text)
        row["proposal_again"] = self.answer("getblocktemplate", *proposal)
        if row["accepted"]:
            self.node.call("invalidateblock", self.node.call("getbestblockhash"))
        assert self.node.call("getbestblockhash") == self.tip.hash()
        self.rows.append(row)

    def case(self, name, transactions=(), edit=None, commit=True, root=True, after=None):
        """A block with these transactions, edited before the hashes are computed."""
        block = self.block(transactions)
        if edit is not None:
            edit(block)
        self.finish(block, commit, root)
        if after is not None:
            after(block)
        self.record(name, block)
        return block


def compact(text):
    """`hex`, or `hex_runs` where a long run of one byte makes up most of it."""
    runs, plain, at = [], "", 0
    while at < len(text):
        byte = text[at : at + 2]
        end = at
        while text[end : end + 2] == byte:
            end += 2
        if (end - at) // 2 >= LONG_RUN:
            runs += [[plain, 1], [byte, (end - at) // 2]]
            plain = ""
        else:
            plain += text[at:end]
        at = max(end, at + 2)
    if not runs:
        return {"hex": text}
    return {"hex_runs": runs + [[plain, 1]]}


def headers(recorder):
    def header(name, **fields):
        def after(block):
            for field, value in fields.items():
                setattr(block, field, value)
            block.mine()

        recorder.case(name, after=after)

    median = recorder.node.call("getblockchaininfo")["mediantime"]
    header("bits above the limit", bits=0x2100FFFF)
    header("bits below the limit", bits=0x207FFFFE)
    header("time is the median", time=median)
    header("time is one past the median", time=median + 1)
    header("time is 1", time=1)
    header("time far ahead", time=0xFFFFFFFF)
    # Not a negative version: this node reads bit 31 as a header of another format.
    for version in (0, 1, 2, 3, 4, 0x7FFFFFFF):
        header(f"version {version:#x}", version=version)
    header("unknown parent", previous="11" * 32)
    block = recorder.finish(recorder.block())
    block.mine(low_hash=False)
    recorder.record("hash above the target", block)


def roots(recorder):
    def flip(block):
        block.root = block.root[:-2] + f"{int(block.root[-2:], 16) ^ 1:02x}"
        block.mine()

    recorder.case("merkle root", after=flip)
    pair = [recorder.spend("pkh ALL"), recorder.spend("wpkh ALL")]

    def repeat(block):
        block.transactions.append(block.transactions[-1])

    recorder.case("last transaction repeated, same root", pair, after=repeat)
    recorder.case("a transaction twice", [pair[0], pair[0]])
    recorder.case("two transactions", pair)


def coinbases(recorder):
    def coinbase(name, edit, transactions=()):
        recorder.case(name, transactions, lambda block: edit(block.transactions[0]))

    def script(data):
        def edit(transaction):
            transaction.inputs[0].script = data

        return edit

    def value(change):
        def edit(transaction):
            transaction.outputs[0].value += change

        return edit

    height = recorder.height + 1
    coinbase("coinbase one satoshi too high", value(1))
    coinbase("coinbase far too high", value(MAX_MONEY // 2))
    spend = recorder.spend("pkh ALL")
    coinbase("coinbase takes the fee", value(20_000), [spend])
    coinbase("coinbase takes more than the fee", value(20_001), [spend])
    coinbase("coinbase takes less", value(-1))
    coinbase("coinbase script of one byte", script(b"\1"))
    coinbase("coinbase script of 101 bytes", script(script_number(height) + b"\0" * 98))
    coinbase("coinbase script of 100 bytes", script(script_number(height) + b"\0" * 97))
    coinbase("coinbase without a height", script(b"\0\0"))
    coinbase("coinbase with the parent's height", script(script_number(height - 1) + b"\0"))
    coinbase("coinbase with a height that is not minimal",
             script(b"\3" + height.to_bytes(3, "little")))
    second = recorder.block().transactions[0]
    recorder.case("two coinbases", [second])
    recorder.case("first transaction is no coinbase", edit=lambda block: block.transactions.insert(
        0, recorder.spend("pkh ALL")), commit=False)
    recorder.case("no transactions", edit=lambda block: block.transactions.clear(), commit=False,
                  root=False)

    def two_inputs(transaction):
        transaction.inputs.append(Input("11" * 32, 0))

    recorder.case("coinbase with two inputs", edit=lambda block: two_inputs(block.transactions[0]))

    def no_outputs(block):
        block.transactions[0].outputs.clear()

    recorder.case("coinbase without outputs", edit=no_outputs, commit=False)


def plain_transactions(recorder):
    """Rules that need no chain."""
    payee = p2wpkh(Key("payee").pubkey())
    spend = recorder.spend("pkh ALL")
    source = lambda: Input(spend.inputs[0].txid, spend.inputs[0].vout)

    def outputs(name, *values):
        transaction = Transaction([source()], [Output(value, payee) for value in values])
        recorder.case(name, [transaction])

    outputs("no outputs")
    outputs("negative output", -1)
    outputs("output too large", MAX_MONEY + 1)
    outputs("outputs too large together", MAX_MONEY, 1)
    outputs("outputs above inputs", spend.outputs[0].value + 20_001)
    empty = Transaction([], [Output(1, payee)])
    recorder.case("no inputs, read as a witness marker", [empty])
    recorder.case("no inputs and no outputs", [Transaction([], [])])
    recorder.case("the same input twice", [Transaction([source(), source()], spend.outputs)])
    recorder.case("null prevout beside another",
                  [Transaction([source(), Input("00" * 32, 0xFFFFFFFF)], spend.outputs)])
    recorder.case("transaction too large",
                  [Transaction([source()], [Output(1, b"\x6a" + b"\0" * 1_000_000)])])
    half = Transaction([source()], [Output(1, b"\x6a" + b"\0" * 500_000)])
    other = Transaction([Input("22" * 32, 0)], [Output(1, b"\x6a" + b"\0" * 500_000)])
    recorder.case("block too large without witnesses", [half, other])
    heavy = recorder.spend("wpkh ALL")
    heavy.inputs[0].witness.append(b"\0" * 3_999_500)
    recorder.case("block too heavy", [heavy])
    sigops = MAX_SIGOPS_COST // 4
    full = Transaction([source()], [Output(1, b"\xac" * (sigops + 1))])
    recorder.case("one legacy sigop too many", [full])
    nearly = recorder.spend("sh-multi-2of3 ALL|ANYONECANPAY")
    filler = recorder.spend("pkh NONE")
    filler.outputs.append(Output(0, b"\xac" * (sigops - 2)))
    recorder.case("sigops of a redeem script too many", [filler, nearly])
    recorder.case("sigops at the limit", [filler])


def finality(recorder):
    height = recorder.height + 1
    median = recorder.node.call("getblockchaininfo")["mediantime"]
    spend = recorder.spend("pkh ALL")

    def locked(name, lock_time, sequence=0, version=2):
        found = Input(spend.inputs[0].txid, spend.inputs[0].vout, sequence=sequence)
        recorder.case(name, [Transaction([found], spend.outputs, version, lock_time)])

    locked("lock time is this height", height)
    locked("lock time is the median", median)
    locked("lock time far ahead, sequence final, not signed", 0xFFFFFFFF, SEQUENCE_FINAL)
    locked("relative lock of 1000 blocks", 0, 1000)
    locked("relative lock in time", 0, (1 << 22) | 0xFFFF)
    locked("relative lock disabled, not signed", 0, (1 << 31) | 1000)
    locked("relative lock in version 1, not signed", 0, 1000, 1)
    coinbase = recorder.block()
    coinbase.transactions[0].lock_time = height
    coinbase.transactions[0].inputs[0].sequence = 0
    recorder.record("coinbase is not final", recorder.finish(coinbase))


def inputs(recorder):
    payee = p2wpkh(Key("payee").pubkey())
    pkh, wpkh = recorder.spend("pkh ALL"), recorder.spend("wpkh ALL")

    def spending(name, txid, vout):
        recorder.case(name, [Transaction([Input(txid, vout)], [Output(1, payee)])])

    spending("unknown transaction", "11" * 32, 0)
    spending("index beyond the outputs", pkh.inputs[0].txid, 99_999)
    gone = Block.from_hex(recorder.chain[110]).transactions[1].inputs[0]
    spending("spent on the chain", gone.txid, gone.vout)
    again = recorder.spend("pkh ALL")
    again.outputs[0].value -= 1
    recorder.case("spent twice in the block", [pkh, again])
    child = Transaction([Input(pkh.txid(), 0)], [Output(1, payee)])
    recorder.case("child before its parent", [child, pkh])
    recorder.case("child after its parent, not signed", [pkh, child])
    for depth in (100, 99, 1):
        young = Block.from_hex(recorder.chain[recorder.height - depth]).transactions[0].txid()
        spending(f"coinbase with {depth} confirmations", young, 0)
    spending("the block's own coinbase", recorder.block().transactions[0].txid(), 0)
    recorder.case("valid parent with witness", [wpkh])


def witnesses(recorder):
    wpkh = recorder.spend("wpkh ALL")
    cases = {
        "reserved value of 31 bytes": [b"\0" * 31],
        "reserved value of 33 bytes": [b"\0" * 33],
        "two reserved values": [b"\0" * 32, b"\0" * 32],
        "another reserved value, old commitment": [b"\1" * 32],
        "no coinbase witness": [],
    }
    for name, witness in cases.items():
        def after(block, witness=witness):
            block.transactions[0].inputs[0].witness = witness

        recorder.case(name, [wpkh], after=after)
        if not witness:
            recorder.case(f"{name}, no other witness", after=after)

    def another(block):
        block.transactions[0].inputs[0].witness = [b"\1" * 32]

    recorder.case("another reserved value, right commitment", [wpkh], another)

    def spoil(block):
        script = block.transactions[0].outputs[-1].script
        block.transactions[0].outputs[-1].script = script[:-1] + bytes([script[-1] ^ 1])

    block = recorder.block([wpkh])
    block.set_commitment()
    spoil(block)
    recorder.record("wrong commitment", recorder.finish(block, commit=False))

    def none(block):
        block.transactions[0].outputs.pop()
        block.transactions[0].inputs[0].witness = []

    recorder.case("witness without commitment", [wpkh], none, commit=False)
    recorder.case("coinbase witness without commitment",
                  edit=lambda block: block.transactions[0].outputs.pop(), commit=False)
    recorder.case("no commitment, no witness", [recorder.spend("pkh ALL")], none, commit=False)

    def twice(block):
        first = block.transactions[0].outputs[-1]
        block.transactions[0].outputs.append(Output(0, first.script[:6] + b"\0" * 32))

    recorder.case("the last commitment counts", [wpkh], twice)
    block = recorder.block([wpkh])
    block.set_commitment()
    twice(block)
    recorder.record("the last commitment is wrong", recorder.finish(block, commit=False))


def scripts(recorder):
    """A spoiled signature and no signature at all, for each kind of output."""
    for name, text in recorder.signed.items():
        if not name.endswith((" None", " DEFAULT")):
            continue
        kind = name.rsplit(" ", 1)[0]
        spoiled = Transaction.from_hex(text)
        signed = spoiled.inputs[0]
        for index, item in enumerate(signed.witness):
            if len(item) >= 64 and (item[0] == 0x30 or len(item) in (64, 65)):
                signed.witness[index] = item[:40] + bytes([item[40] ^ 1]) + item[41:]
                break
        else:
            at = signed.script.find(b"\x30") + 40
            signed.script = (
                signed.script[:at] + bytes([signed.script[at] ^ 1]) + signed.script[at + 1 :]
            )
        recorder.case(f"{kind}: spoiled signature", [spoiled])
        bare = Transaction.from_hex(text)
        bare.inputs[0].script, bare.inputs[0].witness = b"", []
        recorder.case(f"{kind}: nothing to satisfy it", [bare])
        changed = Transaction.from_hex(text)
        changed.outputs[0].value -= 1
        recorder.case(f"{kind}: output changed after signing", [changed])


def script_edges(recorder):
    """What policy refuses and consensus allows, and the other way round."""
    def edited(kind, what, edit):
        found = next(name for name in recorder.signed if name.rsplit(" ", 1)[0] == kind)
        transaction = recorder.spend(found)
        edit(transaction.inputs[0])
        recorder.case(f"{kind}: {what}", [transaction])

    def script(change):
        def edit(item):
            item.script = change(item.script)

        return edit

    def witness(change):
        def edit(item):
            item.witness = change(item.witness)

        return edit

    edited("pkh", "an extra push in front", script(lambda data: b"\x51" + data))
    edited("pkh", "an operator in the input script", script(lambda data: data + b"\x61"))
    edited("pkh", "a witness", witness(lambda _: [b"x"]))
    edited("sh-pkh", "an operator in the input script", script(lambda data: b"\x61" + data))
    edited("multi-2of3", "OP_1 as the extra item", script(lambda data: b"\x51" + data[1:]))
    edited("sh-multi-2of3", "OP_1 as the extra item", script(lambda data: b"\x51" + data[1:]))
    edited("wsh-multi-2of3", "one as the extra item",
           witness(lambda items: [b"\1"] + items[1:]))
    edited("wpkh", "an input script", script(lambda _: b"\x51"))
    edited("wpkh", "one item too many", witness(lambda items: [b""] + items))
    edited("wpkh", "items swapped", witness(lambda items: items[::-1]))
    edited("sh-wpkh", "an extra push in front", script(lambda data: b"\x51" + data))
    edited("sh-wpkh", "no witness", witness(lambda _: []))
    edited("wsh-pk", "an extra item", witness(lambda items: [b""] + items))
    edited("wsh-pk", "another script", witness(lambda items: items[:1] + [b"\x51"]))
    edited("wsh-recovery-now", "another branch", witness(lambda items: [b""] + items[-1:]))
    edited("rawtr", "an input script", script(lambda _: b"\x51"))
    edited("rawtr", "an annex", witness(lambda items: items + [b"\x50"]))
    edited("rawtr", "a signature of 63 bytes", witness(lambda items: [items[0][:-1]]))
    edited("rawtr", "sighash byte zero", witness(lambda items: [items[0] + b"\0"]))
    edited("rawtr", "sighash byte one", witness(lambda items: [items[0] + b"\1"]))
    edited("rawtr", "sighash byte four", witness(lambda items: [items[0] + b"\4"]))
    edited("tr-leaf-pk", "control block one byte short",
           witness(lambda items: items[:-1] + [items[-1][:-1]]))
    edited("tr-leaf-pk", "control block with another key",
           witness(lambda items: items[:-1] + [items[-1][:-1] + b"\1"]))
    edited("tr-leaf-pk", "another leaf version",
           witness(lambda items: items[:-1] + [bytes([items[-1][0] ^ 2]) + items[-1][1:]]))
    edited("tr-leaf-pk", "another leaf", witness(lambda items: items[:1] + [b"\x51"] + items[-1:]))
    edited("tr-leaf-pk", "empty signature", witness(lambda items: [b""] + items[1:]))
    edited("tr-leaf-multi-a", "one signature less",
           witness(lambda items: [b""] + items[1:]))
    edited("wsh-csv", "sequence one short", lambda item: setattr(item, "sequence", 9))
    edited("wsh-csv", "sequence final", lambda item: setattr(item, "sequence", SEQUENCE_FINAL))
    edited("wsh-cltv", "sequence final", lambda item: setattr(item, "sequence", SEQUENCE_FINAL))
    high = recorder.spend("pkh ALL")
    high.inputs[0].script = high_s(high.inputs[0].script)
    recorder.case("pkh: high S", [high])


def high_s(script):
    """The same signature with its S negated, in an input script that starts with it."""
    signature = script[1 : 1 + script[0]]
    r_size = signature[3]
    r = int.from_bytes(signature[4 : 4 + r_size], "big")
    s = N - int.from_bytes(signature[6 + r_size : -1], "big")
    return push(der(r, s, signature[-1])) + script[1 + script[0] :]


def relations(recorder):
    """Blocks that are known already, or that do not extend the tip."""
    recorder.record("the tip", recorder.chain[-1])
    recorder.record("a block below the tip", recorder.chain[9])
    side = Block.from_hex(recorder.chain[-1])
    side.transactions[0].inputs[0].script += b"\1\1"
    recorder.record("a sibling of the tip", recorder.finish(side))
    low = Block.from_hex(recorder.chain[0])
    low.transactions[0].inputs[0].script += b"\1\1"
    recorder.record("a sibling of block 1", recorder.finish(low))
    wrong = Block.from_hex(recorder.chain[-1])
    wrong.transactions[0].inputs[0].script = b"\0\0\0"
    recorder.record("a sibling of the tip without a height", recorder.finish(wrong))
    greedy = Block.from_hex(recorder.chain[-1])
    greedy.transactions[0].outputs[0].value += 1
    recorder.record("a sibling of the tip that takes too much", recorder.finish(greedy))

    parent = recorder.case("an invalid parent",
                           edit=lambda block: setattr(block.transactions[0].outputs[0], "value",
                                                      MAX_MONEY))
    child = recorder.block()
    child.previous = parent.hash()
    child.transactions[0].inputs[0].script = script_number(recorder.height + 2) + b"\0"
    child.time += 1
    recorder.record("a child of an invalid block", recorder.finish(child))


def texts(recorder):
    good = recorder.finish(recorder.block()).hex()
    recorder.record("not hex", "zz")
    recorder.record("empty text", "")
    recorder.record("a header alone", good[:160])
    recorder.record("a byte short", good[:-2])
    recorder.record("an odd number of digits", good[:-1])
    recorder.record("a byte too many", good + "00")
    recorder.record("nothing wrong", recorder.finish(recorder.block()))


def main():
    # With script threads a bad script reads `block-validation-failed`.
    with Node(program(__doc__), ["-par=1"]) as node:
        recorder = Recorder(node)
        for part in (headers, roots, coinbases, plain_transactions, finality, inputs, witnesses,
                     scripts, script_edges, relations, texts):
            part(recorder)
        write_rows("bad-blocks.json", {"bitcoind": node.version(), "rows": recorder.rows})
        print(len(recorder.rows), "blocks")


if __name__ == "__main__":
    main()
