import pytest

from sayso.core.policy.conditions import ConditionError
from sayso.core.problems import PROBLEM_TYPES, Problem, error_class_of, problem_type_of
from sayso.errors import AlreadyDecided, Conflict, InvalidInput, NotFound, SaysoError, Unavailable


def test_problem_types_have_unique_slugs() -> None:
    slugs = [row.slug for row in PROBLEM_TYPES.values()]
    assert len(set(slugs)) == len(slugs)


def test_problem_type_of_a_class_without_a_row_is_its_ancestors() -> None:
    assert problem_type_of(ConditionError) is PROBLEM_TYPES[InvalidInput]


@pytest.mark.parametrize(
    ("type_uri", "status", "kind"),
    [
        ("/problems/already-decided", 409, AlreadyDecided),
        ("https://sayso.example.com/problems/not-found", 404, NotFound),
        ("/problems/of-a-later-version", 409, Conflict),
        ("/problems/of-a-later-version", 400, InvalidInput),
        ("about:blank", 502, SaysoError),
        ("about:blank", 503, Unavailable),
    ],
)
def test_error_class_of_a_problem(type_uri: str, status: int, kind: type[SaysoError]) -> None:
    assert error_class_of(type_uri, status) is kind


def test_problem_document_has_facts_beside_its_members() -> None:
    problem = Problem(409, "conflict", "Conflict", "Read it again.", {"decided_by": "anna"})
    assert problem.document() == {
        "type": "/problems/conflict",
        "title": "Conflict",
        "status": 409,
        "detail": "Read it again.",
        "decided_by": "anna",
    }
