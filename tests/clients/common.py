"""What the sessions in Python share: where the host is, and how they say what they found."""

import base64
import contextlib
import json
import os
import pathlib
import random
import socket
import urllib.error
import urllib.request

URL = os.environ["OUTRIGGER_URL"]
COOKIE = os.environ["OUTRIGGER_COOKIE"]
DATADIR = os.environ["OUTRIGGER_DATADIR"]
USER = os.environ["OUTRIGGER_USER"]
PASSWORD = os.environ["OUTRIGGER_PASSWORD"]
# The host stands in front of a Bitcoin Knots, which has not all methods of Bitcoin Core and a version of its own.
IN_FRONT = bool(os.environ["OUTRIGGER_IN_FRONT"])
PORT = int(URL.rsplit(":", 1)[1])

# A key that is imported, and its descriptor with the checksum.
KEY = "cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v"
DESCRIPTOR = f"wpkh({KEY})#pdry7alk"

# The subsidy of the first 149 blocks of regtest, in satoshi.
SUBSIDY = 50 * 100_000_000


def url_of(user, password, path=""):
    """The host's address with a user and a password in it, as some clients want it."""
    return URL.replace("http://", f"http://{user}:{password}@") + path


def free_port():
    """A port on which nothing listens, below those that Linux gives to outgoing connections."""
    while True:
        port = random.randrange(10_000, 32_000)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port


def expect(what, found, wanted):
    """Ends the session where something is not as it should be."""
    if found != wanted:
        raise SystemExit(f"{what}: expected {wanted!r}, found {found!r}")


def refusal(kind, call, *arguments):
    """The error of a certain type that a call raises."""
    try:
        answer = call(*arguments)
    except kind as error:
        return error
    raise SystemExit(f"expected {kind.__name__}, was answered {answer!r}")


def call(method, *params, path="", patience=60, url=URL, cookie=COOKIE):
    """A call by the cookie's user, for sessions whose client does not make all calls; ends the session where it fails."""
    login = base64.b64encode(pathlib.Path(cookie).read_bytes()).decode()
    request = urllib.request.Request(url + path, json.dumps({"id": 1, "method": method, "params": params}).encode())
    request.add_header("Authorization", f"Basic {login}")
    try:
        with urllib.request.urlopen(request, timeout=patience) as reply:
            return json.load(reply)["result"]
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{method}: {error.read().decode()}") from error
