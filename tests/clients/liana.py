"""A session of Liana's daemon with each kind of policy: receives, spends, replaces, recovers after the timelock, rescans.

Liana names its wallet by an absolute path, compares the texts of descriptors, and has the keys nowhere: the session signs.
"""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from common import COOKIE, URL, call, expect
from embit import bip32
from embit.networks import NETWORKS

# How long a step of the daemon may take, in seconds: it asks the node once a second.
PATIENCE = 60
# After how many blocks the recovery key may spend.
TIMELOCK = 10
# In satoshi, and satoshi per virtual byte.
RECEIVED, SPENT = 100_000_000, 30_000_000
FEERATE, HIGHER_FEERATE = 2, 20


class Key:
    """An account's extended key, with its origin, private and public."""

    def __init__(self, seed):
        master = bip32.HDKey.from_seed(bytes([seed]) * 32, version=NETWORKS["regtest"]["xprv"])
        account = master.derive("m/48h/1h/0h/2h")
        origin = f"[{master.my_fingerprint.hex()}/48'/1'/0'/2']"
        self.private = f"{origin}{account.to_base58()}"
        self.public = f"{origin}{account.to_public().to_base58()}"


MAIN, RECOVERY = Key(1), Key(2)
POLICIES = {
    "wsh": "wsh(or_d(pk({main}/<0;1>/*),and_v(v:pkh({recovery}/<0;1>/*),older({blocks}))))",
    "tr": "tr({main}/<0;1>/*,and_v(v:pk({recovery}/<0;1>/*),older({blocks})))",
}


def until(what, found):
    """Waits until the daemon has seen something, and gives it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if (value := found()) is not None:
            return value
        time.sleep(0.1)
    raise SystemExit(f"Liana did not see {what}")


class Daemon:
    """A running lianad with one wallet."""

    def __init__(self, program, folder, descriptor):
        self.socket = folder / "regtest/lianad_rpc"
        config = folder / "config.toml"
        config.write_text(
            f"""data_dir = "{folder}"
