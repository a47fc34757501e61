#!/usr/bin/env python3
"""Records data/block-stats.json: what getblockstats counts in each block of the chain."""

from bitcoind import Node, program
from loaded import load_chain, write_rows


def main():
    with Node(program(__doc__)) as node:
        height = len(load_chain(node))
        rows = [node.call("getblockstats", at) for at in range(height + 1)]
        write_rows("block-stats.json", {"bitcoind": node.version(), "rows": rows})


if __name__ == "__main__":
    main()
