"""Deterministic keys of the recordings, and the small encodings they need."""

import hashlib

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

# secp256k1 (SEC 2): field prime, group order, generator.
P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (
    0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798,
    0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8,
)


def sha256(data):
    return hashlib.sha256(data).digest()


def double_sha256(data):
    return sha256(sha256(data))


def hash160(data):
    return hashlib.new("ripemd160", sha256(data)).digest()


def tagged_hash(tag, data):
    """BIP 340's tagged hash."""
    prefix = sha256(tag.encode())
    return sha256(prefix + prefix + data)


def base58check(payload):
    data = payload + double_sha256(payload)[:4]
    number = int.from_bytes(data, "big")
    text = ""
    while number:
        number, digit = divmod(number, 58)
        text = _BASE58[digit] + text
    zeros = len(data) - len(data.lstrip(b"\0"))
    return "1" * zeros + text


def _add(a, b):
    if a is None:
        return b
    if b is None:
        return a
    if a[0] == b[0]:
        if (a[1] + b[1]) % P == 0:
            return None
        slope = 3 * a[0] * a[0] * pow(2 * a[1], -1, P) % P
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, P) % P
    x = (slope * slope - a[0] - b[0]) % P
    return x, (slope * (a[0] - x) - a[1]) % P


def multiply(point, scalar):
    result = None
    while scalar:
        if scalar & 1:
            result = _add(result, point)
        point = _add(point, point)
        scalar >>= 1
    return result


class Key:
    """A private key: sha256 of a label, compressed or not."""

    def __init__(self, label, compressed=True):
        self.secret = sha256(f"outrigger recording key {label}".encode())
        self.compressed = compressed
        self.point = multiply(G, int.from_bytes(self.secret, "big"))

    def wif(self):
        """WIF with the test chains' prefix."""
        return base58check(b"\xef" + self.secret + (b"\1" if self.compressed else b""))

    def pubkey(self):
        x, y = self.point
        if self.compressed:
            return bytes([2 + (y & 1)]) + x.to_bytes(32, "big")
        return b"\4" + x.to_bytes(32, "big") + y.to_bytes(32, "big")

    def xonly(self):
        return self.point[0].to_bytes(32, "big")

    def hash160(self):
        return hash160(self.pubkey())


def taproot_output(key, merkle_root=b""):
    """BIP 341's output key (32 bytes) of an internal key and a merkle root."""
    x, y = key.point
    even = (x, y if y % 2 == 0 else P - y)
    tweak = int.from_bytes(tagged_hash("TapTweak", key.xonly() + merkle_root), "big")
    return _add(even, multiply(G, tweak))[0].to_bytes(32, "big")


def master_tprv(label):
    """A BIP 32 master private key in the test chains' encoding."""
    secret = sha256(f"outrigger recording seed {label}".encode())
    chain_code = sha256(f"outrigger recording chain code {label}".encode())
    payload = bytes.fromhex("04358394") + bytes(9) + chain_code + b"\0" + secret
    return base58check(payload)
