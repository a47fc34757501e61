"""Reads and writes the recordings, and feeds the recorded chain to a fresh node."""

import json
import os

from bitcoind import dump

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")


def recorded(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return json.load(file)


def load_chain(node):
    """Submits chain.hex, with the clock at the tip's time. Gives the blocks' hex."""
    with open(os.path.join(DATA, "chain.hex"), encoding="ascii") as file:
        blocks = file.read().split()
    node.call("setmocktime", recorded("chain.json")["blocks"][-1]["time"])
    for text in blocks:
        found = node.call("submitblock", text)
        assert found is None, found
    return blocks


def write_rows(name, value):
    """JSON with one line per element of each top-level array."""
    lines = []
    for key, item in value.items():
        if isinstance(item, list):
            body = ",\n".join(f"  {dump(row)}" for row in item)
            lines.append(f" {dump(key)}: [\n{body}\n ]")
        else:
            lines.append(f" {dump(key)}: {dump(item)}")
    write_lines(name, ["{", ",\n".join(lines), "}"])


def write_lines(name, lines):
    with open(os.path.join(DATA, name), "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)
