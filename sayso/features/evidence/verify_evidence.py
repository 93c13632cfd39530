"""Verify a file of `sayso evidence` offline. This script needs Python 3.11 and `cryptography`, and nothing of Sayso.

    python verify_evidence.py FILE [PUBLIC_KEY ...]

Give the public keys that `sayso keyfile show` prints on the desk. Without them those in the file count, which proves
only that nothing was altered since somebody signed it. The exit status is 0 if nothing was altered.
"""

import json
import sys
from base64 import b64decode, urlsafe_b64decode
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding

Line = dict[str, Any]
write_json = partial(json.dumps, sort_keys=True, separators=(",", ":"))


def is_signed(statement: str, signature: str, keys: Iterable[str]) -> bool:
    """Return whether one of these public keys verifies the signature of a statement; all are in base64."""
    for key in keys:
        with suppress(InvalidSignature, ValueError):
            ed25519.Ed25519PublicKey.from_public_bytes(b64decode(key)).verify(b64decode(signature), statement.encode())
            return True
    return False


def is_signed_by_passkey(made: Line) -> bool:
    """Return whether a passkey signed a decision and verified its person (Web Authentication, section 7.2)."""
    with suppress(InvalidSignature, UnsupportedAlgorithm, ValueError, KeyError, TypeError, IndexError):
        proof, parts = made["proof"], ("client_data", "authenticator_data", "signature", "public_key")
        client, data, signature, public = (urlsafe_b64decode(f"{proof[part]}==") for part in parts)
        content = write_json({"args": made["args"], "value": made["value"]})
        is_gone = "[secret]" in content or content == '{"args":null,"value":null}'  # masked or erased
        fits = is_gone or sha256(content.encode()).hexdigest() == proof["content"]
        facts = {"action": made["action"], "content": proof["content"], "item": made["args_digest"]}
        challenge = sha256(write_json({**facts, "nonce": proof["nonce"]}).encode()).digest()
        key: Any = serialization.load_der_public_key(public)
        how: Any = [ec.ECDSA(hashes.SHA256())] if hasattr(key, "curve") else [padding.PKCS1v15(), hashes.SHA256()]
        key.verify(signature, data + sha256(client).digest(), *([] if hasattr(key, "public_bytes_raw") else how))
        return fits and urlsafe_b64decode(json.loads(client)["challenge"] + "==") == challenge and data[32] & 5 == 5
    return False


