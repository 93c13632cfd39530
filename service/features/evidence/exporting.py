"""Files of evidence: what was asked, shown and decided in runs, with the proofs that it is unaltered."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.clock import now_ms
from sayso.core.records.events import TrailEntry
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.rendering.renderers import render_call
from sayso.core.sentences.outcomes import describe_outcome
from sayso.core.text.redaction import Redacted
from sayso.errors import InvalidInput, NotFound, Unreadable
from sayso.features.evidence.checkpoints import Checkpoint, find_path, find_public_key, sign, write_json
from sayso.wire.suspensions import RunView, show_suspension
from service.core.operations.masking import collect_secrets, mask_record
from service.core.store.rules import RuleStore
from service.core.store.suspensions.reading import split_readable
from service.core.wiring import Wiring
from service.edge.web.content.blocks import make_blocks
from service.edge.web.content.details import find_claims, list_decisions
from service.edge.web.content.edits import make_display
from service.edge.web.content.facts import read_trail
from service.edge.web.pages import draw
from service.features.evidence.keeping import find_keys
from service.features.evidence.store import RUN, CheckpointStore

MOST_RUNS = 200
_MOST_SUSPENSIONS = 200


class _Run(NamedTuple):
    """A run as stored, with its secrets; its suspensions, none of a deleted run, are masked."""

    run_id: str
    view: RunView | None
    records: Sequence[SuspensionRecord]
    trail: Sequence[TrailEntry]
    secrets: Redacted


async def make_file(wiring: Wiring, run_ids: Sequence[str], by: str) -> str:
    """Return the evidence of runs as JSON Lines, signed with the current key. Raises `NotFound`, `InvalidInput`."""
    if len(run_ids) > MOST_RUNS:
        raise InvalidInput(f"{len(run_ids)} runs began in this time; one file has {MOST_RUNS}. Narrow the range.")
    keys = find_keys(wiring.settings.key_file)
    public = {key.id: find_public_key(key) for key in keys}
    head: JsonObject = {"v": 1, "tenant": wiring.tenant, "made_at_ms": now_ms(), "by": by, "runs": [*run_ids]}
    lines = [_write("evidence", "The first line", **head, keys=public)]
    async for line in _describe_all(wiring, run_ids):
        lines.append(line)
    index = [[name, sha256(line.encode()).hexdigest()] for name, line in lines]
    statement = write_json({"index": index, "key": keys[0].id if keys else "", "kind": "evidence", "v": 1})
    signature = sign(keys[0], statement) if keys else ""
    lines.append(_write("end", "The last line", statement=statement, signature=signature))
    return "".join(f"{line}\n" for _, line in lines)


def _write(kind: str, name: str, **fields: Any) -> tuple[str, str]:
    return name, canonical_json({"kind": kind, "name": name, **fields}, limited=False).decode()


async def _describe_all(wiring: Wiring, run_ids: Sequence[str]) -> AsyncIterator[tuple[str, str]]:
    versions: dict[str, None] = {}
    for run_id in run_ids:
        run = await _read_run(wiring, run_id)
        if run.view is not None:
            dumped = run.secrets.scrub_object(run.view.model_dump(mode="json"))
            yield _write("run", f"Run {run_id}", run=run_id, view=dumped)
        for record in run.records:
            definitions = await wiring.runs.find_definitions([record])
            views = show_suspension(record, (), None).items
            for item, view in zip(record.items, views, strict=True):
                versions[item.terms.rule_version or ""] = None
                definition = definitions.get(item.tool.definition or "")
                html, display = await asyncio.to_thread(draw_item, record, item, definition)
                named = {"run": run_id, "suspension": record.id, "html": html, "display": display}
                fields = {**named, "html_sha256": sha256(html.encode()).hexdigest()}
                dumped = run.secrets.scrub_object(view.model_dump(mode="json"))
                yield _write("item", f"Item {record.id}/{item.item_id}", **fields, view=dumped)
        for entry in run.trail:
            versions[str(entry.data.get("rule_version") or "")] = None
            yield _write("event", f"Event {entry.seq} of {run_id}", run=run_id, **_describe_event(entry, run.secrets))
        if (made := await wiring.part(CheckpointStore).find_of(f"{RUN}{run_id}")) is not None:
            yield _describe_proof(made, run_id)
    rules = RuleStore(wiring.store).versions
    for version in filter(None, versions):
        try:
            stored = await rules.read(version)
        except (NotFound, Unreadable):
            continue  # only the latest versions are kept
        texts = {"digest": stored.digest, "text": stored.text, "lists": stored.lists}
        yield _write("rules", f"Rules {version}", version=version, **texts)


async def _read_run(wiring: Wiring, run_id: str) -> _Run:
    try:
        run = await wiring.runs.read(run_id)
        trail = await read_trail(wiring.runs, run_id)
    except NotFound:
        trail = await read_trail(wiring.runs, run_id)
        if not trail:
            raise
        return _Run(run_id, None, (), trail, Redacted({}, frozenset()))
    chain = await wiring.desk.suspensions.read_chain(run.suspension_id, _MOST_SUSPENSIONS)
    records, _ = split_readable(chain)
    secrets = collect_secrets(records, await wiring.runs.find_definitions(records))
    return _Run(run_id, RunView.model_validate(run), [mask_record(record) for record in records], trail, secrets)


def _describe_event(entry: TrailEntry, secrets: Redacted) -> JsonObject:
    """Return an event with the text that its hash covers; one that is masked or erased has its data instead."""
    place: JsonObject = {"seq": entry.seq, "at_ms": entry.at_ms, "type": entry.type, "hash": entry.hash}
    data = secrets.scrub_object(entry.data) if secrets.masked else entry.data
    if data == entry.data and entry.erased_by is None:
        hashed = canonical_json([entry.seq, entry.at_ms, entry.type, entry.data], limited=False)
        return {**place, "hashed": hashed.decode()}
    return {**place, "data": data, "erased_by": entry.erased_by}


def _describe_proof(made: Checkpoint, run_id: str) -> tuple[str, str]:
    index = next(place for place, leaf in enumerate(made.leaves) if leaf.chain == f"{RUN}{run_id}")
    path = find_path([leaf.digest() for leaf in made.leaves], index)
    proof = {"statement": made.statement, "signature": made.signature, "leaf": [*made.leaves[index]], "index": index}
    return _write("checkpoint", f"Checkpoint {made.number} of {run_id}", run=run_id, path=path, **proof)


def draw_item(record: SuspensionRecord, item: Item, definition: ToolDefinition | None) -> tuple[str, str]:
    """Return a self-contained picture of a masked item, and the digest of the arguments as its page displays them."""
    schema = definition.parameters if definition is not None else None
    view = render_call(item.tool.name, item.tool.args, schema)
    blocks = make_blocks(view, schema)
    html = draw(
        "pictures/item.html",
        record=record,
        item=item,
        view=view,
        blocks=blocks,
        claims=find_claims(record, definition, ""),
        outcome=describe_outcome(item),
        decisions=list_decisions(item),
    )
    return html, make_display(item, None, schema, blocks).hash
