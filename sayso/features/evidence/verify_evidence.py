"""Verify a file of `sayso evidence` offline. This script needs Python 3.11 and `cryptography`, and nothing of Sayso.

    python verify_evidence.py FILE [PUBLIC_KEY ...]

Give the public keys that `sayso keyfile show` prints on the desk. Without them those in the file count, which proves
only that nothing was altered since somebody signed it. The exit status is 0 if nothing was altered.
"""

import base64
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Line = dict[str, Any]


def is_signed(statement: str, signature: str, keys: Iterable[str]) -> bool:
    """Return whether one of these public keys verifies the signature of a statement; all are in base64."""
    for key in keys:
        with suppress(InvalidSignature, ValueError):
            public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key))
            public.verify(base64.b64decode(signature), statement.encode())
            return True
    return False


def leads_to(root: str, size: int, leaf: list[Any], index: int, path: list[str]) -> bool:
    """Return whether a path proves that a leaf is in the tree with this root (RFC 9162, section 2.1.3.2)."""
    made = sha256(b"\x00" + json.dumps(leaf, separators=(",", ":")).encode()).digest()
    place, last = index, size - 1
    for part in map(bytes.fromhex, path):
        if last == 0:
            return False
        if place & 1 or place == last:
            made = sha256(b"\x01" + part + made).digest()
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            made = sha256(b"\x01" + made + part).digest()
        place, last = place >> 1, last >> 1
    return last == 0 and 0 <= index < size and made.hex() == root


def verify_text(text: str, pinned: list[str]) -> tuple[list[str], str]:
    """Return what is wrong with a file, each in one sentence, and who signed a file with which nothing is."""
    try:
        raws = text.splitlines()
        lines: list[Line] = [json.loads(raw) for raw in raws]
        if not lines or lines[0]["kind"] != "evidence":
            return ["The first line is missing: the file was cut at its begin, or is no evidence."], ""
        if lines[-1]["kind"] != "end":
            return ["The last line is missing: the file was cut at its end."], ""
        keys = pinned or [*lines[0]["keys"].values()]
        note = "" if keys else " But the file is not signed: a careful forger would not be noticed."
        return [*_check_index(raws[:-1], lines, keys), *_check_contents(lines, keys)], f"Nothing was altered.{note}"
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
    for name, _ in index:
        if name not in present:
            yield f"{name} was deleted."
    for digest, line in zip(digests, lines, strict=False):
        if digest not in names:
            yield f"{line['name']} was {'altered' if [line['name']] in [row[:1] for row in index] else 'added'}."
        elif counts[digest] > 1:
            yield f"{line['name']} was repeated."
    held = [digest for digest in digests if digest in names]
    wanted = [digest for _, digest in index if digest in counts]
    yield from [f"{names[one]} was reordered." for one, other in zip(held, wanted, strict=False) if one != other][:1]


def _check_contents(lines: list[Line], keys: list[str]) -> Iterator[str]:
    """Check each trail, its proof by a checkpoint, and each item."""
    chains: dict[str, list[Line]] = {}
    for line in lines:
        if line["kind"] == "event":
            chains.setdefault(line["run"], []).append(line)
    for run, events in chains.items():
        yield from _check_chain(run, events)
    for line in lines:
        if line["kind"] == "checkpoint":
            yield from _check_proof(line, chains.get(line["run"], []), keys)
        elif line["kind"] == "item":
            yield from _check_item(line, chains.get(line["run"], []))


def _check_chain(run: str, events: list[Line]) -> Iterator[str]:
    """Follow a hash chain. Of an event that is masked or erased, the next one proves the hash alone."""
    before = ""
    for place, event in enumerate(events, start=1):
        if event["seq"] != place:
            yield f"Event {place} of {run} is missing from its trail."
            return
        hashed = event.get("hashed")
        if hashed is not None and sha256(f"{before}{hashed}".encode()).hexdigest()[:32] != event["hash"]:
            yield f"Event {place} of {run} does not follow from the event before it."
        if hashed is not None and json.loads(hashed)[:3] != [place, event["at_ms"], event["type"]]:
            yield f"Event {place} of {run} has another number, time or type than its hash covers."
        before = event["hash"]


def _check_proof(proof: Line, events: list[Line], keys: list[str]) -> Iterator[str]:
    """Check that a signed checkpoint has the head of the trail, and the trail that event."""
    said, (chain, seq, hash_) = json.loads(proof["statement"]), proof["leaf"]
    if not is_signed(proof["statement"], proof["signature"], keys):
        yield f"{proof['name']} is not signed by a known key."
    is_proven = leads_to(said["root"], said["size"], proof["leaf"], proof["index"], proof["path"])
    if not is_proven or chain != f"run {proof['run']}":
        yield f"{proof['name']} does not prove the trail."
    if [seq, hash_] not in [[event["seq"], event["hash"]] for event in events]:
        yield f"{proof['name']} has another event {seq}: the trail was cut or rewritten."


def _check_item(item: Line, events: list[Line]) -> Iterator[str]:
    """Check the picture of an item, and that the trail has each of its decisions."""
    if sha256(item["html"].encode()).hexdigest() != item["html_sha256"]:
        yield f"{item['name']} has another picture than was made."
    data = [json.loads(event["hashed"])[3] if "hashed" in event else event["data"] for event in events]
    recorded = {facts.get("decision_id") for facts in data}
    for decision in item["view"]["decisions"]:
        if decision["by"]["kind"] == "human" and decision["id"] not in recorded and events:
            yield f"{item['name']} has a decision that its trail has not: {decision['id']}."


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        problems, verdict = verify_text(file.read(), sys.argv[2:])
    print("\n".join(problems) or verdict)
    sys.exit(bool(problems))