def find_root(made: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """Return the root of a tree to which a path leads from a leaf; b"" for a wrong one (RFC 9162, section 2.1.3)."""
    if size < 2 or not path:
        return made if size == 1 and not path else b""
    half = 1 << (size - 1).bit_length() - 1
    if index < half:
        return sha256(b"\x01" + find_root(made, index, half, path[:-1]) + path[-1]).digest()
    return sha256(b"\x01" + path[-1] + find_root(made, index - half, size - half, path[:-1])).digest()


def verify_text(text: str, pinned: list[str]) -> tuple[list[str], str]:
    """Return what is wrong with a file, each in one sentence, and who signed a file with which nothing is."""
    try:
        lines: list[Line] = [json.loads(raw) for raw in text.splitlines()]
        for place, kind, which in ((0, "evidence", "first"), (-1, "end", "last")):
            if not lines or lines[place]["kind"] != kind:
                return [f"The {which} line is missing: the file was cut there, or is no evidence."], ""
        keys = pinned or [*lines[0]["keys"].values()]
        note = "" if keys else " But the file is not signed: a careful forger would not be noticed."
        problems = [*_check_index(text.splitlines()[:-1], lines, keys), *_check_contents(lines, keys)]
        return problems, f"Nothing was altered.{note}"
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        return [f"A line was altered and cannot be read: {type(error).__name__}: {error}."], ""


def _check_index(raws: list[str], lines: list[Line], keys: list[str]) -> Iterator[str]:
    """Compare the lines with the signed index, which has the name and the SHA-256 of each."""
    end, index = lines[-1], json.loads(lines[-1]["statement"])["index"]
    if keys and not is_signed(end["statement"], end["signature"], keys):
        yield "The index is not signed by a known key: it was altered, or somebody else made the file."
    names = {digest: name for name, digest in index}
    digests = [sha256(raw.encode()).hexdigest() for raw in raws]
    counts = Counter(digests)
    present = {names.get(digest, line["name"]) for digest, line in zip(digests, lines, strict=False)}
    yield from [f"{name} was deleted." for name, _ in index if name not in present]
    for digest, line in zip(digests, lines, strict=False):
        if digest not in names:
            yield f"{line['name']} was {'altered' if [line['name']] in [row[:1] for row in index] else 'added'}."
        elif counts[digest] > 1:
            yield f"{line['name']} was repeated."
    held = [digest for digest in digests if digest in names]
    wanted = [digest for _, digest in index if digest in counts]
    yield from [f"{names[one]} was reordered." for one, other in zip(held, wanted, strict=False) if one != other][:1]


def _check_contents(lines: list[Line], keys: list[str]) -> Iterator[str]:
    """Check each trail, where the next event proves the hash of a masked one, its checkpoint's proof, and each item."""
    runs = dict.fromkeys(line["run"] for line in lines if line["kind"] == "event")
    chains = {run: [line for line in lines if line["kind"] == "event" and line["run"] == run] for run in runs}
    for run, events in chains.items():
        before = ""
        for place, event in enumerate(events, start=1):
            if event["seq"] != place:
                yield f"Event {place} of {run} is missing from its trail."
                break
            hashed = event.get("hashed")
            if hashed is not None and sha256(f"{before}{hashed}".encode()).hexdigest()[:32] != event["hash"]:
                yield f"Event {place} of {run} does not follow from the event before it."
            if hashed is not None and json.loads(hashed)[:3] != [place, event["at_ms"], event["type"]]:
                yield f"Event {place} of {run} has another number, time or type than its hash covers."
            before = event["hash"]
    for line in lines:
        events = chains.get(line.get("run", ""), [])
        yield from _check_proof(line, events, keys) if line["kind"] == "checkpoint" else ()
        yield from _check_item(line, events) if line["kind"] == "item" else ()


def _check_proof(proof: Line, events: list[Line], keys: list[str]) -> Iterator[str]:
    """Check that a signed checkpoint has the head of the trail, and the trail that event."""
    said, (chain, seq, hash_) = json.loads(proof["statement"]), proof["leaf"]
    if not is_signed(proof["statement"], proof["signature"], keys):
        yield f"{proof['name']} is not signed by a known key."
    leaf = sha256(b"\x00" + write_json(proof["leaf"]).encode()).digest()
    root = find_root(leaf, proof["index"], said["size"], [*map(bytes.fromhex, proof["path"])])
    if root.hex() != said["root"] or chain != f"run {proof['run']}":
        yield f"{proof['name']} does not prove the trail."
    if [seq, hash_] not in [[event["seq"], event["hash"]] for event in events]:
        yield f"{proof['name']} has another event {seq}: the trail was cut or rewritten."


def _check_item(item: Line, events: list[Line]) -> Iterator[str]:
    """Check the picture of an item, and that the trail has each of its decisions."""
    if sha256(item["html"].encode()).hexdigest() != item["html_sha256"]:
        yield f"{item['name']} has another picture than was made."
    data = [json.loads(event["hashed"])[3] if "hashed" in event else event["data"] for event in events]
    recorded, needed = {facts.get("decision_id") for facts in data}, item["view"]["terms"].get("step_up") == "passkey"
    for made in [made for made in item["view"]["decisions"] if made["by"]["kind"] == "human"]:
        if made["id"] not in recorded and events:
            yield f"{item['name']} has a decision that its trail has not: {made['id']}."
        if (made.get("proof") or (needed and made["action"] != "deny")) and not is_signed_by_passkey(made):
            yield f"{item['name']} has a decision that no passkey signed: {made['id']}."


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        problems, verdict = verify_text(file.read(), sys.argv[2:])
    print("\n".join(problems) or verdict)
    sys.exit(bool(problems))
