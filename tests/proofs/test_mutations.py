"""Remove the guards one at a time, and expect a test to fail each time."""

import os
from collections.abc import Iterator

import pytest

from tests.proofs.mutation_runner import KILLED, SURVIVED, MutationRunner, open_mutation_runner
from tests.proofs.mutations import EQUIVALENT, GUARDED, Mutation, find_mutations
from tests.shares import take_share

SHARDS = 24

FILES = tuple(file for file in GUARDED if file.startswith("sayso/") or os.environ.get("MUTATIONS") == "all")
"""`make proofs` covers the transitions. `make mutations` adds the desk and the store, whose tests need a server."""

ALL = [mutation for file in FILES for mutation in find_mutations(file)]

_TAKEN = set(take_share(mutation.name for mutation in ALL))

BREAKING = [
    mutation
    for mutation in ALL
    if (mutation.file, mutation.kind, mutation.text) not in EQUIVALENT and mutation.name in _TAKEN
]


@pytest.fixture(scope="module")
def runner() -> Iterator[MutationRunner]:
    """Share one runner per test process."""
    with open_mutation_runner() as opened:
        yield opened


@pytest.mark.parametrize("file", FILES)
def test_runner_passes_unchanged_source(runner: MutationRunner, file: str) -> None:
    assert runner.run(None, GUARDED[file]) == SURVIVED


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_tests_fail_without_a_guard(runner: MutationRunner, shard: int) -> None:
    codes = {one.name: runner.run(one, GUARDED[one.file]) for one in BREAKING[shard::SHARDS]}
    assert {name: code for name, code in codes.items() if code != KILLED} == {}


def test_equivalent_guards_exist() -> None:
    known = {(one.file, one.kind, one.text) for one in ALL}
    assert {guard for guard in EQUIVALENT if guard[0] in FILES and guard not in known} == set()


def test_apply_replaces_one_place() -> None:
    one = Mutation(FILES[0], 1, "guard", 3, "late", "False")
    assert one.apply("if late: raise") == "if False: raise"
    assert len(ALL) > 150
