#!/usr/bin/env python3
"""Records data/help.json: the methods that the node lists in its help."""

from bitcoind import Node, program
from loaded import write_rows


def main():
    with Node(program(__doc__)) as node:
        lines = [line for line in node.call("help").splitlines() if line and not line.startswith("==")]
        write_rows("help.json", {"bitcoind": node.version(), "methods": [line.split(" ")[0] for line in lines]})


if __name__ == "__main__":
    main()
