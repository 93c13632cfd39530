"""The cost of a reader is bounded before it starts: low for ordinary texts, high for slow ones."""

from typing import Any

import pytest

from benchmarks.holds.corpus import LOOPS, MAIL, READERS, SHELL, SQL
from sayso.core.policy.budgets import INLINE_US, UNBOUNDED, measure, weigh_condition
from sayso.core.policy.conditions import Facts, compile_condition
from sayso.core.policy.functions.shorthands import SHORTHANDS

ORDINARY = [
    ("sql", "select id, name from orders where id = 5 order by name limit 10"),
    ("sql", "select o.id from orders o join customers c on c.id = o.customer where o.total > 5 and c.name = 'Ann'"),
    ("sql", "update orders set state = 'sent' where id in (1, 2, 3)"),
    ("shell", "ls -l /srv/data | head -3"),
    ("shell", "git -C /srv/app log --oneline -n 20 > /tmp/log.txt && wc -l /tmp/log.txt"),
    ("shell", ["git", "log", "--oneline"]),
    ("mail", "ann@example.com, ben.li+news@mail.example.com"),
    ("mail", ["ann@example.com"] * 50),
    ("mail", "Ann Example <ann@example.com>"),
    ("http", "https://api.example.com/v1/orders?limit=20#top"),
    ("path", "/srv/data/reports/2026/november.csv"),
    ("has_card", {"note": "The customer says that two of the six cups were broken." * 20}),
    ("leaves", {"items": [{"sku": "A-1", "count": 2}] * 20}),
]


@pytest.mark.parametrize(("name", "value"), ORDINARY)
def test_ordinary_values_are_read_at_once(name: str, value: object) -> None:
    assert SHORTHANDS[name].weigh(value) < INLINE_US / 2  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [*SQL.values()], ids=[*SQL])
def test_sql_that_the_parser_tries_in_many_ways_has_no_bound(value: str) -> None:
    assert SHORTHANDS["sql"].weigh(value) == UNBOUNDED


@pytest.mark.parametrize("value", [*SHELL.values(), *MAIL.values()], ids=[*SHELL, *MAIL])
def test_long_commands_and_addresses_are_over_the_budget(value: object) -> None:
    name = "shell" if value in SHELL.values() else "mail"
    assert SHORTHANDS[name].weigh(value) > INLINE_US / 2  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "args"), [*LOOPS.items()])
def test_loops_over_large_values_are_over_the_budget(name: str, args: dict[str, object]) -> None:
    condition = compile_condition('args.x.exists(a, args.x.exists(b, a == b)) || args.x.exists(a, args.s.matches("b"))')
    assert Facts({"args": args}).weigh(condition) > INLINE_US, name


def test_cost_of_a_condition_grows_with_its_loops_and_texts() -> None:
    small, large = measure({"x": [1, 2]}), measure({"x": ["a" * 1_000] * 90})
    conditions = ("args.a > 5", "args.x.exists(a, a == 'b')", "args.x.exists(a, args.x.exists(b, a.matches(b)))")
    costs = [weigh_condition(when, large) for when in conditions]
    assert costs == sorted(costs)
    assert costs[0] < INLINE_US / 10 < INLINE_US < costs[2]
    assert all(weigh_condition(when, small) < INLINE_US / 100 for when in conditions)


def test_every_reader_with_a_corpus_has_a_weight() -> None:
    names = {"sql": "t_sql", "shell": "t_shell", "mail": "t_mail", "http": "t_url", "path": "t_path"}
    searching = dict.fromkeys(("has_mail", "has_iban", "has_card", "has_secret", "leaves"), "t_search")
    known = names | searching | {"host": "t_url", "within": "t_path"}
    assert known.keys() == SHORTHANDS.keys()
    assert {*known.values()} == READERS.keys()


class CountedValues(dict[str, object]):
    """An object that counts how often its values are gone through."""

    rounds = 0

    def values(self) -> Any:
        """Count, then return the values."""
        CountedValues.rounds += 1
        return super().values()


@pytest.mark.parametrize("rounds", [1, 5])
def test_several_readers_of_one_value_weigh_it_once(rounds: int) -> None:
    when = " || ".join(f"{name}(args.v)" for name in ("has_card", "has_iban", "has_secret", "has_mail"))
    facts = Facts({"args": {"v": CountedValues(a=1)}})
    CountedValues.rounds = 0
    costs = [facts.weigh(compile_condition(when)) for _ in range(rounds)]
    assert CountedValues.rounds == 2, "once for all values, once for the readers"
    assert len(set(costs)) == 1


@pytest.mark.parametrize("value", [{"é": 1}, {"a": ["é"]}, "é", ["a", {"a": "é"}]])
def test_measure_finds_text_beyond_ascii_anywhere(value: object) -> None:
    assert not measure(value).plain
    assert measure(["a", {"b": [1, None, 1.5, True]}]) == (8, 2, True)
