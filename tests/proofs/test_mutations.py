"""Every guard of every verb is taken away, one at a time, and each time some test notices."""

import os
from collections.abc import Iterator

import pytest

from tests.proofs.breeder import NOTICED, OVERLOOKED, Breeder, running_breeder
from tests.proofs.mutations import EQUIVALENT, GUARDED, Mutation, find_mutations

SHARDS = 24

FILES = tuple(file for file in GUARDED if file.startswith("sayso/") or os.environ.get("MUTATIONS") == "all")
"""`make test` tries the verbs themselves; `make mutations` the desk and the store too, whose tests need a server."""

ALL = [mutation for file in FILES for mutation in find_mutations(file)]
"""Found in the source: a guard that is written tomorrow is taken away tomorrow."""

BREAKING = [mutation for mutation in ALL if (mutation.file, mutation.kind, mutation.words) not in EQUIVALENT]


@pytest.fixture(scope="module")
def breeder() -> Iterator[Breeder]:
    """One a process that runs tests, with everything loaded."""
    with running_breeder() as breeder:
        yield breeder


@pytest.mark.parametrize("file", FILES)
def test_nothing_is_noticed_where_no_guard_is_gone(breeder: Breeder, file: str) -> None:
    assert breeder.run(None, GUARDED[file]) == OVERLOOKED


@pytest.mark.timeout(300)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_guard_that_is_gone_is_noticed(breeder: Breeder, shard: int) -> None:
    came_to = {one.name: breeder.run(one, GUARDED[one.file]) for one in BREAKING[shard::SHARDS]}
    assert {name: code for name, code in came_to.items() if code != NOTICED} == {}


def test_every_guard_that_is_said_to_do_nothing_is_still_there() -> None:
    known = {(one.file, one.kind, one.words) for one in ALL}
    assert {place for place in EQUIVALENT if place[0] in FILES and place not in known} == set()


def test_a_broken_source_differs_in_one_place() -> None:
    one = Mutation("sayso/transitions/deciding.py", 1, "guard", 3, "late", "False")
    assert one.apply("if late: raise") == "if False: raise"
    assert len(ALL) > 150
