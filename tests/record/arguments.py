#!/usr/bin/env python3
"""Records data/arguments-RELEASE.json: each method's arguments by position. An argument's other names, and the members of options that
a call may give by name, stand behind its name, divided by `|`."""

from bitcoind import program
from loaded import write_rows
from wallet_keys import release_of, start


def main():
    with start(program(__doc__)) as node:
        lines = [line for line in node.call("help").splitlines() if line and not line.startswith("==")]
        methods = {line.split(" ")[0]: {} for line in lines}
        for method, position, name, _ in node.call("help", "dump_all_command_conversions"):
            methods.setdefault(method, {}).setdefault(int(str(position)), []).append(name)
        rows = [
            {"method": method, "arguments": ["|".join(names) for _, names in sorted(positions.items())]}
            for method, positions in sorted(methods.items())
        ]
        write_rows(f"arguments-{release_of(node)}.json", {"bitcoind": node.version(), "methods": rows})


if __name__ == "__main__":
    main()
