"""Verify a file of `sayso evidence` offline. This script needs Python 3.11 and `cryptography`, and nothing of Sayso.

    python verify_evidence.py FILE [PUBLIC_KEY ...]

Give the public keys that `sayso keyfile show` printed on the desk. Without them the keys in the file are taken, which
proves only that the file is as its maker signed it. The exit status is 0 if nothing was altered.
"""

import base64
import json
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

Line = dict[str, Any]


def is_signed(statement: str, signature: str, keys: Iterable[str]) -> bool:
    """Return whether one of these public keys verifies the signature of a statement; all are in base64."""
    for key in keys:
        try:
            public = Ed25519PublicKey.from_public_bytes(base64.b64decode(key))
            public.verify(base64.b64decode(signature), statement.encode())
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def leads_to(root: str, size: int, leaf: list[Any], index: int, path: list[str]) -> bool:
    """Return whether a path proves that the leaf is in the tree with this root (RFC 9162, section 2.1.3.2)."""
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


def find_faults(text: str, pinned: list[str]) -> Iterator[str]:
    """Yield what is wrong with a file, each in one sentence."""
    raws = text.splitlines()
    lines: list[Line] = []
    for number, raw in enumerate(raws, start=1):
        try:
            lines.append(dict(json.loads(raw)))
        except ValueError:
            lines.append({"name": ""})
            yield f"Line {number} is no JSON object: it was altered."
    if not lines or lines[0].get("kind") != "evidence":
        yield "The first line is missing: this is not the begin of a file of evidence."
    keys = pinned or [str(key) for key in (lines[0].get("keys") or {}).values()] if lines else []
    if not lines or lines[-1].get("kind") != "end":
        yield "The file was cut: its last line, with the signed index, is missing."
    else:
        yield from _check_index(raws[:-1], lines, keys)
    by_kind: dict[str, list[Line]] = {}
    for line in lines:
        by_kind.setdefault(str(line.get("kind")), []).append(line)
    chains = _group(by_kind.get("event", []))
    for run, events in chains.items():
        yield from _check_chain(run, events)
    for proof in by_kind.get("checkpoint", []):
        yield from _check_proof(proof, chains.get(proof["leaf"][0].partition(" ")[2], []), keys)
    for item in by_kind.get("item", []):
        yield from _check_item(item, chains.get(item["run"], []))


def _check_index(raws: list[str], lines: list[Line], keys: list[str]) -> Iterator[str]:
    """Compare the lines with the signed index: each line by its name and its SHA-256."""
    end = lines[-1]
    if not end.get("signature"):
        yield "The index is not signed: the desk has no key file, so it proves nothing."
    elif not is_signed(end["statement"], end["signature"], keys):
        yield "The index is not signed by a given key: it was altered, or another desk made the file."
    index = json.loads(end["statement"])["index"]
    listed, held = dict(index), [sha256(raw.encode()).hexdigest() for raw in raws]
    names = {digest: name for name, digest in index}
    pairs = list(zip(held, lines[:-1], strict=True))
    present = {names.get(digest, str(line.get("name"))) for digest, line in pairs}
    for name in listed:
        if name not in present:
            yield f"{name} was deleted."
    for digest, line in pairs:
        if digest not in names:
            verb = "altered" if line.get("name") in listed else "added"
            yield f"{line.get('name') or 'A line'} was {verb}."
    kept = [digest for digest in held if digest in names]
    wanted = [digest for _, digest in index if digest in set(kept)]
    if kept != wanted:
        place = next((at for at, digest in enumerate(kept) if at >= len(wanted) or digest != wanted[at]), 0)
        yield f"{names[kept[place]]} was {'repeated' if kept.count(kept[place]) > 1 else 'reordered'}."


def _group(events: list[Line]) -> dict[str, list[Line]]:
    chains: dict[str, list[Line]] = {}
    for event in events:
        chains.setdefault(event["run"], []).append(event)
    return chains


def _check_chain(run: str, events: list[Line]) -> Iterator[str]:
    """Follow the hash chain of a trail. A masked or erased event has its hash alone, which the next event proves."""
    before = ""
    for place, event in enumerate(events, start=1):
        if event["seq"] != place:
            yield f"Event {place} of {run} is missing from the chain."
            return
        if "hashed" in event:
            made = sha256(f"{before}{event['hashed']}".encode()).hexdigest()[:32]
            if made != event["hash"] or json.loads(event["hashed"])[0] != place:
                yield f"Event {place} of {run} does not follow from the event before it."
        before = event["hash"]


def _check_proof(proof: Line, events: list[Line], keys: list[str]) -> Iterator[str]:
    """Check that a signed checkpoint holds the head of a trail, and that the trail has that event."""
    name, (chain, seq, hash_) = proof["name"], proof["leaf"]
    if not is_signed(proof["statement"], proof["signature"], keys):
        yield f"{name} is not signed by a given key."
    said = json.loads(proof["statement"])
    if not leads_to(said["root"], said["size"], proof["leaf"], proof["index"], proof["path"]):
        yield f"{name} does not prove the head of {chain}."
    if not any(event["seq"] == seq and event["hash"] == hash_ for event in events):
        yield f"The trail of {chain} was rewritten: {name} has another event {seq}."


def _check_item(item: Line, events: list[Line]) -> Iterator[str]:
    """Check the picture of an item, and that the trail has each of its decisions."""
    if sha256(item["html"].encode()).hexdigest() != item["html_sha256"]:
        yield f"The picture of {item['name']} was altered."
    recorded = {str(event.get("decision")) for event in events}
    for decision in item["decisions"]:
        if decision["id"] not in recorded:
            yield f"Decision {decision['id']} of {item['name']} is not in the trail."


def main(args: list[str]) -> int:
    """Print what is wrong with a file, or that nothing is."""
    with open(args[0], encoding="utf-8") as file:
        faults = list(find_faults(file.read(), args[1:]))
    print("\n".join(faults) or "Nothing was altered.")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
