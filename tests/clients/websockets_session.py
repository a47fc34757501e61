"""A session of websockets: calls and batches over WebSockets, many at once, and the refusals that HTTP clients get."""

import asyncio
import base64
import json

import websockets
from websockets.exceptions import InvalidStatus

from common import PASSWORD, URL, USER, expect

LOGIN = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def connect(path="/", login=LOGIN, **more):
    headers = {"Authorization": f"Basic {login}"} if login else {}
    address = URL.replace("http://", "ws://") + path
    return websockets.connect(address, additional_headers=headers, max_size=None, **more)


async def ask(socket, *requests, batch=False):
    """The results or codes of requests, in their order."""
    messages = [{"jsonrpc": "2.0", "id": number, "method": method, "params": params} for number, (method, params) in enumerate(requests)]
    for message in [messages] if batch else messages:
        await socket.send(json.dumps(message))
    answers = json.loads(await socket.recv()) if batch else [json.loads(await socket.recv()) for _ in messages]
    by_id = {answer["id"]: answer.get("result", answer.get("error", {}).get("code")) for answer in answers}
    return [by_id[number] for number in range(len(messages))]


async def status(**arguments):
    try:
        async with connect(**arguments):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


async def session():
    async with connect() as node:
        expect("createwallet", (await ask(node, ("createwallet", ["w"])))[0]["name"], "w")
        expect("codes", await ask(node, ("nosuchmethod", []), ("getblockhash", [1_000_000]), ("getblockhash", [])), [-32601, -8, -1])
        expect("named", await ask(node, ("getblockhash", {"height": 0})), await ask(node, ("getbestblockhash", [])))
    async with connect("/wallet/w") as wallet:
        address = (await ask(wallet, ("getnewaddress", ["mine"])))[0]
        await ask(wallet, ("generatetoaddress", [101, address]))
        expect("a batch", await ask(wallet, ("getbalance", []), ("getblockcount", []), ("nosuchmethod", []), batch=True), [50, 101, -32601])
        calls = [("getblockcount", []), ("getbalance", [])] * 300
        expect("many at once", await ask(wallet, *calls), [101, 50] * 300)
        history = (await ask(wallet, ("listsinceblock", [])))[0]["transactions"]
        expect("history", len(history), 101)
        # A long poll waits beside other calls of its connection, until there is a block.
        expect("a long poll", await wait_and_mine(wallet, address), 102)
    async with connect() as node:
        methods = (await ask(node, ("getrpcinfo", [])))[0]["active_commands"]
        expect("active", [method["method"] for method in methods], ["getrpcinfo"])
    expect("no credentials", await status(login=None), 401)
    expect("wrong credentials", await status(login="eDp5"), 401)
    expect("no such path", await status(path="/nosuch"), 404)
    expect("a page", await status(origin="https://evil.example"), 403)


async def wait_and_mine(wallet, address):
    """The height that waitforblockheight tells, while the same connection mines."""
    await wallet.send(json.dumps({"jsonrpc": "2.0", "id": "wait", "method": "waitforblockheight", "params": [102]}))
    await wallet.send(json.dumps({"jsonrpc": "2.0", "id": "mine", "method": "generatetoaddress", "params": [1, address]}))
    answers = [json.loads(await wallet.recv()) for _ in range(2)]
    return next(answer for answer in answers if answer["id"] == "wait")["result"]["height"]


asyncio.run(session())
