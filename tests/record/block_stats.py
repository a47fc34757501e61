#!/usr/bin/env python3
"""Records data/block-stats.json: what getblockstats counts in each block of the chain."""

import argparse

from bitcoind import Node
from loaded import load_chain, write_rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bitcoind", required=True, help="path of bitcoind")
    arguments = parser.parse_args()
    with Node(arguments.bitcoind) as node:
        height = len(load_chain(node))
        rows = [node.call("getblockstats", at) for at in range(height + 1)]
        write_rows("block-stats.json", {"bitcoind": node.version(), "rows": rows})


if __name__ == "__main__":
    main()