main_descriptor = "{descriptor}"
log_level = "debug"
[bitcoin_config]
network = "regtest"
poll_interval_secs = 1
[bitcoind_config]
cookie_path = "{COOKIE}"
addr = "{URL.removeprefix('http://')}"
"""
        )
        self.log = folder / "log"
        # A daemon that was ended leaves its socket behind.
        self.socket.unlink(missing_ok=True)
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([program, "--conf", config], stdout=log, stderr=subprocess.STDOUT)
        until("its own start", lambda: self.socket.exists() or self.check())

    def check(self):
        """Ends the session where the daemon has ended."""
        if self.process.poll() is not None:
            raise SystemExit(f"lianad ended\n{self.log.read_text()[-4000:]}")

    def ask(self, method, **params):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(str(self.socket))
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            connection.sendall(json.dumps(request).encode() + b"\n")
            text = b""
            while True:
                text += connection.recv(65536)
                try:
                    answer = json.loads(text)
                    break
                except ValueError:
                    self.check()
        if "error" in answer:
            raise SystemExit(f"lianad {method}: {answer['error']}\n{self.log.read_text()[-4000:]}")
        return answer["result"]

    def coins(self, *statuses):
        return self.ask("listcoins", statuses=list(statuses), outpoints=[])["coins"]

    def stop(self):
        self.process.terminate()
        self.process.wait()


def confirm():
    call("generatetoaddress", 1, call("getnewaddress", path="/wallet/payer"))


def send(daemon, psbt, private):
    """Signs a payment with one key, hands it to the daemon, and has it sent."""
    descriptors = [{"desc": private.replace("<0;1>", part), "range": 100} for part in ("0", "1")]
    signed = call("descriptorprocesspsbt", psbt, descriptors, "DEFAULT", True, False)["psbt"]
    daemon.ask("updatespend", psbt=signed)
    txid = call("decodepsbt", signed)["tx"]["txid"]
    daemon.ask("broadcastspend", txid=txid)
    if txid not in call("getrawmempool"):
        raise SystemExit(f"{txid} is not in the mempool")
    return txid


def session(program, kind):
    policy = POLICIES[kind]
    public = policy.format(main=MAIN.public, recovery=RECOVERY.public, blocks=TIMELOCK)
    by_main = policy.format(main=MAIN.private, recovery=RECOVERY.public, blocks=TIMELOCK)
    by_recovery = policy.format(main=MAIN.public, recovery=RECOVERY.private, blocks=TIMELOCK)
    with tempfile.TemporaryDirectory(prefix="liana-") as folder:
        folder = pathlib.Path(folder)
        daemon = Daemon(program, folder, public)
        try:
            pay_and_recover(daemon, kind, folder, by_main, by_recovery)
            # It is started again on what it and the host have kept.
            daemon.stop()
            daemon = Daemon(program, folder, public)
            until("its coins again", lambda: daemon.coins("spent") or None)
        finally:
            daemon.stop()


def pay_and_recover(daemon, kind, folder, by_main, by_recovery):
    wallets = [name for name in call("listwallets") if name.startswith(str(folder))]
    expect("wallets of Liana", len(wallets), 1)

    call("sendtoaddress", daemon.ask("getnewaddress")["address"], RECEIVED / 100_000_000, path="/wallet/payer")
    until("a payment in the mempool", lambda: daemon.coins("unconfirmed") or None)
    confirm()
    coin = until("its confirmation", lambda: daemon.coins("confirmed") or None)[0]
    expect("received", coin["amount"], RECEIVED)

    # A payment, and its replacement.
    shop = call("getnewaddress", path="/wallet/payer")
    spend = daemon.ask("createspend", destinations={shop: SPENT}, outpoints=[], feerate=FEERATE)
    first = send(daemon, spend["psbt"], by_main)
    until("its own payment", lambda: daemon.coins("spending") or None)
    replacement = daemon.ask("rbfpsbt", txid=first, is_cancel=False, feerate=HIGHER_FEERATE)
    second = send(daemon, replacement["psbt"], by_main)
    if first in call("getrawmempool"):
        raise SystemExit("the payment was not replaced")
    confirm()
    change = until("its change", lambda: daemon.coins("confirmed") or None)[0]
    expect("change comes from", change["outpoint"].split(":")[0], second)
    expect("change", change["is_change"], True)

    # The recovery key, after the timelock.
    call("generatetoaddress", TIMELOCK, call("getnewaddress", path="/wallet/payer"))
    height = call("getblockcount")
    until("the blocks", lambda: True if daemon.ask("getinfo")["block_height"] == height else None)
    recovery = daemon.ask("createrecovery", address=shop, feerate=FEERATE)
    send(daemon, recovery["psbt"], by_recovery)
    confirm()
    until("that all is spent", lambda: True if not daemon.coins("confirmed", "spending") else None)

    if kind == "tr":
        # Its rescan compares texts, and bitcoind 29 tells the key of a Taproot output with other marks of hardened steps.
        return
    # Money that comes while it looks for old payments.
    call("sendtoaddress", daemon.ask("getnewaddress")["address"], RECEIVED / 100_000_000, path="/wallet/payer")
    confirm()
    daemon.ask("startrescan", timestamp=1_296_688_602)

    def rescanned():
        amounts = [coin["amount"] for coin in daemon.coins("confirmed")]
        over = daemon.ask("getinfo")["rescan_progress"] is None
        return True if over and amounts == [RECEIVED] and len(daemon.coins("spent")) == 2 else None

    until("all payments in a rescan", rescanned)


def main():
    program = sys.argv[1]
    call("createwallet", "payer")
    call("generatetoaddress", 110, call("getnewaddress", path="/wallet/payer"))
    for kind in POLICIES:
        session(program, kind)


if __name__ == "__main__":
    main()
