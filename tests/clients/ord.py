"""A session of ord: its wallet receives, inscribes and sends, and its index equals that of the same blocks at a bitcoind.

Bitcoin Knots refuses inscriptions by policies of its own, so a node in the session's place has to be Bitcoin Core.

    ord.py ORD BITCOIND
"""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from common import PASSWORD, URL, USER, call, expect, free_port

# How long a step may take, in seconds.
PATIENCE = 60
# In satoshi per virtual byte.
FEERATE = 2
CONTENT = "inscribed by a session of ord\n"


class Ord:
    """ord with an index of its own, in front of a node."""

    def __init__(self, program, folder, url, login):
        folder.mkdir()
        self.start = [program, "--regtest", "--index-sats", "--index-addresses", "--data-dir", folder, "--bitcoin-rpc-url", url, *login]

    def said(self, *arguments):
        """Runs a command to its end, and gives the JSON that it prints."""
        done = subprocess.run([*self.start, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise SystemExit(f"ord {' '.join(map(str, arguments))}: {done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def export(self, file):
        """The inscriptions of its index, with their places and addresses."""
        self.said("index", "export", "--include-addresses", "--tsv", file)
        return file.read_text()


def wait_for(what, ready, process):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if ready():
            return
        time.sleep(0.05)
    raise SystemExit(f"{what} did not become ready")


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def inscribe_and_send(program, folder):
    """One wallet's life: what it inscribed and sent to another wallet."""
    login = ["--bitcoin-rpc-username", USER, "--bitcoin-rpc-password", PASSWORD]
    ord_of_host = Ord(program, folder / "ord", URL, login)
    port = free_port()
    arguments = ["server", "--address", "127.0.0.1", "--http", "--http-port", str(port), "--polling-interval", "100ms"]
    server = subprocess.Popen([*ord_of_host.start, *arguments], stdout=subprocess.DEVNULL)
    try:
        wait_for("ord's server", lambda: listens(port), server)

        def wallet(*arguments):
            return ord_of_host.said("wallet", "--server-url", f"http://127.0.0.1:{port}", *arguments)

        wallet("create")
        call("createwallet", "collector")
        elsewhere = call("getnewaddress", "", "bech32m", path="/wallet/collector")
        own = wallet("receive")["addresses"][0]
        call("generatetoaddress", 2, own)
        call("generatetoaddress", 100, elsewhere)
        content = folder / "content.txt"
        content.write_text(CONTENT)
        made = wallet("inscribe", "--fee-rate", str(FEERATE), "--file", content)
        inscription = made["inscriptions"][0]["id"]
        expect("waiting transactions", set(call("getrawmempool")), {made["commit"], made["reveal"]})
        call("generatetoaddress", 1, elsewhere)
        expect("inscriptions", [held["inscription"] for held in wallet("inscriptions")], [inscription])
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/content/{inscription}", timeout=PATIENCE) as reply:
            expect("content", reply.read().decode(), CONTENT)
        sent = wallet("send", "--fee-rate", str(FEERATE), elsewhere, inscription)["txid"]
        call("generatetoaddress", 1, elsewhere)
        expect("inscriptions after the sending", wallet("inscriptions"), [])
        # The commitment is the wallet's too, and the reveal pays to its change, which listtransactions leaves out.
        listed = {entry["transaction"] for entry in wallet("transactions")}
        expect("transactions not listed", {made["commit"], sent} - listed, set())
        received = call("gettransaction", sent, path="/wallet/collector")
        expect("the inscribed output's owner", [detail["address"] for detail in received["details"]], [elsewhere])
        wallet("balance")
    finally:
        server.terminate()
        server.wait()
    return ord_of_host.export(folder / "ord.tsv")


def at_bitcoind(program, bitcoind, folder):
    """The index that ord makes of the same blocks at a bitcoind."""
    datadir = folder / "node"
    datadir.mkdir()
    port = free_port()
    arguments = ["-regtest", "-server", "-txindex", "-listen=0", "-connect=0", "-printtoconsole=0", f"-rpcport={port}"]
    started = datadir / "started"
    arguments += [f"-datadir={datadir}", f"-startupnotify=touch {started}"]
    node = subprocess.Popen([bitcoind, *arguments])
    cookie = datadir / "regtest/.cookie"
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for("bitcoind", started.is_file, node)
        for height in range(1, call("getblockcount") + 1):
            block = call("getblock", call("getblockhash", height), 0)
            expect(f"block {height} at bitcoind", call("submitblock", block, url=url, cookie=cookie), None)
        return Ord(program, folder / "ord-of-node", url, ["--cookie-file", cookie]).export(folder / "node.tsv")
    finally:
        node.terminate()
        node.wait()


def main():
    program, bitcoind = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ord-") as folder:
        folder = pathlib.Path(folder)
        here = inscribe_and_send(program, folder)
        expect("lines of the index", len(here.splitlines()), 2)
        expect("ord's index", here, at_bitcoind(program, bitcoind, folder))


if __name__ == "__main__":
    main()
