#!/usr/bin/env python3
"""Records data/signing.json: what the node answers to signing requests."""

from bitcoind import Node, Number, program
from keys import Key, sha256, taproot_output
from kinds import Coin, Kind, all_kinds, unsigned, with_checksum, RELATIVE_BLOCKS
from loaded import load_chain, recorded, write_rows
from wire import (
    SEQUENCE_FINAL,
    Block,
    Input,
    Output,
    Transaction,
    multisig,
    p2pk,
    p2pkh,
    p2sh,
    p2tr,
    p2wpkh,
    p2wsh,
    push,
)

VALUE = 100_000_000
WITH_KEY = "signrawtransactionwithkey"
WITH_WALLET = "signrawtransactionwithwallet"


def coin(kind, label=""):
    """A made-up outpoint of a kind."""
    return Coin(sha256(f"outpoint {kind.name} {label}".encode()).hex(), 1, VALUE, kind)


def pay(value=VALUE - 10_000, count=2):
    script = p2wpkh(Key("payee").pubkey())
    return [Output(value // count, script) for _ in range(count)]


class Recorder:
    def __init__(self, node):
        self.node = node
        self.rows = []
        self.kinds = {kind.name: kind for kind in all_kinds(node)}

    def ask(self, name, method, params, wallet=None, chain=False):
        """Records one request; gives the hex it was answered with, if any."""
        result, error = self.node.reply(method, *params, wallet=wallet.name if wallet else None)
        row = {"name": name, "method": method}
        if wallet is not None:
            row["wallet_descriptors"] = [wallet.wallet]
        if chain:
            row["chain"] = True
        row["params"] = params
        if error is not None:
            row["error"] = error
        else:
            row["reply"] = result
        assert name not in {item["name"] for item in self.rows}, name
        self.rows.append(row)
        return result["hex"] if result else None

    def keyed(self, name, text, keys, prevtxs, *sighash, chain=False):
        wifs = [key.wif() if isinstance(key, Key) else key for key in keys]
        return self.ask(name, WITH_KEY, [text, wifs, prevtxs, *sighash], chain=chain)

    def for_kind(self, name, text, kind, prevtxs, *sighash):
        """The same by keys or by the kind's wallet."""
        if kind.wallet:
            return self.ask(name, WITH_WALLET, [text, prevtxs, *sighash], kind)
        return self.keyed(name, text, kind.keys, prevtxs, *sighash)


def each_sighash(recorder):
    for kind in recorder.kinds.values():
        spent = coin(kind)
        text = unsigned([spent], pay()).hex()
        types = [None, "DEFAULT"] + kind.sighashes()[1:]
        for sighash in types:
            recorder.for_kind(f"{kind.name}: {sighash}", text, kind, [spent.prevtx()], sighash)
        signed = recorder.for_kind(f"{kind.name}: no sighash argument", text, kind,
                                   [spent.prevtx()])
        recorder.for_kind(f"{kind.name}: signed again", signed, kind, [spent.prevtx()])
        recorder.for_kind(f"{kind.name}: signed again with another sighash", signed, kind,
                          [spent.prevtx()], "NONE|ANYONECANPAY")
        recorder.keyed(f"{kind.name}: complete, no keys", signed, [], [spent.prevtx()])


def missing_keys(recorder):
    for kind in recorder.kinds.values():
        spent = coin(kind, "missing")
        text = unsigned([spent], pay()).hex()
        recorder.keyed(f"{kind.name}: no keys", text, [], [spent.prevtx()])
        recorder.keyed(f"{kind.name}: an unrelated key", text, [Key("stranger")], [spent.prevtx()])
        if kind.extra:
            plain = spent.prevtx()
            for field in kind.extra:
                plain.pop(field)
            recorder.keyed(f"{kind.name}: no scripts in prevtxs", text, kind.keys, [plain])
        if len(kind.extra) == 2:
            for field in kind.extra:
                part = spent.prevtx()
                part.pop(field)
                recorder.keyed(f"{kind.name}: no {field}", text, kind.keys, [part])


def partial(recorder):
    for name, kind in recorder.kinds.items():
        if len(kind.keys) != 3 or "multi" not in name:
            continue
        spent = coin(kind, "partial")
        prevtxs = [spent.prevtx()]
        text = unsigned([spent], pay()).hex()
        ask = lambda what, hex_, keys, *sighash: recorder.keyed(
            f"{name} partial: {what}", hex_, [kind.keys[index] for index in keys], prevtxs, *sighash
        )
        a = ask("A", text, [0])
        c = ask("C", text, [2])
        ask("A then nobody", a, [])
        ask("A then A", a, [0])
        ask("A then B", a, [1])
        ask("A then C", a, [2])
        ask("C then A", c, [0])
        ask("A then B and C", a, [1, 2])
        ask("all three", text, [0, 1, 2])
        ask("keys in reverse", text, [2, 1])
        single = ask("A with SINGLE", text, [0], "SINGLE")
        ask("A with SINGLE then B with ALL", single, [1], "ALL")
        both = ask("A and C", text, [0, 2])
        ask("A and C then B", both, [1])


def single_without_output(recorder):
    first = recorder.kinds["pkh"]
    for kind in recorder.kinds.values():
        for sighash in ("SINGLE", "SINGLE|ANYONECANPAY"):
            coins = [coin(first, "single"), coin(kind, "single beyond")]
            if kind.wallet:
                coins = [coin(kind, "single"), coin(kind, "single beyond")]
            text = unsigned(coins, pay(count=1)).hex()
            prevtxs = [item.prevtx() for item in coins]
            name = f"{kind.name}: {sighash} beyond the outputs"
            if kind.wallet:
                recorder.ask(name, WITH_WALLET, [text, prevtxs, sighash], kind)
            else:
                recorder.keyed(name, text, first.keys + kind.keys, prevtxs, sighash)


def amounts(recorder):
    for name in ("pkh", "sh-multi-2of3", "wpkh", "sh-wpkh", "wsh-multi-2of3", "rawtr", "wsh-csv"):
        kind = recorder.kinds[name]
        spent = coin(kind, "amount")
        text = unsigned([spent], pay()).hex()
        for amount in ("2.00000000", "0.00000000", "21000000.00000000", "0", "1e-8", "1"):
            prevtx = {**spent.prevtx(), "amount": Number(amount)}
            recorder.keyed(f"{name}: amount {amount}", text, kind.keys, [prevtx])
        absent = spent.prevtx()
        absent.pop("amount")
        recorder.keyed(f"{name}: no amount", text, kind.keys, [absent])
        recorder.keyed(f"{name}: no amount, no keys", text, [], [absent])
        recorder.keyed(f"{name}: amount as text", text, kind.keys,
                       [{**spent.prevtx(), "amount": "1.0"}])


def unknown_inputs(recorder):
    wpkh, rawtr, pkh = (recorder.kinds[name] for name in ("wpkh", "rawtr", "pkh"))
    for kind in (wpkh, rawtr, pkh):
        known, unknown = coin(kind, "known"), coin(wpkh, "unknown")
        text = unsigned([unknown, known], pay()).hex()
        recorder.keyed(f"{kind.name}: with an unknown input first", text, kind.keys,
                       [known.prevtx()])
        text = unsigned([known, unknown], pay()).hex()
        recorder.keyed(f"{kind.name}: with an unknown input last", text, kind.keys,
                       [known.prevtx()], "ALL|ANYONECANPAY")
    recorder.keyed("all inputs unknown", text, wpkh.keys, [])
    recorder.keyed("all inputs unknown, prevtxs null", text, wpkh.keys, None)
    filled = Transaction.from_hex(text)
    filled.inputs[0].script = b"\x51"
    filled.inputs[1].witness = [b"\1", b""]
    recorder.keyed("unknown inputs keep what they carry", filled.hex(), wpkh.keys, [])
    known = coin(pkh, "no outputs")
    recorder.keyed("no outputs", unsigned([known], []).hex(), pkh.keys, [known.prevtx()])
    recorder.keyed("no outputs, NONE", unsigned([known], []).hex(), pkh.keys, [known.prevtx()],
                   "NONE")
    twice = coin(pkh, "twice")
    recorder.keyed("the same input twice", unsigned([twice, twice], pay()).hex(), pkh.keys,
                   [twice.prevtx()])


def several_signers(recorder):
    names = ["pkh", "wpkh", "sh-wpkh", "multi-1of2", "wsh-multi-2of3", "rawtr"]
    coins = [coin(recorder.kinds[name], "several") for name in names]
    prevtxs = [item.prevtx() for item in coins]
    text = unsigned(coins, pay()).hex()
    for item in coins:
        text = recorder.keyed(f"several inputs, then keys of {item.kind.name}", text,
                              item.kind.keys, prevtxs)
    everything = [coin(kind, "everything") for name, kind in recorder.kinds.items()
                  if not kind.wallet and name != "wsh-cltv-time"]
    keys = [key for item in everything for key in item.kind.keys]
    recorder.keyed("one input of every kind", unsigned(everything, pay()).hex(), keys,
                   [item.prevtx() for item in everything])


def carried(recorder):
    """Inputs that come with something in them."""
    for name in ("pk", "pkh", "sh-multi-2of3", "wpkh", "sh-wpkh", "wsh-multi-2of3", "rawtr"):
        kind = recorder.kinds[name]
        spent = coin(kind, "carried")
        for what, script, witness in (
            ("OP_1 in the input script", b"\x51", []),
            ("a witness of one byte", b"", [b"\1"]),
            ("an input script that does not parse", b"\x4c", []),
        ):
            transaction = unsigned([spent], pay())
            transaction.inputs[0].script, transaction.inputs[0].witness = script, witness
            for who, keys in (("no keys", []), ("the keys", kind.keys)):
                recorder.keyed(f"{name}: {what}, {who}", transaction.hex(), keys,
                               [spent.prevtx()])
        signed = recorder.node.call(WITH_KEY, unsigned([spent], pay()).hex(), kind.wifs(),
                                    [spent.prevtx()])["hex"]
        changed = Transaction.from_hex(signed)
        changed.outputs[0].value -= 1
        recorder.keyed(f"{name}: outputs changed after signing, no keys", changed.hex(), [],
                       [spent.prevtx()])
        recorder.keyed(f"{name}: outputs changed after signing, the keys", changed.hex(),
                       kind.keys, [spent.prevtx()])


def odd_scripts(recorder):
    key, flat = Key("odd"), Key("odd", False)
    scripts = [
        ("OP_RETURN", b"\x6a\x02ab"),
        ("OP_TRUE", b"\x51"),
        ("OP_FALSE", b"\0"),
        ("does not parse", b"\x4c"),
        ("unknown opcode", b"\xba"),
        ("disabled opcode", b"\x51\x51\x95"),
        ("unbalanced if", b"\x51\x63"),
        ("OP_VERIFY on nothing", b"\x69"),
        ("OP_0 OP_VERIFY", b"\0\x69"),
        ("two items left", b"\x51\x51"),
        ("OP_NOP10", b"\xb9\x51"),
        ("CLTV of 1000", b"\x02\xe8\x03\xb1"),
        ("negative CLTV", b"\x4f\xb1"),
        ("CSV of 1000", b"\x02\xe8\x03\xb2"),
        ("data push larger than necessary", b"\x01\x05"),
        ("p2a", b"\x51\x02\x4e\x73"),
        ("witness v0 of 3 bytes", b"\0\3abc"),
        ("witness v1 of 20 bytes", b"\x51\x14" + b"a" * 20),
        ("witness v1 not a point", b"\x51\x20" + b"\xff" * 32),
        ("witness v2", b"\x52\x20" + b"a" * 32),
        ("witness v16", b"\x60\x02ab"),
        ("multisig 0 of 1", b"\0" + push(key.pubkey()) + b"\x51\xae"),
        ("pk of 33 bad bytes", push(b"\x02" + b"\xff" * 32) + b"\xac"),
        ("hybrid key", push(b"\6" + flat.pubkey()[1:]) + b"\xac"),
        ("empty", b""),
    ]
    for name, script in scripts:
        spent = coin(Kind(name, script), "odd")
        text = unsigned([spent], pay()).hex()
        recorder.keyed(f"script: {name}", text, [key], [spent.prevtx()])
    inner = b"\x51"
    for name, kind in (
        ("sh(OP_TRUE)", Kind("sh-true", p2sh(inner), extra={"redeemScript": inner.hex()})),
        ("wsh(OP_TRUE)", Kind("wsh-true", p2wsh(inner), extra={"witnessScript": inner.hex()})),
        ("wpkh of an uncompressed key", Kind("wpkh-u", p2wpkh(flat.pubkey()))),
        ("wsh(pk) of an uncompressed key", Kind("wsh-pk-u", p2wsh(p2pk(flat.pubkey())),
                                               extra={"witnessScript": p2pk(flat.pubkey()).hex()})),
        ("sh(pkh) of an uncompressed key", Kind("sh-pkh-u", p2sh(p2pkh(flat.pubkey())),
                                               extra={"redeemScript": p2pkh(flat.pubkey()).hex()})),
        ("pkh of the other form of the key", Kind("pkh-other", p2pkh(key.pubkey()))),
        ("tr of the BIP 86 tweak", Kind("bip86", p2tr(taproot_output(flat)))),
        ("tr of the key itself", Kind("rawtr-u", p2tr(flat.xonly()))),
    ):
        spent = coin(kind, "odd")
        text = unsigned([spent], pay()).hex()
        recorder.keyed(f"{name}, uncompressed key given", text, [flat], [spent.prevtx()])
        recorder.keyed(f"{name}, both forms given", text, [flat, key], [spent.prevtx()])


def locks(recorder):
    """Miniscripts whose locks the transaction does not meet."""
    for name, sequence, lock_time, version in (
        ("wsh-csv", SEQUENCE_FINAL, 0, 2),
        ("wsh-csv", RELATIVE_BLOCKS - 1, 0, 2),
        ("wsh-csv", RELATIVE_BLOCKS, 0, 1),
        ("wsh-csv", (1 << 22) | 20, 0, 2),
        ("wsh-csv-time", 5, 0, 2),
        ("wsh-cltv", SEQUENCE_FINAL, 120, 2),
        ("wsh-cltv", 0, 119, 2),
        ("wsh-cltv", 0, 1_700_060_000, 2),
        ("wsh-cltv-time", 0, 500, 2),
        ("wsh-recovery-later", SEQUENCE_FINAL, 0, 2),
        ("wsh-recovery-now", RELATIVE_BLOCKS, 0, 2),
        ("tr-leaf-csv", SEQUENCE_FINAL, 0, 2),
        ("tr-leaf-csv", RELATIVE_BLOCKS + 1, 0, 2),
    ):
        kind = recorder.kinds[name]
        spent = coin(kind, "lock")
        transaction = unsigned([spent], pay(), version, lock_time)
        transaction.inputs[0].sequence = sequence
        recorder.for_kind(f"{name}: sequence {sequence}, lock time {lock_time}, version {version}",
                          transaction.hex(), kind, [spent.prevtx()])
    first, second = Key("hidden 0"), Key("hidden 1")
    script = push(first.pubkey()) + b"\xac\x73\x64\x76\xa9\x14" + second.hash160()
    script += b"\x88\xad\x5a\xb2\x68"
    hidden = Kind("or_d with pkh", p2wsh(script), extra={"witnessScript": script.hex()})
    spent = coin(hidden, "lock")
    text = unsigned([spent], pay()).hex()
    recorder.keyed("or_d(pk(A),and_v(v:pkh(B),older(10))): A alone", text, [first],
                   [spent.prevtx()])
    recorder.keyed("or_d(pk(A),and_v(v:pkh(B),older(10))): A and B", text, [first, second],
                   [spent.prevtx()])
    thresh = recorder.kinds["wsh-thresh"]
    spent = coin(thresh, "lock")
    text = unsigned([spent], pay()).hex()
    one = recorder.keyed("wsh-thresh: one of two", text, thresh.keys[:1], [spent.prevtx()])
    recorder.keyed("wsh-thresh: one, then the other", one, thresh.keys[1:], [spent.prevtx()])


def argument_errors(recorder):
    kind = recorder.kinds["wpkh"]
    spent = coin(kind, "errors")
    text, prevtx, wif = unsigned([spent], pay()).hex(), spent.prevtx(), kind.wifs()[0]
    ask = lambda name, *params: recorder.ask(f"error: {name}", WITH_KEY, list(params))
    ask("hexstring null", None, [wif])
    ask("hexstring a number", 5, [wif])
    ask("hexstring not hex", "zz", [wif])
    ask("hexstring empty", "", [wif])
    ask("hexstring odd", text[:-1], [wif])
    ask("hexstring with a byte too many", text + "00", [wif])
    ask("no inputs", Transaction([], pay()).hex(), [wif])
    ask("privkeys null", text, None)
    ask("privkeys text", text, wif)
    ask("privkeys of a number", text, [5])
    ask("privkey bad", text, ["bad"])
    ask("privkey of the main chain", text, ["KwDiBf89QgGbjEhKnhXJuH7LrciVrZi3qYjgd9M7rFU73sVHnoWn"])
    ask("privkey with a bad checksum", text, [wif[:-1] + ("a" if wif[-1] != "a" else "b")])
    ask("privkey empty", text, [""])
    ask("prevtxs text", text, [wif], "x")
    ask("prevtxs an object", text, [wif], {})
    for sighash in ("nosuch", "all", "", "ALL|ALL", "ANYONECANPAY", "DEFAULT|ANYONECANPAY"):
        ask(f"sighash '{sighash}'", text, [wif], [prevtx], sighash)
    ask("sighash a number", text, [wif], [prevtx], 1)
    ask("bad sighash, bad key", text, ["bad"], [prevtx], "nosuch")
    ask("bad sighash, bad prevtxs", text, [wif], [{}], "nosuch")
    ask("bad prevtxs, bad key", text, ["bad"], [{}])
    ask("bad hex, bad key", "zz", ["bad"], [{}])
    ask("prevtx a number", text, [wif], [5])
    ask("prevtx null", text, [wif], [None])
    ask("prevtx empty", text, [wif], [{}])
    for field in ("txid", "vout", "scriptPubKey"):
        without = {key: value for key, value in prevtx.items() if key != field}
        ask(f"prevtx without {field}", text, [wif], [without])
        ask(f"prevtx with {field} null", text, [wif], [{**prevtx, field: None}])
        ask(f"prevtx with {field} true", text, [wif], [{**prevtx, field: True}])
    for field, value in (
        ("vout", -1), ("vout", "0"), ("vout", 2**31), ("vout", 2**31 - 1), ("vout", Number("1.0")),
        ("vout", Number("1e0")), ("txid", "zz"), ("txid", "zz" * 32), ("txid", ""), ("txid", 5),
        ("txid", "ab" * 33), ("scriptPubKey", "zz"), ("scriptPubKey", ""), ("scriptPubKey", "a"),
        ("scriptPubKey", 5), ("amount", "x"), ("amount", ""), ("amount", True), ("amount", None),
        ("amount", []), ("amount", -1), ("amount", Number("0.000000001")), ("amount", 21000001),
        ("amount", Number("1e10")), ("amount", "1."), ("amount", ".5"), ("amount", "+1"),
        ("amount", " 1"), ("amount", "01"), ("redeemScript", 5), ("redeemScript", "zz"),
        ("witnessScript", True), ("nosuch", 1),
    ):
        ask(f"prevtx with {field} {value!r}", text, [wif], [{**prevtx, field: value}])
    ask("prevtx of another outpoint", text, [wif], [prevtx, {**prevtx, "vout": 9}])
    ask("prevtx repeated", text, [wif], [prevtx, prevtx])
    ask("prevtx repeated with another script", text, [wif],
        [prevtx, {**prevtx, "scriptPubKey": "51"}])
    script_errors(recorder, ask)


def script_errors(recorder, ask):
    right = multisig(2, [key.pubkey() for key in recorder.kinds["sh-multi-2of3"].keys]).hex()
    wif = recorder.kinds["sh-multi-2of3"].wifs()[0]
    raw = bytes.fromhex(right)
    outputs = {"sh": p2sh(raw), "wsh": p2wsh(raw), "sh-wsh": p2sh(p2wsh(raw))}
    program = p2wsh(raw).hex()
    for name, script in outputs.items():
        base = Coin("ab" * 32, 0, VALUE, Kind(name, script))
        text = unsigned([base], pay()).hex()
        for redeem, witness in (
            (None, None), (right, None), (None, right), (right, right), (program, right),
            (right, program), (program, None), (None, program), ("51", None), (None, "51"),
            ("51", right), ("zz", None), (None, "zz"), ("zz", right), (right, "zz"), ("", None),
            (None, ""), ("", right), (5, None), (None, 5),
        ):
            prevtx = {**base.prevtx(), "redeemScript": redeem, "witnessScript": witness}
            show = lambda value: {right: "S", program: "wsh(S)"}.get(value, repr(value))
            name_ = f"{name} with redeemScript {show(redeem)}, witnessScript {show(witness)}"
            ask(name_, text, [wif], [prevtx])


def on_chain(recorder):
    """Requests whose answer depends on the unspent outputs of chain.hex."""
    blocks = load_chain(recorder.node)
    rows = {row["name"]: row for row in recorded("signing-chain.json")["rows"]}
    for name, kind in recorder.kinds.items():
        if kind.wallet:
            continue
        row = rows[f"{name} {kind.sighashes()[0]}"]
        text = row["params"][0]
        ask = lambda what, keys, prevtxs: recorder.keyed(
            f"chain {name}: {what}", text, keys, prevtxs, chain=True
        )
        ask("keys, nothing else", kind.keys, None)
        ask("no keys", [], None)
        spent = Transaction.from_hex(text).inputs[0]
        described = kind.prevtx(spent.txid, spent.vout, VALUE)
        ask("another amount", kind.keys, [described])
        without = {key: value for key, value in described.items() if key != "amount"}
        ask("no amount", kind.keys, [without])
        ask("another script", kind.keys, [{**described, "scriptPubKey": "51"}])
        if not kind.extra:
            continue
        ask("prevtx without scripts", kind.keys,
            [{key: described[key] for key in ("txid", "vout", "scriptPubKey")}])
    key = recorder.kinds["wpkh"].keys[0]
    ask = lambda what, text: recorder.keyed(f"chain: {what}", text, [key], None, chain=True)
    request = Transaction.from_hex(rows["wpkh None"]["params"][0])
    # The first spend of the chain: the coinbase of height 1.
    height = recorded("chain.json")["spends"][0]["height"]
    spent = Block.from_hex(blocks[height - 1]).transactions[1].inputs[0]
    gone = Transaction([Input(spent.txid, spent.vout)], request.outputs)
    ask("an output that is spent", gone.hex())
    beyond = Transaction([Input(request.inputs[0].txid, 99_999)], request.outputs)
    ask("an output index beyond the transaction", beyond.hex())


def wallet_rows(recorder):
    """Requests to a wallet: `wallet_descriptors` says what it holds."""
    keys = [Key(f"wallet {index}") for index in range(3)]
    script = multisig(2, [key.pubkey() for key in keys])
    held = f"wsh(multi(2,{keys[0].wif()},{keys[1].pubkey().hex()},{keys[2].pubkey().hex()}))"
    cases = [
        ("wpkh", f"wpkh({keys[0].wif()})", p2wpkh(keys[0].pubkey())),
        ("pkh", f"pkh({keys[0].wif()})", p2pkh(keys[0].pubkey())),
        ("pk", f"pk({keys[0].wif()})", p2pk(keys[0].pubkey())),
        ("sh-wpkh", f"sh(wpkh({keys[0].wif()}))", p2sh(p2wpkh(keys[0].pubkey()))),
        ("wsh-multi one key of three", held, p2wsh(script)),
    ]
    for name, descriptor, output in cases:
        kind = Kind(f"wallet {name}", output, wallet=with_checksum(recorder.node, descriptor))
        recorder.node.call("createwallet", kind.name, False, True)
        request = [{"desc": kind.wallet, "timestamp": "now"}]
        reply = recorder.node.call("importdescriptors", request, wallet=kind.name)
        assert reply[0]["success"], reply
        spent, stranger = coin(kind, "wallet"), coin(recorder.kinds["pkh"], "stranger")
        text = unsigned([spent], pay()).hex()
        ask = lambda what, *params: recorder.ask(f"wallet {name}: {what}", WITH_WALLET,
                                                 list(params), kind)
        ask("its own", text, [spent.prevtx()])
        ask("SINGLE", text, [spent.prevtx()], "SINGLE")
        ask("unknown input", text)
        mixed = unsigned([stranger, spent], pay()).hex()
        ask("beside a stranger's", mixed, [stranger.prevtx(), spent.prevtx()])
        bare = spent.prevtx()
        bare.pop("amount")
        ask("no amount", text, [bare])
        ask("redeemScript is not looked at", text, [{**spent.prevtx(), "redeemScript": "zz"}])
    ask("bad sighash", text, [spent.prevtx()], "nosuch")
    ask("bad hex", "zz")
    ask("hexstring null", None)
    ask("prevtxs text", text, "x")
    ask("prevtx empty", text, [{}])


def main():
    with Node(program(__doc__), ["-par=1"]) as node:
        recorder = Recorder(node)
        for part in (each_sighash, missing_keys, partial, single_without_output, amounts,
                     unknown_inputs, several_signers, carried, odd_scripts, locks,
                     argument_errors, wallet_rows, on_chain):
            print(part.__name__, len(recorder.rows), flush=True)
            part(recorder)
        write_rows("signing.json", {"bitcoind": node.version(), "rows": recorder.rows})
        print(len(recorder.rows), "rows")


if __name__ == "__main__":
    main()
