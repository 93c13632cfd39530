"""A JSON Patch is exact: the public library applies it, and gets what was approved."""

from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.policy.rules import same_json
from service.features.overrides.patches import make_patch

LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text("a~/0é", max_size=3)
VALUES = st.recursive(
    LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(st.text("ab~/01-", max_size=2), part, max_size=4)
)


@given(VALUES, VALUES)
def test_patch_turns_one_value_into_the_other(before: Any, after: Any) -> None:
    patch = make_patch(before, after)
    assert same_json(jsonpatch.apply_patch(before, patch), after)
    assert bool(patch) != same_json(before, after)


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"amount": 1, "to": {"iban": "A"}}, {"amount": 1.0, "to": {"iban": "A"}}, []),
        ({"on": 1}, {"on": True}, [{"op": "replace", "path": "/on", "value": True}]),
        ({"a/b": {"c~d": 1}}, {"a/b": {"c~d": None}}, [{"op": "replace", "path": "/a~1b/c~0d", "value": None}]),
        ({"x": 1}, {"y": 1}, [{"op": "remove", "path": "/x"}, {"op": "add", "path": "/y", "value": 1}]),
        ({"to": [1, 2, 3]}, {"to": [1]}, [{"op": "remove", "path": "/to/2"}, {"op": "remove", "path": "/to/1"}]),
        ({"to": []}, {"to": ["a"]}, [{"op": "add", "path": "/to/-", "value": "a"}]),
    ],
)
def test_patch_names_the_places_that_differ(before: Any, after: Any, patch: Any) -> None:
    assert make_patch(before, after) == patch
