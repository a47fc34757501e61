#!/usr/bin/env python3
"""Records how the node satisfies miniscripts when it has these keys and no others."""

import itertools

from bitcoind import Node, RpcError, amount, program
from keys import Key, sha256
from wire import SEQUENCE_FINAL, Input, Output, Transaction, p2wpkh
from kinds import with_checksum
from loaded import write_rows

VALUE = 100_000_000
H = "6c60f404f8167a38fc70eaf8aa17ac351023bef86bcb9d1086a19afe95bd5333"

# Policy, sequences to try.
WSH = [
    ("thresh(2,pk(A),s:pk(B),s:pk(C))", [SEQUENCE_FINAL]),
    ("thresh(2,pk(A),a:pkh(B),s:pk(C),a:pkh(D))", [SEQUENCE_FINAL]),
    ("thresh(3,pk(A),s:pk(B),s:pk(C),sln:older(10))", [SEQUENCE_FINAL, 10]),
    ("thresh(2,pk(A),s:pk(B),sndv:older(10))", [SEQUENCE_FINAL, 10]),
    ("andor(pk(A),older(10),pk(B))", [SEQUENCE_FINAL, 10]),
    ("andor(pk(A),sha256(%s),pk(B))" % H, [SEQUENCE_FINAL]),
    ("or_i(and_v(v:pkh(A),older(10)),pk(B))", [SEQUENCE_FINAL, 10]),
    ("or_d(multi(2,A,B,C),and_v(v:thresh(2,pkh(D),a:pkh(E),a:pkh(F)),older(10)))", [SEQUENCE_FINAL, 10]),
    ("or_b(pk(A),s:pk(B))", [SEQUENCE_FINAL]),
    ("and_b(pk(A),s:pk(B))", [SEQUENCE_FINAL]),
    ("and_v(or_c(pk(A),v:older(10)),pk(B))", [SEQUENCE_FINAL, 10]),
    ("and_v(v:multi(2,A,B,C),pk(D))", [SEQUENCE_FINAL]),
    ("and_v(v:pk(A),or_d(pk(B),older(10)))", [SEQUENCE_FINAL, 10]),
    ("or_d(pk(A),and_b(pk(B),s:pk(C)))", [SEQUENCE_FINAL]),
    ("or_i(or_i(pk(A),pkh(B)),multi(2,C,D))", [SEQUENCE_FINAL]),
    ("thresh(2,multi(2,A,B),a:multi(1,C,D),ac:pk_k(E))", [SEQUENCE_FINAL]),
    ("andor(multi(1,A,B),after(100),pk(C))", [SEQUENCE_FINAL, 0]),
    ("and_v(v:pk(A),j:and_v(v:pk(B),older(10)))", [10]),
    ("or_b(and_b(pk(A),s:pk(B)),sj:and_v(v:pk(C),1))", [SEQUENCE_FINAL]),
]
TR = [
    ("tr(X,multi_a(2,A,B,C))", [SEQUENCE_FINAL]),
    ("tr(X,multi_a(1,A,B,C))", [SEQUENCE_FINAL]),
    ("tr(X,multi_a(3,A,B,C,D,E))", [SEQUENCE_FINAL]),
    ("tr(X,{pk(A),pk(B)})", [SEQUENCE_FINAL]),
    ("tr(X,{pk(A),{pk(B),pk(C)}})", [SEQUENCE_FINAL]),
    ("tr(X,{{multi_a(2,A,B),pkh(C)},and_v(v:pk(D),older(10))})", [SEQUENCE_FINAL, 10]),
    ("tr(X,thresh(2,pk(A),s:pk(B),s:pk(C)))", [SEQUENCE_FINAL]),
    ("tr(X,or_d(pk(A),and_v(v:pkh(B),older(10))))", [SEQUENCE_FINAL, 10]),
    ("tr(A,{pk(B),multi_a(2,C,D)})", [SEQUENCE_FINAL]),
    ("tr(A,thresh(2,multi_a(1,B,C),a:multi_a(2,D,E),s:pk(F)))", [SEQUENCE_FINAL]),
]


def subsets(letters, most):
    """All, then ever fewer; the first of each size and the last."""
    found = []
    for size in range(len(letters), -1, -1):
        of_size = list(itertools.combinations(letters, size))
        found += of_size if len(of_size) <= most else of_size[: most - 1] + of_size[-1:]
    return found


def fill(policy, private):
    text = ""
    for index, char in enumerate(policy):
        around = policy[index - 1 : index] + policy[index + 1 : index + 2]
        if char in "ABCDEFX" and all(c in "(,)" for c in around):
            key = Key(f"policy {char}")
            taproot = policy.startswith("tr(")
            public = key.xonly().hex() if taproot else key.pubkey().hex()
            text += key.wif() if char in private else public
        else:
            text += char
    return text


def main():
    rows = []
    with Node(program(__doc__), ["-par=1"]) as node:
        for number, (policy, sequences) in enumerate(WSH + TR):
            taproot = policy.startswith("tr(")
            template = policy if taproot else f"wsh({policy})"
            letters = [c for c in "ABCDEF" if any(s in policy for s in (f"({c})", f"({c},", f",{c},", f",{c})"))]
            for private in subsets(letters, 4):
                if not private:
                    continue
                name = f"{number} {''.join(private)}"
                try:
                    descriptor = with_checksum(node, fill(template, private))
                except RpcError as error:
                    print("skipped", policy, error)
                    break
                node.call("createwallet", name, False, True)
                reply = node.call("importdescriptors", [{"desc": descriptor, "timestamp": "now"}], wallet=name)
                assert reply[0]["success"], (reply, descriptor)
                address = node.call("deriveaddresses", descriptor)[0]
                script = node.call("validateaddress", address)["scriptPubKey"]
                for sequence in sequences:
                    spent = sha256(f"policy {name} {sequence}".encode()).hex()
                    tx = Transaction([Input(spent, 0, sequence=sequence)],
                                     [Output(VALUE - 10_000, p2wpkh(Key("payee").pubkey()))], 2,
                                     120 if "after" in policy else 0)
                    prevtx = {"txid": spent, "vout": 0, "scriptPubKey": script, "amount": amount(VALUE)}
                    reply = node.call("signrawtransactionwithwallet", tx.hex(), [prevtx], wallet=name)
                    rows.append({"descriptor": descriptor, "signed": reply["hex"]})
                    if "errors" in reply:
                        rows[-1]["error"] = reply["errors"][0]["error"]
                node.call("unloadwallet", name)
        write_rows("../../sdk/sign/src/tests/policies.json", {"bitcoind": node.version(), "rows": rows})
    print(len(rows), "rows", sum("error" not in row for row in rows), "complete")


if __name__ == "__main__":
    main()
