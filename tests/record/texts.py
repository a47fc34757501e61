#!/usr/bin/env python3
"""Records each text that an input can be refused with when a transaction is signed.

With type SINGLE an input without an output of its index stays as it came, so that scriptSig and witness can hold
anything; with the default type most of it is dropped first. Both are recorded.
"""

import struct

from bitcoind import Node, amount, program
from keys import G, Key, N, multiply, sha256, tagged_hash, taproot_output
from loaded import write_rows
from wire import Input, Output, Transaction, compact_size, multisig, p2pkh, p2sh, p2wpkh, p2wsh, p2tr, push

METHOD = "signrawtransactionwithkey"
VALUE = 100_000_000
KEY = Key("texts")
UNCOMPRESSED = Key("texts", compressed=False)
PUBKEY = KEY.pubkey()
FALSE_KEY = b"\5" + PUBKEY[1:]


def der(r, s, hash_type=1):
    """A signature of these numbers."""
    def integer(number):
        data = number.to_bytes((number.bit_length() + 8) // 8, "big")
        return b"\2" + bytes([len(data)]) + data

    body = integer(r) + integer(s)
    return b"\x30" + bytes([len(body)]) + body + bytes([hash_type])


SIGNATURE = der(1 << 200, 1 << 200)
SCHNORR = bytes(range(64))


def leaf(script, *stack, version=0xC0, control=None):
    """A taproot output with one leaf, and a witness that shows it."""
    root = tagged_hash("TapLeaf", bytes([version]) + compact_size(len(script)) + script)
    output_key = taproot_output(KEY, root)
    # The parity of the output key is found by trying both; a wrong one reads as a wrong commitment.
    found = []
    for parity in (0, 1):
        shown = bytes([version | parity]) + KEY.xonly() if control is None else control
        found.append((p2tr(output_key), b"", [*stack, script, shown]))
    return found


def schnorr(message):
    """BIP 340's signature by KEY's x-only key, with a nonce that serves once."""
    def even(secret):
        point = multiply(G, secret)
        return secret if point[1] % 2 == 0 else N - secret

    nonce = even(int.from_bytes(tagged_hash("texts nonce", message), "big"))
    commitment = multiply(G, nonce)[0].to_bytes(32, "big")
    challenge = int.from_bytes(tagged_hash("BIP0340/challenge", commitment + KEY.xonly() + message), "big")
    secret = even(int.from_bytes(KEY.secret, "big"))
    return commitment + ((nonce + challenge * secret) % N).to_bytes(32, "big")


def many_signatures():
    """A leaf that checks one good signature more often than its weight allows."""
    script = push(KEY.xonly()) + b"\x6e\xad" * 8 + b"\xac"
    leaf_hash = tagged_hash("TapLeaf", b"\xc0" + compact_size(len(script)) + script)
    output = p2tr(taproot_output(KEY, leaf_hash))
    first = p2pkh(PUBKEY)
    value, final = struct.pack("<q", VALUE), b"\xff" * 4
    outpoints = b"\x11" * 32 + bytes(4) + b"\x22" * 32 + struct.pack("<I", 1)
    scripts = push(first) + push(output)
    paid = value + push(p2wpkh(PUBKEY))
    parts = [outpoints, value * 2, scripts, final * 2, paid]
    message = (b"\0\0" + struct.pack("<II", 2, 0) + b"".join(map(sha256, parts)) + b"\2" + struct.pack("<I", 1)
               + leaf_hash + b"\0" + final)
    return leaf(script, schnorr(tagged_hash("TapSighash", message)))


def cases():
    """The error, and one or two tries of (scriptPubKey, scriptSig, witness)."""
    bare = lambda script, script_sig=b"": [(bytes.fromhex(script) if isinstance(script, str) else script, script_sig, [])]
    segwit = lambda script, *stack: [(p2wsh(script), b"", [*stack, script])]
    conditional = bytes.fromhex("6351675168")
    redeem = p2wpkh(PUBKEY)
    yield "EVAL_FALSE", "Script evaluated without error but finished with a false/empty top stack element", bare("00")
    yield "VERIFY", "Script failed an OP_VERIFY operation", bare("0069")
    yield "EQUALVERIFY", "Script failed an OP_EQUALVERIFY operation", bare("515288")
    yield "CHECKMULTISIGVERIFY", "Script failed an OP_CHECKMULTISIGVERIFY operation", bare(
        multisig(1, [PUBKEY])[:-1] + b"\xaf", b"\0\0")
    yield "CHECKSIGVERIFY", "Script failed an OP_CHECKSIGVERIFY operation", bare(push(PUBKEY) + b"\xad", b"\0")
    yield "NUMEQUALVERIFY", "Script failed an OP_NUMEQUALVERIFY operation", bare("51529d")
    yield "SCRIPT_SIZE", "Script is too big", bare(b"\x51" * 10_001)
    yield "PUSH_SIZE", "Push value size limit exceeded", bare(push(bytes(521)))
    yield "OP_COUNT", "Operation limit exceeded", bare(b"\x61" * 202)
    yield "STACK_SIZE", "Stack size limit exceeded", bare(b"\x51" * 1_001)
    yield "SIG_COUNT", "Signature count negative or greater than pubkey count", bare("005100ae")
    yield "PUBKEY_COUNT", "Pubkey count negative or limit exceeded", bare("0115ae")
    yield "BAD_OPCODE", "Opcode missing or not understood", bare("ba")
    yield "DISABLED_OPCODE", "Attempted to use a disabled opcode", bare("51517e")
    yield "INVALID_STACK_OPERATION", "Unable to sign input, invalid stack size (possibly missing key)", bare("76")
    yield "INVALID_ALTSTACK_OPERATION", "Operation not valid with the current altstack size", bare("6c")
    yield "OP_RETURN", "OP_RETURN was encountered", bare("6a")
    yield "UNBALANCED_CONDITIONAL", "Invalid OP_IF construction", bare("5163")
    yield "NEGATIVE_LOCKTIME", "Negative locktime", bare("4fb1")
    yield "UNSATISFIED_LOCKTIME", "Locktime requirement not satisfied", bare("51b2")
    yield "SIG_HASHTYPE", "Signature hash type missing or not understood", bare(
        push(PUBKEY) + b"\xac", push(der(1, 1, 5)))
    yield "SIG_DER", "Non-canonical DER signature", bare(push(PUBKEY) + b"\xac", push(bytes(70)))
    yield "MINIMALDATA", "Data push larger than necessary", bare("0101")
    yield "SIG_PUSHONLY", "Only push operators allowed in signatures", bare(p2sh(b"\x51"), b"\x61\1\x51")
    yield "SIG_HIGH_S", "Non-canonical signature: S value is unnecessarily high", bare(
        push(PUBKEY) + b"\xac", push(der(1, N - 1)))
    yield "SIG_NULLDUMMY", "Dummy CHECKMULTISIG argument must be zero", bare("510000ae")
    yield "MINIMALIF", "OP_IF/NOTIF argument must be minimal", segwit(conditional, b"\2")
    yield "SIG_NULLFAIL", "CHECK(MULTI)SIG failing with non-zero signature (possibly need more signatures)", bare(
        push(PUBKEY) + b"\xac", push(SIGNATURE))
    yield "DISCOURAGE_UPGRADABLE_NOPS", "NOPx reserved for soft-fork upgrades", bare("b0")
    yield "DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM", "Witness version reserved for soft-fork upgrades", bare("5202abcd")
    yield "DISCOURAGE_UPGRADABLE_TAPROOT_VERSION", "Taproot version reserved for soft-fork upgrades", leaf(
        b"\x51", version=0xC2)
    yield "DISCOURAGE_OP_SUCCESS", "OP_SUCCESSx reserved for soft-fork upgrades", leaf(b"\x50")
    yield "DISCOURAGE_UPGRADABLE_PUBKEYTYPE", "Public key version reserved for soft-fork upgrades", leaf(
        push(PUBKEY) + b"\xac", SCHNORR)
    yield "PUBKEYTYPE", "Public key is neither compressed or uncompressed", bare(push(FALSE_KEY) + b"\xac", b"\0")
    yield "CLEANSTACK", "Stack size must be exactly one after execution", [(p2sh(b"\x51"), b"\x51\1\x51", [])]
    yield "WITNESS_PROGRAM_WRONG_LENGTH", "Witness program has incorrect length", bare("0002abcd")
    yield "WITNESS_PROGRAM_WITNESS_EMPTY", "Witness program was passed an empty witness", bare(p2wsh(b"\x51"))
    yield "WITNESS_PROGRAM_MISMATCH", "Witness program hash mismatch", [(p2wsh(b"\x51"), b"", [b"\x52"])]
    yield "WITNESS_MALLEATED", "Witness requires empty scriptSig", [(redeem, b"\x51", [b"", PUBKEY])]
    yield "WITNESS_MALLEATED_P2SH", "Witness requires only-redeemscript scriptSig", [
        (p2sh(redeem), b"\x51" + push(redeem), [b"", PUBKEY])]
    yield "WITNESS_UNEXPECTED", "Witness provided for non-witness script", [(b"\x51", b"", [b"\1"])]
    yield "WITNESS_PUBKEYTYPE", "Using non-compressed keys in segwit", segwit(
        push(UNCOMPRESSED.pubkey()) + b"\xac", b"")
    yield "SCHNORR_SIG_SIZE", "Invalid Schnorr signature size", [(p2tr(taproot_output(KEY)), b"", [SCHNORR[1:]])]
    yield "SCHNORR_SIG_HASHTYPE", "Invalid Schnorr signature hash type", [
        (p2tr(taproot_output(KEY)), b"", [SCHNORR + b"\5"])]
    yield "SCHNORR_SIG", "Invalid Schnorr signature", [(p2tr(taproot_output(KEY)), b"", [SCHNORR])]
    yield "TAPROOT_WRONG_CONTROL_SIZE", "Invalid Taproot control block size", leaf(b"\x51", control=bytes(34))
    yield "TAPSCRIPT_CHECKMULTISIG", "OP_CHECKMULTISIG(VERIFY) is not available in tapscript", leaf(
        b"\0\0" + multisig(1, [PUBKEY]))
    yield "TAPSCRIPT_MINIMALIF", "OP_IF/NOTIF argument must be minimal in tapscript", leaf(conditional, b"\2")
    yield "TAPSCRIPT_VALIDATION_WEIGHT", "Too much signature validation relative to witness weight", many_signatures()
    yield "OP_CODESEPARATOR", "Using OP_CODESEPARATOR in non-witness script", bare("ab51")
    yield "SIG_FINDANDDELETE", "Signature is found in scriptCode", bare(push(SIGNATURE) + push(PUBKEY) + b"\xac")
    yield "no key", "Unable to sign input, invalid stack size (possibly missing key)", bare(p2pkh(PUBKEY))


def request(script_pubkey, script_sig, witness, sighash):
    """The input in question has index 1; the transaction has one output, and nobody has the key of its input 0."""
    inputs = [Input("11" * 32, 0), Input("22" * 32, 1, script_sig, witness=witness)]
    text = Transaction(inputs, [Output(VALUE, p2wpkh(PUBKEY))]).hex()
    spent = {"txid": "22" * 32, "vout": 1, "scriptPubKey": script_pubkey.hex(), "amount": amount(VALUE)}
    # Scripts behind hashes must be named; these are the ones that the witness or the scriptSig shows.
    if script_pubkey[:1] == b"\xa9" or script_pubkey[:2] == b"\0\x20":
        shown = {p2sh(b"\x51"): b"\x51", p2sh(p2wpkh(PUBKEY)): p2wpkh(PUBKEY), p2wsh(b"\x51"): b"\x51"}
        spent["redeemScript"] = shown.get(script_pubkey, witness[-1] if witness else b"\x51").hex()
    first = {"txid": "11" * 32, "vout": 0, "scriptPubKey": p2pkh(PUBKEY).hex(), "amount": amount(VALUE)}
    return [text, [], [first, spent], sighash]


def main():
    rows = []
    with Node(program(__doc__), ["-par=1"]) as node:
        for name, text, tries in cases():
            answers = [(params, node.call(METHOD, *params))
                       for params in (request(*parts, "SINGLE") for parts in tries)]
            said = [answer["errors"][1]["error"] for _, answer in answers]
            assert text in said, (name, said)
            params, answer = answers[said.index(text)]
            rows.append({"name": f"text: {name}", "text": text, "method": METHOD, "params": params, "reply": answer})
            dropped = params[:3] + [None]
            rows.append({"name": f"text: {name}, as far as it is kept", "method": METHOD, "params": dropped,
                         "reply": node.call(METHOD, *dropped)})
        write_rows("signing-texts.json", {"bitcoind": node.version(), "rows": rows})
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
