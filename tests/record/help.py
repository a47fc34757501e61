#!/usr/bin/env python3
"""Records data/help.json: the methods that the node lists in its help."""

import argparse

from bitcoind import Node
from loaded import write_rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bitcoind", required=True, help="path of bitcoind")
    arguments = parser.parse_args()
    with Node(arguments.bitcoind) as node:
        lines = [line for line in node.call("help").splitlines() if line and not line.startswith("==")]
        write_rows("help.json", {"bitcoind": node.version(), "methods": [line.split(" ")[0] for line in lines]})


if __name__ == "__main__":
    main()
