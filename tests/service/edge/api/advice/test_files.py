"""Advice about files of rules, states of frameworks and requests that wait."""

import asyncio
import json
from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file, read_key_file, rotate_key_file
from sayso.errors import InvalidInput
from sayso.features.evidence.checkpoints import Leaf, make_checkpoint, read_checkpoint
from service.core.settings import Settings
from tests.builders import make_pending
from tests.service.core.policy.test_run_states import encode, pause, suspend_run
from tests.service.core.test_waiters import wait_until_waiting
from tests.service.edge.api.advice.rulebook import LIVE, STRICT, attest, grant, restore
from tests.service.edge.api.advice.steps import POLICY, Kept, Step, ask, call, send
from tests.service.features.rulebook.test_operations_versions import write
from tests.service.worlds import World

KEYS = "sayso/core/key_files.py"
FOLLOWED = [
    (KEYS, "Add a key to it with `sayso keyfile rotate"),
    (KEYS, "Make one with `sayso keyfile new`"),
    (KEYS, "Remove one of them"),
    (KEYS, "Restore the file from a backup"),
    (KEYS, "Set 600"),
    ("sayso/features/evidence/checkpoints.py", "Give a file as a sink received it"),
    ("service/features/permissions/desk.py", "Revoke it"),
    ("service/core/concurrency.py", "Close some of them, or retry in"),
    ("service/features/rulebook/versions.py", "Move its file over the one in use"),
    ("service/core/policy/evaluations.py", "Deploy the same version to both"),
    ("service/core/policy/evaluations.py", "Trim its messages"),
    ("service/core/policy/evaluations.py", "Encode the JSON object's UTF-8 bytes"),
    ("service/core/policy/evaluations.py", "Run the same adapter as the workers"),
]


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml", waits_per_key=1)


async def test_advice_about_a_state_leads_to_a_suspension(world: World) -> None:
    assert (await pause(world, encode({}))).is_success
    for advice, state, changed in (
        ("Encode the JSON object's UTF-8 bytes", "{}", {}),
        ("Run the same adapter as the workers", encode({}), {"state_schema": "autogen.state/0"}),
        ("Deploy the same version to both", encode({}), {"manifest_digest": "e" * 64}),
        ("Trim its messages", encode({"messages": ["x" * 4 * 1024 * 1024]}), {}),
    ):
        refused = await suspend_run(world, state, **changed)
        assert advice in refused.json()["detail"], refused.text
        assert (await suspend_run(world, encode({}))).is_success


async def test_advice_about_waiting_leads_to_an_answer(world: World) -> None:
    place = f"suspensions/{(await make_pending(world.wiring)).id}"
    held = asyncio.create_task(send(world, Step("demo", "GET", f"{place}?wait=30s")))
    await wait_until_waiting(world, 1)
    refused = await send(world, Step("demo", "GET", f"{place}?wait=1s"))
    assert "Close some of them, or retry in" in refused.json()["detail"], refused.text
    held.cancel()
    await wait_until_waiting(world, 0)
    assert (await send(world, Step("demo", "GET", f"{place}?wait=1s"))).is_success


async def test_advice_about_rules_never_in_force_leads_to_force(world: World, tmp_path: Path) -> None:
    kept: Kept = {}
    for step in (LIVE, attest()):
        assert (await send(world, step, kept)).is_success
    refused = await send(world, restore("{new}", "{live}"), kept)
    assert "Move its file over the one in use" in refused.json()["detail"], refused.text
    write(tmp_path, "policy", STRICT)
    await world.wiring.rules.compare("service")
    assert (await send(world, Step("root", "GET", "policy/versions/{new}"), kept)).json()["in_force"]


async def test_advice_about_a_void_grant_leads_to_its_end(world: World, tmp_path: Path) -> None:
    kept: Kept = {}
    for step in (ask(call("payout")), grant("anna")):
        assert (await send(world, step, kept)).is_success
    write(tmp_path, "policy", POLICY.replace("people: 2", "people: 3"))
    await world.wiring.rules.compare("service")
    refused = await send(world, Step("anna", "POST", "grants/{grant}/confirm"), kept)
    assert "Revoke it" in refused.json()["detail"], refused.text
    revoked = await send(world, Step("anna", "POST", "grants/{grant}/revoke"), kept)
    assert revoked.json()["state"] == "revoked", revoked.text


def test_advice_about_a_key_file_leads_to_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    with pytest.raises(InvalidInput, match="Make one with `sayso keyfile new`"):
        read_key_file(path)
    create_key_file(path)
    with pytest.raises(InvalidInput, match="Add a key to it with `sayso keyfile rotate"):
        create_key_file(path)
    rotate_key_file(path)
    backup, (first, _) = path.read_text(), read_key_file(path)
    path.chmod(0o644)
    with pytest.raises(InvalidInput, match="Set 600"):
        read_key_file(path)
    path.chmod(0o600)
    for text, advice in (
        ("", "Make one with `sayso keyfile new`"),
        (f"{backup}nonsense", "Restore the file from a backup"),
        (f"{first.id} {'A' * 40}A==", "Restore the file from a backup"),
        (backup.splitlines()[0] * 2, "Restore the file from a backup"),
        ("\n".join([backup.splitlines()[0]] * 2), "Remove one of them"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=advice):
            read_key_file(path)
    path.write_text(backup)
    assert read_key_file(path)[0] == first


def test_advice_about_a_checkpoint_leads_to_one(tmp_path: Path) -> None:
    create_key_file(tmp_path / "keys")
    made = make_checkpoint(1, 0, "", "default", (Leaf("run r", 1, "h"),), read_key_file(tmp_path / "keys")[0])
    with pytest.raises(InvalidInput, match="Give a file as a sink received it"):
        read_checkpoint(json.dumps({"statement": made.statement}))
    assert read_checkpoint(made.line) == made
