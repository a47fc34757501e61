#!/usr/bin/env python3
"""Re-makes every recording, in the order in which they build on each other."""

import os
import subprocess
import sys

from bitcoind import program

SCRIPTS = ["chain.py", "block_stats.py", "signing.py", "texts.py", "bad_blocks.py", "history.py", "random_histories.py", "wallet_rules.py",
           "policies.py", "refusals.py", "wrong_arguments.py", "help.py", "wallet_keys.py"]


def main():
    bitcoind = program(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    for script in SCRIPTS:
        command = [sys.executable, "-B", os.path.join(here, script)]
        subprocess.run(command + ["--bitcoind", bitcoind], check=True)


if __name__ == "__main__":
    main()
