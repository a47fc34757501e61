"""What miners' hand-written HTTP does to a server: the bytes of ckpool, idle connections, a body that comes later."""

import base64
import json
import socket
from urllib.parse import urlsplit

from common import IN_FRONT, PASSWORD, URL, USER, expect

AUTHORIZATION = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
PLACE = (urlsplit(URL).hostname, urlsplit(URL).port)
# How long a line may take to come, in seconds.
PATIENCE = 60


def connect():
    return socket.create_connection(PLACE, timeout=PATIENCE)


def head(length, end="\r\n", more=()):
    lines = ["POST / HTTP/1.1", f"Authorization: Basic {AUTHORIZATION}", f"Host: {PLACE[0]}", *more, f"Content-Length: {length}", "", ""]
    return end.join(lines).encode()


def answer(file):
    """Reads an answer line by line, as ckpool does, and gives status line and body."""
    status = file.readline().decode().rstrip("\r\n")
    length = None
    while line := file.readline().decode().rstrip("\r\n"):
        name, value = line.split(":", 1)
        if name.lower() == "content-length":
            length = int(value)
    body = file.readline()
    expect("the body is one line, as long as it says", len(body), length)
    return status, json.loads(body)


# Connections that never say anything stand by all the while.
idle = [connect() for _ in range(32)]

# ckpool ends its lines with LF alone, and closes after each answer.
for body in (b'{"method": "getblockcount"}\n', b'{"method": "validateaddress", "params": ["nonsense"]}\n'):
    with connect() as ckpool, ckpool.makefile("rb") as file:
        ckpool.sendall(head(len(body), "\n", ["Content-type: application/json"]) + body)
        status, said = answer(file)
        expect("ckpool's status line", status[:15], "HTTP/1.1 200 OK")
        # It sends no id, and is answered without one.
        expect("ckpool's shape", (said["error"], "id" in said), (None, False))

# A body in a segment of its own, on a connection that is kept, after a head that came in pieces.
with connect() as kept, kept.makefile("rb") as file:
    kept.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for number in range(3):
        body = json.dumps({"jsonrpc": "2.0", "method": "getblockcount", "id": number}).encode()
        start = head(len(body), more=["content-type: text/json"])
        for piece in (start[:20], start[20:], body[:10], body[10:]):
            kept.sendall(piece)
        expect("a body that comes later", answer(file), ("HTTP/1.1 200 OK", {"jsonrpc": "2.0", "result": 0, "id": number}))

# A pool probes for submitblock without arguments, and refuses to run unless that is error -1.
with connect() as pool, pool.makefile("rb") as file:
    probe = b'[{"method": "getdifficulty", "params": [], "id": 1478000000001}, {"method": "submitblock", "params": [], "id": 1478000000002}]'
    pool.sendall(head(len(probe)) + probe)
    status, said = answer(file)
    expect("the probe", (said[1]["error"]["code"], said[1]["id"]), (-1, 1478000000002))
    if not IN_FRONT:
        expect("getdifficulty", said[0]["error"], None)

# minerd holds a long poll on one connection, and hears of a block that comes on another.
with connect() as waiting, waiting.makefile("rb") as heard, connect() as working, working.makefile("rb") as file:
    def ask(sock, method, params):
        body = json.dumps({"method": method, "params": params, "id": 0}).encode() + b"\r\n"
        sock.sendall(head(len(body), more=["Content-Type: application/json", "X-Mining-Extensions: midstate"]) + body)

    request = {"capabilities": ["coinbasetxn", "coinbasevalue", "longpoll", "workid"], "rules": ["segwit"]}
    ask(working, "getblocktemplate", [request])
    first = answer(file)[1]["result"]
    ask(waiting, "getblocktemplate", [request | {"longpollid": first["longpollid"]}])
    ask(working, "generatetoaddress", [1, "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"])
    mined = answer(file)[1]["result"]
    second = answer(heard)[1]["result"]
    expect("the long poll ends with a template on the new block", second["previousblockhash"], mined[0])
    expect("its height", (first["height"], second["height"]), (1, 2))

for sock in idle:
    sock.close()
