"""A file of evidence has what was asked, shown and decided, and every tampering with it is named, also offline."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sayso.core.key_files import create_key_file, read_key_file
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.terms import RuleTerms
from sayso.features.evidence import verify_evidence
from sayso.features.evidence.checkpoints import find_public_key
from sayso.features.evidence.verify_evidence import verify_text
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import keys_of
from service.features.evidence.keeping import keep_checkpoints
from service.features.evidence.keeping import keys_of as keys_in
from tests.builders import approve, ask, finish, make_pending, make_person, person
from tests.service.worlds import POLICY, World

SCRIPT = Path(verify_evidence.__file__)
Lines = list[dict[str, Any]]


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    create_key_file(tmp_path / "keys")
    keys_in.cache_clear()
    sink = f"file://{tmp_path}/sink"
    return Settings(redis_url=clean_store_url, policy=policy, key_file=tmp_path / "keys", checkpoints=(sink,))


@pytest.fixture
async def text(world: World) -> str:
    """Evidence of two runs of an approval and one of a denial."""
    for _ in range(2):
        await finish(world.wiring, await approve(world.wiring, await make_pending(world.wiring)))
    denied = await make_pending(world.wiring)
    no = DecisionRequest(action="deny", digest=denied.items[0].digest, message="Too <b>much</b>")
    await world.wiring.desk.decide(denied.id, "i1", no, person("anna"))
    await keep_checkpoints(world.wiring)
    return await export(world, **{"from": "2020-01-01T00:00:00Z"})


async def export(world: World, who: str = "root", **query: str) -> str:
    async with world.client(who) as client:
        answer = await client.get("/api/v1/evidence", params=query)
    assert answer.status_code == 200, answer.text
    made: str = answer.json()["text"]
    return made


def run_script(tmp_path: Path, text: str, *keys: str) -> subprocess.CompletedProcess[str]:
    """Run the script by itself, where nothing of Sayso can be imported."""
    (tmp_path / "evidence.jsonl").write_text(text)
    alone = tmp_path / "verify_evidence.py"
    alone.write_text(SCRIPT.read_text())
    words = [sys.executable, "-P", str(alone), str(tmp_path / "evidence.jsonl"), *keys]
    return subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, check=False)


def public_keys(tmp_path: Path) -> list[str]:
    return [find_public_key(key) for key in read_key_file(tmp_path / "keys")]


async def test_file_has_all_kinds_of_lines_and_verifies(world: World, text: str, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in text.splitlines()]
    kinds = [line["kind"] for line in lines]
    assert (kinds[0], kinds[-1]) == ("evidence", "end")
    assert [kinds.count(kind) for kind in ("run", "item", "checkpoint")] == [3, 3, 3]
    item = next(line for line in lines if line["kind"] == "item" and line["view"]["outcome"]["verdict"] == "denied")
    assert item["html"].lstrip().startswith("<!doctype html>")
    assert "Too &lt;b&gt;much&lt;/b&gt;" in item["html"]
    assert "src=" not in item["html"]
    assert item["view"]["decisions"][0]["by"]["id"] == "anna"
    assert verify_text(text, public_keys(tmp_path)) == ([], "Nothing was altered.")
    for keys in ([], public_keys(tmp_path)):
        done = run_script(tmp_path, text, *keys)
        assert (done.returncode, done.stdout, done.stderr) == (0, "Nothing was altered.\n", "")
    assert "not signed by a known key" in run_script(tmp_path, text, "A" * 43 + "=").stdout


def test_script_is_short_and_needs_cryptography_alone() -> None:
    source = SCRIPT.read_text()
    assert len(source.splitlines()) <= 150
    imported = {
        line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))
    }
    assert imported - sys.stdlib_module_names == {"cryptography"}


def place_of(lines: Lines, kind: str, which: int = 0) -> int:
    return [place for place, line in enumerate(lines) if line["kind"] == kind][which]


def change(kind: str, *path: str | int, to: object) -> Callable[[Lines], None]:
    """Return what changes a field of the first line of a kind."""

    def tamper(lines: Lines) -> None:
        held: Any = lines[place_of(lines, kind)]
        for step in path[:-1]:
            held = held[step]
        held[path[-1]] = to

    return tamper


def delete(kind: str, which: int = 0) -> Callable[[Lines], None]:
    def tamper(lines: Lines) -> None:
        lines.pop(place_of(lines, kind, which))

    return tamper


def swap(kind: str) -> Callable[[Lines], None]:
    def tamper(lines: Lines) -> None:
        one, other = place_of(lines, kind), place_of(lines, kind, 1)
        lines[one], lines[other] = lines[other], lines[one]

    return tamper


def repeat(lines: Lines) -> None:
    lines.insert(-1, lines[place_of(lines, "item")])


def add(lines: Lines) -> None:
    item = lines[place_of(lines, "item")]
    lines.insert(-1, {**item, "name": "Item sus_x/i1"})


def change_hashed(lines: Lines) -> None:
    event = lines[place_of(lines, "event", 1)]
    event["hashed"] = event["hashed"].replace("{", '{"note":"other",', 1)


def reindex(lines: Lines) -> None:
    """Make the index fit the lines again, as somebody without the key would."""
    end = lines[-1]
    statement = json.loads(end["statement"])
    statement["index"] = [[line["name"], sha256(write(line).encode()).hexdigest()] for line in lines[:-1]]
    end["statement"] = json.dumps(statement, sort_keys=True, separators=(",", ":"))


def both(first: Callable[[Lines], None], then: Callable[[Lines], None]) -> Callable[[Lines], None]:
    def tamper(lines: Lines) -> None:
        first(lines)
        then(lines)

    return tamper


def forge_event(lines: Lines) -> None:
    """Rewrite the last event of a trail with a valid hash."""
    first = lines[place_of(lines, "event")]["run"]
    events = [line for line in lines if line["kind"] == "event" and line["run"] == first]
    last = events[-1]
    last["hashed"] = last["hashed"].replace("}]", ',"note":"other"}]')
    last["hash"] = sha256(f"{events[-2]['hash']}{last['hashed']}".encode()).hexdigest()[:32]
    reindex(lines)


def cut_trail(lines: Lines) -> None:
    """Remove the last event of a trail, and make the index fit."""
    first = lines[place_of(lines, "event")]["run"]
    lines.remove([line for line in lines if line["kind"] == "event" and line["run"] == first][-1])
    reindex(lines)


def strip_key(lines: Lines) -> None:
    lines[0]["keys"], lines[-1]["signature"] = {}, ""
    reindex(lines)


def write(line: dict[str, Any]) -> str:
    return json.dumps(line, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


TAMPERINGS: list[tuple[str, Callable[[Lines], None], str]] = [
    ("argument of an item", change("item", "view", "tool", "args", to={}), "Item .* was altered"),
    ("picture of an item", change("item", "html", to="<p>fine</p>"), "has another picture"),
    ("digest of a picture", change("item", "html_sha256", to=""), "Item .* was altered"),
    (
        "decision replaced",
        change("item", "view", "decisions", 0, "id", to="dec_x"),
        "has a decision that its trail has not",
    ),
    ("person of a decision", change("item", "view", "decisions", 0, "by", "id", to="ben"), "Item .* was altered"),
    ("outcome", change("item", "view", "outcome", "verdict", to="denied"), "Item .* was altered"),
    ("status of a run", change("run", "view", "status", to="failed"), "Run .* was altered"),
    ("contents of an event", change_hashed, "Event 2 of .* does not follow"),
    ("time of an event", change("event", "at_ms", to=1), "has another number, time or type"),
    ("item deleted", delete("item"), "Item .* was deleted"),
    ("event deleted", delete("event", 1), "Event 2 of .* was deleted"),
    ("checkpoint deleted", delete("checkpoint"), "Checkpoint 1 of .* was deleted"),
    ("run deleted", delete("run"), "Run .* was deleted"),
    ("events reordered", swap("event"), "Event 2 of .* was reordered"),
    ("items reordered", swap("item"), "Item .* was reordered"),
    ("item repeated", repeat, "Item .* was repeated"),
    ("item added", add, "Item sus_x/i1 was added"),
    ("begin cut", delete("evidence"), "The first line is missing"),
    ("end cut", delete("end"), "The last line is missing"),
    ("path of a proof", change("checkpoint", "index", to=99), "does not prove the trail"),
    ("checkpoint forged", change("checkpoint", "statement", to='{"root":"","size":1}'), "is not signed by a known key"),
    ("index forged", both(change("run", "view", "status", to="failed"), reindex), "The index is not signed"),
    ("trail rewritten", forge_event, "the trail was cut or rewritten"),
    ("trail cut", cut_trail, "the trail was cut or rewritten"),
    ("signature removed", strip_key, "The index is not signed"),
]


@pytest.mark.parametrize(("tamper", "words"), [row[1:] for row in TAMPERINGS], ids=[row[0] for row in TAMPERINGS])
async def test_tampering_is_named_by_command_and_script(
    world: World, text: str, tmp_path: Path, tamper: Callable[[Lines], None], words: str
) -> None:
    lines = [json.loads(line) for line in text.splitlines()]
    tamper(lines)
    tampered = "".join(f"{write(line)}\n" for line in lines)
    faults, _ = verify_text(tampered, public_keys(tmp_path))
    assert any(re.search(words, fault) for fault in faults), faults
    done = run_script(tmp_path, tampered, *public_keys(tmp_path))
    assert (done.returncode, done.stdout.splitlines()) == (1, faults)


def test_broken_lines_are_named() -> None:
    assert "cannot be read" in verify_text("{", [])[0][0]
    assert "The first line is missing" in verify_text("", [])[0][0]


async def test_trail_that_was_altered_in_the_store_is_named_in_its_evidence(world: World, text: str) -> None:
    run = json.loads(text.splitlines()[0])["runs"][0]
    await world.wiring.store.redis.ltrim(keys_of(TENANT).trail(run), 0, -2)
    faults, _ = verify_text(await export(world, run=run), [])
    assert any("the trail was cut or rewritten" in fault for fault in faults)


async def test_secrets_are_masked_and_the_chain_still_verifies(world: World) -> None:
    secret = "pa55-canary"
    record = await make_pending(world.wiring, ask(terms=RuleTerms(secrets=("order",)), order=secret))
    record = await finish(world.wiring, await approve(world.wiring, record), result={"said": f"paid {secret}"})
    text = await export(world, run=record.run.id)
    assert secret not in text
    assert verify_text(text, [])[0] == []


async def test_erased_and_deleted_runs_keep_verifiable_evidence(world: World, text: str) -> None:
    run = json.loads(text.splitlines()[0])["runs"][0]
    async with world.client("root") as root:
        assert (await root.post(f"/api/v1/runs/{run}/erase", json={"reason": "On request"})).status_code == 200
    assert verify_text(await export(world, run=run), [])[0] == []
    now_ms = await world.wiring.schedule.now_ms()
    assert await world.wiring.retention.forget_runs(now_ms + 1, 10) == 2
    kept = await export(world, run=run)
    assert verify_text(kept, [])[0] == []
    assert '"kind":"item"' not in kept


async def test_desk_without_a_key_says_that_its_file_is_not_signed(world: World, text: str) -> None:
    object.__setattr__(world.wiring, "settings", world.wiring.settings.model_copy(update={"key_file": None}))
    run = json.loads(text.splitlines()[0])["runs"][0]
    unsigned = "".join(
        f"{line}\n" for line in (await export(world, run=run)).splitlines() if '"checkpoint"' not in line
    )
    assert "checkpoint" in (await export(world, run=run))
    assert verify_text(unsigned, ["A" * 43 + "="])[0] != []


async def test_auditors_export_evidence_and_reviewers_do_not(world: World, text: str) -> None:
    run = json.loads(text.splitlines()[0])["runs"][0]
    world.tokens["eve"] = await make_person(world.wiring, "eve", "auditor")
    assert verify_text(await export(world, "eve", run=run), [])[0] == []
    async with world.client("anna") as anna:
        assert (await anna.get("/api/v1/evidence", params={"run": run})).status_code == 403
    async with world.client("root") as root:
        assert (await root.get("/api/v1/evidence", params={"run": "run_none"})).status_code == 404
        both_given = {"run": run, "from": "2020-01-01T00:00:00Z"}
        assert (await root.get("/api/v1/evidence", params=both_given)).status_code == 422
        entries = (await root.get("/api/v1/activity")).json()["activity"]
    exports = [(entry["by"], entry["outcome"]) for entry in entries if entry["act"] == "evidence_exported"]
    assert exports == [("anna", "refused"), ("eve", "done"), ("root", "done")]
