"""Every kind of output the recordings spend, and how to have the node sign for it."""

from keys import Key
from wire import (
    SEQUENCE_FINAL,
    Input,
    Transaction,
    multisig,
    p2pk,
    p2pkh,
    p2sh,
    p2tr,
    p2wpkh,
    p2wsh,
    push,
    script_number,
)
from bitcoind import amount

ECDSA_SIGHASHES = [
    None,
    "ALL",
    "NONE",
    "SINGLE",
    "ALL|ANYONECANPAY",
    "NONE|ANYONECANPAY",
    "SINGLE|ANYONECANPAY",
]
TAPROOT_SIGHASHES = ["DEFAULT"] + ECDSA_SIGHASHES[1:]

SEQUENCE_LOCK_TIME_ENABLED = SEQUENCE_FINAL - 1
RELATIVE_BLOCKS = 10
# BIP 68: bit 22 says units of 512 seconds.
RELATIVE_TIME = (1 << 22) | 1
ABSOLUTE_HEIGHT = 120
ABSOLUTE_TIME = 1_700_060_000

_CHECKSIG = b"\xac"
_CHECKSIGVERIFY = b"\xad"
_CSV = b"\xb2"
_CLTV = b"\xb1"


class Kind:
    """An output script with what a signer has to be told to spend it.

    `wallet` is a descriptor for kinds that `signrawtransactionwithkey` cannot
    sign; its private keys are exactly those that the spend may use.
    """

    def __init__(self, name, script=None, keys=(), extra=None, wallet=None, **spend):
        self.name = name
        self.script = script
        self.keys = list(keys)
        self.extra = extra or {}
        self.wallet = wallet
        self.sequence = spend.get("sequence", SEQUENCE_FINAL)
        self.lock_time = spend.get("lock_time", 0)
        self.taproot = spend.get("taproot", wallet is not None)

    def wifs(self):
        return [key.wif() for key in self.keys]

    def sighashes(self):
        return TAPROOT_SIGHASHES if self.taproot else ECDSA_SIGHASHES

    def prevtx(self, txid, vout, value):
        """The element of `prevtxs` that describes an output of this kind."""
        found = {"txid": txid, "vout": vout, "scriptPubKey": self.script.hex()}
        found.update(self.extra)
        found["amount"] = amount(value)
        return found


def _redeem(script):
    return {"redeemScript": script.hex()}


def _witness(script):
    return {"witnessScript": script.hex()}


def _nested(script):
    return {"redeemScript": p2wsh(script).hex(), "witnessScript": script.hex()}


def _older(key, value):
    return push(key.pubkey()) + _CHECKSIGVERIFY + script_number(value) + _CSV


def _after(key, value):
    return push(key.pubkey()) + _CHECKSIGVERIFY + script_number(value) + _CLTV


def _recovery(key, other):
    """or_d(pk(key),and_v(v:pkh(other),older(10)))"""
    spend_later = b"\x76\xa9\x14" + other.hash160() + b"\x88" + _CHECKSIGVERIFY
    spend_later += script_number(RELATIVE_BLOCKS) + _CSV
    return push(key.pubkey()) + _CHECKSIG + b"\x73\x64" + spend_later + b"\x68"


def _threshold(keys):
    """thresh(2,pk(a),s:pk(b),s:pk(c))"""
    first, *rest = [push(key.pubkey()) + _CHECKSIG for key in keys]
    return first + b"".join(b"\x7c" + item + b"\x93" for item in rest) + b"\x52\x87"


