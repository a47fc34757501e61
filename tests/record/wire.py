"""Blocks, transactions and scripts in the consensus encoding, as plain data."""

import struct

from keys import double_sha256, sha256, hash160

SEQUENCE_FINAL = 0xFFFFFFFF


def compact_size(number):
    if number < 0xFD:
        return bytes([number])
    if number <= 0xFFFF:
        return b"\xfd" + struct.pack("<H", number)
    return b"\xfe" + struct.pack("<I", number)


def push(data):
    """The smallest opcode that pushes `data` of at most 520 bytes."""
    if len(data) < 0x4C:
        return bytes([len(data)]) + data
    if len(data) <= 0xFF:
        return b"\x4c" + bytes([len(data)]) + data
    return b"\x4d" + struct.pack("<H", len(data)) + data


def script_number(number):
    """A minimal push of a non-negative script number."""
    if number == 0:
        return b"\0"
    if number <= 16:
        return bytes([0x50 + number])
    data = number.to_bytes((number.bit_length() + 8) // 8, "little")
    return push(data)


def multisig(required, pubkeys):
    keys = b"".join(push(key) for key in pubkeys)
    return script_number(required) + keys + script_number(len(pubkeys)) + b"\xae"


def p2pk(pubkey):
    return push(pubkey) + b"\xac"


def p2pkh(pubkey):
    return b"\x76\xa9\x14" + hash160(pubkey) + b"\x88\xac"


def p2sh(redeem):
    return b"\xa9\x14" + hash160(redeem) + b"\x87"


def p2wpkh(pubkey):
    return b"\0\x14" + hash160(pubkey)


def p2wsh(witness_script):
    return b"\0\x20" + sha256(witness_script)


def p2tr(output_key):
    return b"\x51\x20" + output_key


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        part = self.data[self.at : self.at + count]
        if len(part) != count:
            raise ValueError("data ends early")
        self.at += count
        return part

    def number(self, count):
        return int.from_bytes(self.take(count), "little")

    def compact(self):
        first = self.number(1)
        return first if first < 0xFD else self.number({0xFD: 2, 0xFE: 4, 0xFF: 8}[first])

    def string(self):
        return self.take(self.compact())


class Input:
    def __init__(self, txid, vout, script=b"", sequence=SEQUENCE_FINAL, witness=()):
        self.txid = txid  # as displayed
        self.vout = vout
        self.script = script
        self.sequence = sequence
        self.witness = list(witness)


class Output:
    def __init__(self, value, script):
        self.value = value  # satoshi
        self.script = script


class Transaction:
    def __init__(self, inputs, outputs, version=2, lock_time=0):
        self.version = version
        self.inputs = inputs
        self.outputs = outputs
        self.lock_time = lock_time

    @staticmethod
    def read(reader):
        version = reader.number(4)
        count = reader.compact()
        witness = count == 0
        if witness:
            reader.take(1)
            count = reader.compact()
        inputs = []
        for _ in range(count):
            txid = reader.take(32)[::-1].hex()
            vout = reader.number(4)
            inputs.append(Input(txid, vout, reader.string(), reader.number(4)))
        outputs = []
        for _ in range(reader.compact()):
            value = reader.number(8)
            outputs.append(Output(value, reader.string()))
        if witness:
            for item in inputs:
                item.witness = [reader.string() for _ in range(reader.compact())]
        return Transaction(inputs, outputs, version, reader.number(4))

    @staticmethod
    def from_hex(text):
        return Transaction.read(Reader(bytes.fromhex(text)))

    def serialize(self, with_witness=True):
        with_witness = with_witness and any(item.witness for item in self.inputs)
        parts = [struct.pack("<I", self.version)]
        if with_witness:
            parts.append(b"\0\1")
        parts.append(compact_size(len(self.inputs)))
        for item in self.inputs:
            parts.append(bytes.fromhex(item.txid)[::-1] + struct.pack("<I", item.vout))
            parts.append(compact_size(len(item.script)) + item.script)
            parts.append(struct.pack("<I", item.sequence))
        parts.append(compact_size(len(self.outputs)))
        for item in self.outputs:
            parts.append(struct.pack("<q", item.value))
            parts.append(compact_size(len(item.script)) + item.script)
        if with_witness:
            for item in self.inputs:
                parts.append(compact_size(len(item.witness)))
                parts += [compact_size(len(part)) + part for part in item.witness]
        parts.append(struct.pack("<I", self.lock_time))
        return b"".join(parts)

    def hex(self):
        return self.serialize().hex()

    def txid(self):
        return double_sha256(self.serialize(False))[::-1].hex()

    def wtxid(self):
        return double_sha256(self.serialize())[::-1].hex()


def merkle_root(hashes):
    """Root of displayed hashes, as displayed."""
    level = [bytes.fromhex(item)[::-1] for item in hashes]
    while len(level) > 1:
        if len(level) % 2:
            level.append(level[-1])
        level = [double_sha256(a + b) for a, b in zip(level[::2], level[1::2])]
    return level[0][::-1].hex()


def target(bits):
    exponent, mantissa = bits >> 24, bits & 0xFFFFFF
    return mantissa << (8 * (exponent - 3))


class Block:
    def __init__(self, version, previous, root, time, bits, nonce, transactions):
        self.version = version
        self.previous = previous
        self.root = root
        self.time = time
        self.bits = bits
        self.nonce = nonce
        self.transactions = transactions

    @staticmethod
    def from_hex(text):
        reader = Reader(bytes.fromhex(text))
        version = reader.number(4)
        previous = reader.take(32)[::-1].hex()
        root = reader.take(32)[::-1].hex()
        time, bits, nonce = reader.number(4), reader.number(4), reader.number(4)
        transactions = [Transaction.read(reader) for _ in range(reader.compact())]
        return Block(version, previous, root, time, bits, nonce, transactions)

    def header(self):
        return (
            struct.pack("<I", self.version & 0xFFFFFFFF)
            + bytes.fromhex(self.previous)[::-1]
            + bytes.fromhex(self.root)[::-1]
            + struct.pack("<III", self.time, self.bits, self.nonce)
        )

    def hash(self):
        return double_sha256(self.header())[::-1].hex()

    def serialize(self):
        body = b"".join(item.serialize() for item in self.transactions)
        return self.header() + compact_size(len(self.transactions)) + body

    def hex(self):
        return self.serialize().hex()

    def set_commitment(self):
        """Recomputes BIP 141's commitment, which must be the coinbase's last output."""
        hashes = ["00" * 32] + [item.wtxid() for item in self.transactions[1:]]
        root = bytes.fromhex(merkle_root(hashes))[::-1]
        commitment = double_sha256(root + self.transactions[0].inputs[0].witness[0])
        self.transactions[0].outputs[-1].script = b"\x6a\x24\xaa\x21\xa9\xed" + commitment

    def set_root(self):
        self.root = merkle_root([item.txid() for item in self.transactions])

    def mine(self, low_hash=True):
        """Finds a nonce whose hash is below (or, for a bad block, above) the target."""
        limit = target(self.bits)
        self.nonce = 0
        while (int(self.hash(), 16) <= limit) != low_hash:
            self.nonce += 1
