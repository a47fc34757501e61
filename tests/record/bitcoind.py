"""A throw-away regtest bitcoind on loopback and a raw JSON-RPC client for it.

Replies are kept as the text the node sent, so that number formatting (eight
decimals) and key order survive into the recordings.
"""

import argparse
import base64
import contextlib
import http.client
import json
import random
import re
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.parse

USER = "record"
PASSWORD = "record"

# Policy of Bitcoin Core, no expiry of the binary, no peers, and everything the
# recordings need switched on whatever the build's defaults are.
BASE_ARGUMENTS = [
    "-regtest",
    "-listen=0",
    "-connect=0",
    "-dnsseed=0",
    "-txindex=1",
    "-fallbackfee=0.0001",
    "-corepolicy=1",
    "-softwareexpiry=0",
    "-acceptnonstdtxn=1",
    "-walletimplicitsegwit=1",
    "-walletoldsigs=1",
    "-printtoconsole=0",
    f"-rpcuser={USER}",
    f"-rpcpassword={PASSWORD}",
]

START_TIMEOUT_SECONDS = 60


class Number:
    """A JSON number kept as the text the node sent."""

    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return isinstance(other, Number) and self.text == other.text

    def __hash__(self):
        return hash(self.text)

    def __repr__(self):
        return self.text


class RpcError(Exception):
    """An `error` member of a reply."""

    def __init__(self, method, error):
        super().__init__(f"{method}: {error}")
        self.code = error["code"]
        self.message = error["message"]


def program(description):
    """The path of the bitcoind that the command line names."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bitcoind", required=True, help="path of bitcoind")
    return parser.parse_args().bitcoind


def free_port():
    """A port on which nothing listens, below those that Linux gives to outgoing connections."""
    while True:
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def parse_exact(text):
    """Parses JSON keeping every non-integer number as its text."""
    return json.loads(text, parse_float=Number)


def amount(satoshi):
    """Satoshi as the eight-decimal number the RPCs take."""
    whole, part = divmod(satoshi, 100_000_000)
    return Number(f"{whole}.{part:08d}")


_MARK = "\ue000"


def dump(value):
    """JSON text in which each `Number` keeps its digits."""

    def mark(item):
        if isinstance(item, Number):
            return _MARK + item.text + _MARK
        raise TypeError(f"not JSON: {item!r}")

    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=mark)
    return re.sub(f'"{_MARK}([^{_MARK}]*){_MARK}"', r"\1", text)


class Node:
    """One bitcoind in a temporary folder; a context manager that stops it."""

    def __init__(self, bitcoind, arguments=()):
        self.bitcoind = bitcoind
        self.arguments = list(arguments)
        self.datadir = tempfile.mkdtemp(prefix="record-bitcoind-")
        self.port = free_port()
        self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Starts the process and waits until it answers."""
        command = [self.bitcoind, f"-datadir={self.datadir}", f"-rpcport={self.port}"]
        command += BASE_ARGUMENTS + self.arguments
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise RuntimeError(self.process.stderr.read().decode())
            try:
                if self.exchange("uptime", [])[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise RuntimeError("bitcoind did not answer in time")

    def close(self):
        """Stops the process and removes its folder."""
        if self.process is not None and self.process.poll() is None:
            try:
                self.exchange("stop", [])
                self.process.wait(timeout=60)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.datadir, ignore_errors=True)

    def exchange(self, method, params, wallet=None):
        """Posts one request; gives the HTTP status and the reply's text."""
        path = "/" if wallet is None else f"/wallet/{urllib.parse.quote(wallet)}"
        body = dump({"id": "record", "method": method, "params": params})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        credentials = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        try:
            connection.request(
                "POST",
                path,
                body.encode(),
                {
                    "Authorization": f"Basic {credentials}",
                    "Content-Type": "application/json",
                },
            )
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def reply(self, method, *params, wallet=None):
        """The reply as (result, error), numbers kept as text."""
        _, text = self.exchange(method, list(params), wallet)
        parsed = parse_exact(text)
        return parsed.get("result"), parsed.get("error")

    def call(self, method, *params, wallet=None):
        """The result, or an `RpcError`."""
        result, error = self.reply(method, *params, wallet=wallet)
        if error is not None:
            raise RpcError(method, error)
        return result

    def version(self):
        """The subversion string, for the recordings' provenance."""
        return self.call("getnetworkinfo")["subversion"]
