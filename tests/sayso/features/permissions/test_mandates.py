"""`sayso mandates`, against a running desk."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sayso import Client
from sayso.core.canonical_json import JsonObject
from tests.sayso.cli.test_commands import Run, sayso  # noqa: F401
from tests.sayso.features.whatif.desks import Desk, serve_rules

POLICY = """
version: 1
default: request_approval
rules: [{id: pages, tool: fetch, action: request_approval, mandates: {longest: 7d}}]
"""


@pytest.fixture
def desk(clean_store_url: str, tmp_path: Path) -> Iterator[Desk]:
    yield from serve_rules(POLICY, clean_store_url, tmp_path)


def test_plan_is_read_approved_listed_and_revoked(desk: Desk, sayso: Run) -> None:  # noqa: F811
    assert "No plan was approved." in sayso("mandates", "list").stdout
    with Client(desk[0], desk[1]) as agent:
        fetch: JsonObject = {"tool": "fetch", "definition": {}, "hosts": {"args.url": ["example.com"]}}
        proposed = agent.propose_mandate({"for_s": 3600, "count": 2, "tools": [fetch]})
    assert 'fetch with url at "example.com"' in " ".join(sayso("show", proposed.suspension_id).stdout.split())
    assert sayso("approve", proposed.suspension_id, "--yes").returncode == 0
    (found,) = json.loads(sayso("mandates", "list", "--json").stdout)
    assert (found["id"], found["state"], found["approved_by"]) == (proposed.id, "in_force", ["anna"])
    assert "0 of 2" in sayso("mandates", "list").stdout
    assert f"{proposed.id} is revoked." in sayso("mandates", "revoke", proposed.id).stdout
