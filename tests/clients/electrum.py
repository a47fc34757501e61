"""ElectrumX, an Electrum server (PyPI e-x), over the host's RPC: it indexes the chain, gives Merkle proofs, and sends payments."""

import hashlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from common import IN_FRONT, PASSWORD, USER, call, expect, free_port, url_of

# The script and the address of a key hash that nobody has a key of.
SCRIPT = "0014751e76e8199196d454941c45d1b3a323f1433bd6"
ADDRESS = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
# How long the server may take to start or to follow, in seconds.
PATIENCE = 60


class Server:
    """A running ElectrumX, with a client of it."""

    def __init__(self, folder):
        self.port = free_port()
        self.log = open(pathlib.Path(folder) / "log", "w+")
        settings = {
            "ALLOW_ROOT": "1",
            "CACHE_MB": "10",
            "COIN": "Bitcoin",
            "COST_HARD_LIMIT": "0",
            "COST_SOFT_LIMIT": "0",
            "DAEMON_URL": url_of(USER, PASSWORD, "/"),
            "DB_DIRECTORY": folder,
            "DB_ENGINE": "leveldb",
            "NET": "regtest",
            "PEER_DISCOVERY": "off",
            "SERVICES": f"tcp://127.0.0.1:{self.port},rpc://127.0.0.1:{free_port()}",
        }
        program = pathlib.Path(sys.executable).with_name("electrumx_server")
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", program], env={**os.environ, **settings}, stdout=self.log, stderr=self.log
        )
        self.lines = self.reach().makefile("rw")
        self.calls = 0

    def reach(self):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                return socket.create_connection(("127.0.0.1", self.port), PATIENCE)
            except OSError:
                time.sleep(0.1)
        self.log.seek(0)
        raise SystemExit(f"ElectrumX does not serve:\n{self.log.read()}")

    def call(self, method, *arguments):
        self.calls += 1
        request = {"jsonrpc": "2.0", "id": self.calls, "method": method, "params": arguments}
        self.lines.write(json.dumps(request) + "\n")
        self.lines.flush()
        while True:
            reply = json.loads(self.lines.readline())
            if reply.get("id") == self.calls:
                if "error" in reply:
                    raise SystemExit(f"{method}: {reply['error']}")
                return reply["result"]

    def wait(self, what, wanted, method, *arguments):
        """Until an answer is what it should come to."""
        end = time.monotonic() + PATIENCE
        while True:
            found = self.call(method, *arguments)
            if wanted(found):
                return found
            if time.monotonic() > end:
                raise SystemExit(f"{what}: {found!r}")
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def double_sha256(data):
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def root_of(txid, proof):
    """The Merkle root that a proof leads to."""
    digest, position = bytes.fromhex(txid)[::-1], proof["pos"]
    for sibling in proof["merkle"]:
        other = bytes.fromhex(sibling)[::-1]
        digest = double_sha256(other + digest if position & 1 else digest + other)
        position >>= 1
    return digest


def main():
    call("createwallet", "w")
    mine = call("getnewaddress")
    call("generatetoaddress", 103, mine)
    # Some transactions in one block, so that its tree has branches.
    paid = [call("sendtoaddress", ADDRESS, amount) for amount in (1, 2, 3)]
    call("generatetoaddress", 1, mine)
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            script_hash = hashlib.sha256(bytes.fromhex(SCRIPT)).digest()[::-1].hex()
            server.call("server.version", "session", "1.4")
            history = server.call("blockchain.scripthash.get_history", script_hash)
            expect("the history", sorted(entry["tx_hash"] for entry in history), sorted(paid))
            header = bytes.fromhex(server.call("blockchain.block.header", 104))
            for txid in paid:
                proof = server.call("blockchain.transaction.get_merkle", txid, 104)
                expect("the proof leads to the block's root", root_of(txid, proof), header[36:68])
                checked = call("verifytxoutproof", call("gettxoutproof", [txid]))
                expect("the host proves the same", checked, [txid])
            coin = call("listunspent")[0]
            outputs = {ADDRESS: round(float(coin["amount"]) - 0.001, 8)}
            raw = call("createrawtransaction", [{"txid": coin["txid"], "vout": coin["vout"]}], outputs)
            signed = call("signrawtransactionwithwallet", raw)["hex"]
            sent = server.call("blockchain.transaction.broadcast", signed)
            expect("the payment is in the mempool", sent in call("getrawmempool"), True)
            call("generatetoaddress", 1, mine)
            server.wait("the server follows", lambda tip: tip["height"] == 105, "blockchain.headers.subscribe")
            server.wait("the payment is confirmed", lambda found: len(found) == 4, "blockchain.scripthash.get_history", script_hash)
        finally:
            server.stop()
    where = "in front of a bitcoind" if IN_FRONT else "on the embedded chain"
    print(f"ElectrumX serves {where}: four proofs, one payment")


main()
