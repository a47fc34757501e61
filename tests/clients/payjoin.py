"""A session of payjoin-cli: one wallet pays another by BIP 78, and the receiver adds a coin of its own."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

from common import PASSWORD, URL, USER, call, expect, free_port

# In satoshi, and satoshi per virtual byte.
AMOUNT = 2_000_000
FEERATE = 3
# How long a step may take, in seconds.
PATIENCE = 60
# An onion service may be reached without TLS; the sender's proxy for it is the receiver itself.
ENDPOINT = "http://payjoin.onion/"


def start(program, folder, wallet, *arguments, proxy=None):
    """Starts payjoin-cli for a wallet, in a folder of its own."""
    folder = pathlib.Path(folder) / wallet
    folder.mkdir()
    login = ["--rpcuser", USER, "--rpcpassword", PASSWORD]
    environment = os.environ | {"no_proxy": "127.0.0.1", "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    if proxy:
        environment["http_proxy"] = proxy
    return subprocess.Popen(
        [program, "--rpchost", f"{URL}/wallet/{wallet}", *login, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def receive(program, folder):
    """A receiver that listens: itself, its port, and the address to pay."""
    port = free_port()
    receiver = start(
        program, folder, "shop", "--port", str(port), "--pj-endpoint", ENDPOINT, "receive", str(AMOUNT)
    )
    said = []
    for line in receiver.stdout:
        said.append(line)
        if line.startswith("bitcoin:"):
            # What it says later is read away, so that it never waits for a reader.
            threading.Thread(target=lambda: said.extend(receiver.stdout), daemon=True).start()
            address, _, endpoint = line.strip().partition("pj=")
            # It is written in capitals, in which the sender knows no onion service.
            return receiver, port, f"{address}pj={endpoint.lower()}", said
    raise SystemExit(f"the receiver ended\n{''.join(said)}")


def main():
    program = sys.argv[1]
    for wallet in ("payer", "shop"):
        call("createwallet", wallet)
        call("generatetoaddress", 1, call("getnewaddress", path=f"/wallet/{wallet}"))
    call("generatetoaddress", 100, call("getnewaddress", path="/wallet/payer"))
    shop_before = call("getbalances", path="/wallet/shop")["mine"]["trusted"]
    with tempfile.TemporaryDirectory(prefix="payjoin-") as folder:
        receiver, port, uri, received = receive(program, folder)
        try:
            arguments = ["--port", "0", "--pj-endpoint", ENDPOINT, "send", uri, "--fee-rate", str(FEERATE)]
            sender = start(program, folder, "payer", *arguments, proxy=f"http://127.0.0.1:{port}")
            said, _ = sender.communicate(timeout=PATIENCE)
        finally:
            receiver.terminate()
            receiver.wait()
    sent = re.search(r"Payjoin sent. TXID: ([0-9a-f]{64})", said)
    if not sent:
        raise SystemExit(f"nothing was sent\n{said}\n{''.join(received)}")
    # Both sides own an input, and the receiver has the amount more than before.
    transaction = call("decoderawtransaction", call("gettransaction", sent[1], path="/wallet/shop")["hex"])
    owners = []
    for wallet in ("payer", "shop"):
        inputs = [call("gettxout", entry["txid"], entry["vout"], False)["scriptPubKey"]["address"] for entry in transaction["vin"]]
        owners.append(sum(call("getaddressinfo", address, path=f"/wallet/{wallet}")["ismine"] for address in inputs))
    expect("inputs of each side", owners, [1, 1])
    call("generatetoaddress", 1, call("getnewaddress", path="/wallet/payer"))
    gained = call("getbalances", path="/wallet/shop")["mine"]["trusted"] - shop_before
    # The receiver pays for the input that it added.
    if not 0 <= AMOUNT - round(gained * 100_000_000) <= 1_000:
        raise SystemExit(f"the receiver has {gained} more")


if __name__ == "__main__":
    main()