def _plain_kinds():
    key = lambda name, compressed=True: Key(name, compressed)
    k = {name: key(name) for name in ("pk", "pkh", "sh-pk", "sh-pkh", "wpkh", "sh-wpkh",
                                      "wsh-pk", "wsh-pkh", "sh-wsh-pkh", "rawtr")}
    pk_u, pkh_u = key("pk-uncompressed", False), key("pkh-uncompressed", False)
    two = [key(f"multi-1of2 {i}") for i in range(2)]
    mixed = [key("multi-mixed 0"), key("multi-mixed 1", False)]
    sets = {
        name: [key(f"{name} {i}") for i in range(3)]
        for name in ("multi-2of3", "sh-multi-2of3", "wsh-multi-2of3", "sh-wsh-multi-2of3")
    }
    scripts = {
        name: multisig(2, [item.pubkey() for item in keys]) for name, keys in sets.items()
    }
    pub = lambda name: k[name].pubkey()
    return [
        Kind("pk", p2pk(pub("pk")), [k["pk"]]),
        Kind("pk-uncompressed", p2pk(pk_u.pubkey()), [pk_u]),
        Kind("pkh", p2pkh(pub("pkh")), [k["pkh"]]),
        Kind("pkh-uncompressed", p2pkh(pkh_u.pubkey()), [pkh_u]),
        Kind("multi-1of2", multisig(1, [item.pubkey() for item in two]), two),
        Kind("multi-mixed-2of2", multisig(2, [item.pubkey() for item in mixed]), mixed),
        Kind("multi-2of3", scripts["multi-2of3"], sets["multi-2of3"]),
        Kind("sh-pk", p2sh(p2pk(pub("sh-pk"))), [k["sh-pk"]], _redeem(p2pk(pub("sh-pk")))),
        Kind("sh-pkh", p2sh(p2pkh(pub("sh-pkh"))), [k["sh-pkh"]], _redeem(p2pkh(pub("sh-pkh")))),
        Kind("sh-multi-2of3", p2sh(scripts["sh-multi-2of3"]), sets["sh-multi-2of3"],
             _redeem(scripts["sh-multi-2of3"])),
        Kind("wpkh", p2wpkh(pub("wpkh")), [k["wpkh"]]),
        Kind("sh-wpkh", p2sh(p2wpkh(pub("sh-wpkh"))), [k["sh-wpkh"]],
             _redeem(p2wpkh(pub("sh-wpkh")))),
        Kind("wsh-pk", p2wsh(p2pk(pub("wsh-pk"))), [k["wsh-pk"]], _witness(p2pk(pub("wsh-pk")))),
        Kind("wsh-pkh", p2wsh(p2pkh(pub("wsh-pkh"))), [k["wsh-pkh"]],
             _witness(p2pkh(pub("wsh-pkh")))),
        Kind("wsh-multi-2of3", p2wsh(scripts["wsh-multi-2of3"]), sets["wsh-multi-2of3"],
             _witness(scripts["wsh-multi-2of3"])),
        Kind("sh-wsh-pkh", p2sh(p2wsh(p2pkh(pub("sh-wsh-pkh")))), [k["sh-wsh-pkh"]],
             _nested(p2pkh(pub("sh-wsh-pkh")))),
        Kind("sh-wsh-multi-2of3", p2sh(p2wsh(scripts["sh-wsh-multi-2of3"])),
             sets["sh-wsh-multi-2of3"], _nested(scripts["sh-wsh-multi-2of3"])),
        Kind("rawtr", p2tr(k["rawtr"].xonly()), [k["rawtr"]], taproot=True),
    ]


def _miniscript_kinds():
    def kind(name, script, keys, nested=False, **spend):
        output = p2sh(p2wsh(script)) if nested else p2wsh(script)
        return Kind(name, output, keys, _nested(script) if nested else _witness(script), **spend)

    csv, csv_time, cltv, cltv_time, nested = (
        Key(f"miniscript {name}") for name in ("csv", "csv-time", "cltv", "cltv-time", "nested")
    )
    first, second = Key("miniscript recovery 0"), Key("miniscript recovery 1")
    three = [Key(f"miniscript thresh {i}") for i in range(3)]
    return [
        kind("wsh-csv", _older(csv, RELATIVE_BLOCKS), [csv], sequence=RELATIVE_BLOCKS),
        kind("wsh-csv-time", _older(csv_time, RELATIVE_TIME), [csv_time], sequence=RELATIVE_TIME),
        kind("wsh-cltv", _after(cltv, ABSOLUTE_HEIGHT), [cltv],
             sequence=SEQUENCE_LOCK_TIME_ENABLED, lock_time=ABSOLUTE_HEIGHT),
        kind("wsh-cltv-time", _after(cltv_time, ABSOLUTE_TIME), [cltv_time],
             sequence=SEQUENCE_LOCK_TIME_ENABLED, lock_time=ABSOLUTE_TIME),
        kind("sh-wsh-csv", _older(nested, RELATIVE_BLOCKS), [nested], True,
             sequence=RELATIVE_BLOCKS),
        # Both keys: without the second's public key the node cannot tell what pkh() commits to.
        kind("wsh-recovery-now", _recovery(first, second), [first, second]),
        kind("wsh-recovery-later", _recovery(first, second), [second], sequence=RELATIVE_BLOCKS),
        kind("wsh-thresh", _threshold(three), three[1:]),
    ]


