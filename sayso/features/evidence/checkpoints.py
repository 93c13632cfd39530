"""Checkpoints: signed Merkle roots, as RFC 6962 builds them, over the heads of the chains that changed."""

import base64
import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

from sayso.core.key_files import SecretKey
from sayso.errors import InvalidInput

PURPOSE = "checkpoints"


class Leaf(NamedTuple):
    """The head of a chain: its name, the number of its last entry, and the hash of that entry."""

    chain: str
    seq: int
    hash: str

    def digest(self) -> bytes:
        return sha256(b"\x00" + write_json([*self]).encode()).digest()


class Checkpoint(NamedTuple):
    """A checkpoint, with its line as sinks have it. `before` is the SHA-256 of the statement of the one before."""

    number: int
    at_ms: int
    before: str
    root: str
    key: str
    tenant: str
    leaves: tuple[Leaf, ...]
    statement: str
    signature: str
    line: str

    @property
    def size(self) -> int:
        return len(self.leaves)

    @property
    def digest(self) -> str:
        return sha256(self.statement.encode()).hexdigest()


def write_json(value: object) -> str:
    """Return compact JSON in ASCII with sorted names."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def find_root(hashes: Sequence[bytes]) -> bytes:
    """Return the root of the tree over these hashes of leaves; that of no leaf is the hash of nothing."""
    if len(hashes) < 2:
        return hashes[0] if hashes else sha256().digest()
    half = _split(len(hashes))
    return sha256(b"\x01" + find_root(hashes[:half]) + find_root(hashes[half:])).digest()


def find_path(hashes: Sequence[bytes], index: int) -> list[str]:
    """Return the hashes beside the way from a leaf to the root, the lowest first, in hexadecimal."""
    if len(hashes) < 2:
        return []
    half = _split(len(hashes))
    if index < half:
        return [*find_path(hashes[:half], index), find_root(hashes[half:]).hex()]
    return [*find_path(hashes[half:], index - half), find_root(hashes[:half]).hex()]


def _split(count: int) -> int:
    """Return the largest power of two below the count."""
    return int(1 << (count - 1).bit_length() - 1)


def make_checkpoint(
    number: int, at_ms: int, before: str, tenant: str, leaves: Iterable[Leaf], key: SecretKey
) -> Checkpoint:
    """Return a signed checkpoint."""
    heads = tuple(leaves)
    root = find_root([leaf.digest() for leaf in heads]).hex()
    facts = {"at_ms": at_ms, "before": before, "key": key.id, "number": number, "root": root, "size": len(heads)}
    statement = write_json({**facts, "tenant": tenant, "v": 1})
    signature = sign(key, statement)
    line = write_json({"leaves": [[*leaf] for leaf in heads], "signature": signature, "statement": statement})
    return Checkpoint(number, at_ms, before, root, key.id, tenant, heads, statement, signature, line)


def read_checkpoint(line: str) -> Checkpoint:
    """Return a checkpoint from its line, unverified. Raises `InvalidInput`."""
    try:
        held = json.loads(line)
        said = json.loads(held["statement"])
        leaves = tuple(Leaf(str(chain), int(seq), str(hash_)) for chain, seq, hash_ in held["leaves"])
        facts = (int(said["number"]), int(said["at_ms"]), str(said["before"]), str(said["root"]), str(said["key"]))
        return Checkpoint(*facts, str(said["tenant"]), leaves, held["statement"], str(held["signature"]), line)
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput("A line is not a checkpoint. Give a file as a sink received it.") from error


def sign(key: SecretKey, statement: str) -> str:
    """Return the Ed25519 signature of a statement, in base64."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(key.derive(PURPOSE))
    return base64.b64encode(private.sign(statement.encode())).decode()


def find_public_key(key: SecretKey) -> str:
    """Return the public key that verifies what `sign` signs, in base64."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(key.derive(PURPOSE))
    return base64.b64encode(private.public_key().public_bytes_raw()).decode()
