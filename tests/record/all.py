#!/usr/bin/env python3
"""Re-makes every recording, in the order in which they build on each other."""

import argparse
import os
import subprocess
import sys

SCRIPTS = ["chain.py", "block_stats.py", "signing.py", "texts.py", "bad_blocks.py", "history.py", "random_histories.py", "wallet_rules.py",
           "policies.py", "refusals.py", "help.py", "wallet_keys.py"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bitcoind", required=True, help="path of bitcoind")
    arguments = parser.parse_args()
    here = os.path.dirname(os.path.abspath(__file__))
    for script in SCRIPTS:
        command = [sys.executable, "-B", os.path.join(here, script)]
        subprocess.run(command + ["--bitcoind", arguments.bitcoind], check=True)


if __name__ == "__main__":
    main()