def _taproot_kinds():
    def x(name):
        return Key(f"taproot {name}").xonly().hex()

    def w(name):
        return Key(f"taproot {name}").wif()

    multi = f"multi_a(2,{w('ma 0')},{x('ma 1')},{w('ma 2')})"
    later = f"and_v(v:pk({w('c leaf')}),older({RELATIVE_BLOCKS}))"
    tree = f"{{pk({x('t 0')}),{{pk({x('t 1')}),pk({w('t 2')})}}}}"
    return [
        Kind("tr-key", wallet=f"tr({w('key')})"),
        Kind("tr-key-with-leaf", wallet=f"tr({w('kl')},pk({x('kl leaf')}))"),
        Kind("tr-leaf-pk", wallet=f"tr({x('lp')},pk({w('lp leaf')}))"),
        Kind("tr-leaf-multi-a", wallet=f"tr({x('ma')},{multi})"),
        Kind("tr-leaf-deep", wallet=f"tr({x('t')},{tree})"),
        Kind("tr-leaf-csv", wallet=f"tr({x('c')},{later})", sequence=RELATIVE_BLOCKS),
    ]


def with_checksum(node, descriptor):
    return f"{descriptor}#{node.call('getdescriptorinfo', descriptor)['checksum']}"


def all_kinds(node):
    """Every kind; creates one wallet `kind NAME` on the node where one is needed."""
    kinds = _plain_kinds() + _miniscript_kinds() + _taproot_kinds()
    for kind in kinds:
        if kind.wallet is None:
            continue
        kind.wallet = with_checksum(node, kind.wallet)
        node.call("createwallet", kind.name, False, True)
        reply = node.call(
            "importdescriptors", [{"desc": kind.wallet, "timestamp": "now"}], wallet=kind.name
        )
        assert reply[0]["success"], reply
        address = node.call("deriveaddresses", kind.wallet)[0]
        kind.script = bytes.fromhex(node.call("validateaddress", address)["scriptPubKey"])
    return kinds


class Coin:
    """An output that can be spent: where it is, its value and its kind."""

    def __init__(self, txid, vout, value, kind):
        self.txid, self.vout, self.value, self.kind = txid, vout, value, kind

    def prevtx(self):
        return self.kind.prevtx(self.txid, self.vout, self.value)


def unsigned(coins, outputs, version=2, lock_time=None):
    """A transaction without signatures that spends `coins`."""
    if lock_time is None:
        lock_time = max(coin.kind.lock_time for coin in coins)
    inputs = [Input(coin.txid, coin.vout, sequence=coin.kind.sequence) for coin in coins]
    return Transaction(inputs, outputs, version, lock_time)


def sign(node, transaction, coins, sighash=None):
    """Signs for every coin, with keys first and then with each wallet needed."""
    text = transaction.hex()
    prevtxs = [coin.prevtx() for coin in coins]
    wifs = sorted({wif for coin in coins for wif in coin.kind.wifs()})
    complete = False
    if wifs:
        reply = node.call("signrawtransactionwithkey", text, wifs, prevtxs, sighash)
        text, complete = reply["hex"], reply["complete"]
    for name in sorted({coin.kind.name for coin in coins if coin.kind.wallet}):
        reply = node.call("signrawtransactionwithwallet", text, prevtxs, sighash, wallet=name)
        text, complete = reply["hex"], reply["complete"]
    if not complete:
        raise RuntimeError(f"not signed: {[coin.kind.name for coin in coins]} {reply}")
    return Transaction.from_hex(text)
