#!/usr/bin/env python3
"""Records data/wallet-keys-RELEASE.json: the members of the results of wallet methods, by path, in one scenario. Needs the 29 or a
later Core, whose arguments differ: run it for each."""

from bitcoind import BASE_ARGUMENTS, Node, program
from loaded import write_rows

FOREIGN = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
# Options that only the Knots node has.
KNOTS_ARGUMENTS = ("-corepolicy", "-softwareexpiry", "-walletimplicitsegwit", "-walletoldsigs")
RELEASE_UNIT = 10_000
# A build between two releases has the minor version 99.
UNRELEASED = 100


def paths(value, at=""):
    """The paths of all members: an element of an array is `[]`."""
    if isinstance(value, dict):
        for key, item in value.items():
            below = f"{at}.{key}".lstrip(".")
            yield below
            yield from paths(item, below)
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, f"{at}[]")


def scenario(node):
    """The calls and their results."""
    node.call("createwallet", "w", False, False, "", True)
    node.call("createwallet", "locked", False, False, "secret")
    mine = node.call("getnewaddress", "mine", "bech32", wallet="w")
    node.call("generatetoaddress", 2, mine)
    node.call("generatetoaddress", 100, FOREIGN)
    pay = [FOREIGN, 1, "", "", False, True, None, "unset", None, 5]
    paid = node.call("sendtoaddress", *pay, wallet="w")
    node.call("setlabel", FOREIGN, "theirs", wallet="w")
    node.call("syncwithvalidationinterfacequeue")
    calls = [
        ("getwalletinfo", []), ("getbalances", []), ("listwalletdir", []), ("gettransaction", [paid, True, True]),
        ("listtransactions", []), ("listsinceblock", []), ("listunspent", [0]), ("getaddressinfo", [mine]),
        ("listreceivedbyaddress", [0, True]), ("listreceivedbylabel", [0, True]), ("listdescriptors", []), ("gethdkeys", []),
        ("sendtoaddress", pay + [True]), ("walletcreatefundedpsbt", [[], [{FOREIGN: 1}]]),
    ]
    for method, params in calls:
        yield method, node.call(method, *params, wallet="w")
    yield "getwalletinfo locked", node.call("getwalletinfo", wallet="locked")


def start(bitcoind):
    """A node of either kind: Bitcoin Core refuses the arguments of Knots."""
    try:
        with Node(bitcoind):
            pass
    except RuntimeError:
        BASE_ARGUMENTS[:] = [one for one in BASE_ARGUMENTS if not one.startswith(KNOTS_ARGUMENTS)]
    return Node(bitcoind)


def release_of(node):
    """The major release; a build between two releases has the rules of the later one."""
    version = int(str(node.call("getnetworkinfo")["version"]))
    return (version + UNRELEASED) // RELEASE_UNIT


def main():
    with start(program(__doc__)) as node:
        rows = [{"call": call, "members": sorted(set(paths(result)))} for call, result in scenario(node)]
        write_rows(f"wallet-keys-{release_of(node)}.json", {"bitcoind": node.version(), "results": rows})


if __name__ == "__main__":
    main()
