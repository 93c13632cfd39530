"""Every error becomes a problem with its status, type and sentence, and discloses no internals."""

import inspect
import re
from typing import Any

import pytest
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, ValidationError
from starlette.exceptions import HTTPException
from structlog.testing import capture_logs

from sayso import errors
from sayso.core.problems import PROBLEM_TYPES, error_class_of
from sayso.core.records.envelopes import CounterOffer
from sayso.errors import AlreadyDecided, SaysoError, TooManyRequests, Unavailable
from service.edge.api.problems import describe_problem
from service.edge.http.bodies import misfit, read_body

OF_CLIENTS = {
    *(errors.Unreachable, errors.Suspended, errors.Denied, errors.ChangesRequested),
    *(errors.CallFailed, errors.InDoubt),
}
"""What clients raise; the service never answers with it."""

KINDS = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, SaysoError)]


class Order(BaseModel):
    model_config = {"extra": "forbid"}

    name: str
    lines: list[int] = []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in OF_CLIENTS])
def test_problem_types_have_a_row_for_every_error(kind: type[SaysoError]) -> None:
    row = PROBLEM_TYPES[kind]
    problem = describe_problem(kind())
    assert (problem.status, problem.slug, problem.title) == (row.status, row.slug, row.title)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", problem.slug)
    assert problem.detail
    assert error_class_of(f"/problems/{problem.slug}", 400) is kind


def test_describe_problem_adds_facts_and_writes_times() -> None:
    error = AlreadyDecided("Anna did.", decided_by="anna", decided_at_ms=1_700_000_000_120, status="decided")
    problem = describe_problem(error)
    assert (problem.status, problem.slug, problem.title) == (409, "already-decided", "Already decided")
    assert problem.facts == {
        "decided_by": "anna",
        "decided_at": "2023-11-14T22:13:20.120Z",
        "current_status": "decided",
    }


def test_unexpected_error_is_logged_but_not_disclosed() -> None:
    with capture_logs() as logs:
        problem = describe_problem(KeyError("the password is swordfish"))
    assert (problem.status, problem.slug) == (500, "something-broke")
    assert "swordfish" not in str(problem)
    assert problem.facts["error_id"] in problem.detail
    assert [line["error_id"] for line in logs] == [problem.facts["error_id"]]


def test_faulty_record_is_a_server_error() -> None:
    with pytest.raises(ValidationError) as found:
        Order.model_validate({})
    with capture_logs():
        assert describe_problem(found.value).status == 500


def test_problem_has_retry_after() -> None:
    assert describe_problem(Unavailable()).headers == {"Retry-After": "2"}
    assert describe_problem(TooManyRequests(retry_after_s=7)).headers == {"Retry-After": "7"}


def test_http_exception_becomes_a_problem() -> None:
    found = describe_problem(HTTPException(405, headers={"Allow": "GET, POST"}))
    assert (found.status, found.slug, found.headers) == (405, "method-not-allowed", {"Allow": "GET, POST"})
    assert "GET, POST" in found.detail


def test_faults_name_their_path_but_not_the_sent_value() -> None:
    with pytest.raises(errors.InvalidInput) as found:
        read_body(b'{"lines":["swordfish"],"x":"swordfish"}', Order)
    assert found.value.facts["errors"] == [
        {"path": "$.name", "message": "is missing; add it"},
        {
            "path": "$.lines[0]",
            "message": "input should be a valid integer, unable to parse string as an integer",
        },
        {"path": "$.x", "message": "is not known here; remove it"},
    ]
    assert "swordfish" not in found.value.message


def test_list_with_an_invalid_entry_is_not_called_too_short() -> None:
    class Orders(BaseModel):
        lines: tuple[int, ...] = Field(min_length=1)

    for sent, faults in ((b'{"lines":["x"]}', ["$.lines[0]"]), (b'{"lines":[]}', ["$.lines"])):
        with pytest.raises(errors.InvalidInput) as found:
            read_body(sent, Orders)
        assert [one["path"] for one in found.value.facts["errors"]] == faults  # type: ignore[attr-defined]


def test_fault_in_a_key_names_the_key_and_its_form() -> None:
    with pytest.raises(errors.InvalidInput, match=r"\$\.at_most\.amount is no argument; write it as args\.customer"):
        read_body(b'{"at_most":{"amount":5}}', CounterOffer)


def test_hundred_faults_list_twenty_and_name_three() -> None:
    faults = [{"loc": ("body", str(place)), "type": "missing", "msg": "Field required"} for place in range(100)]
    error = misfit(faults)
    assert len(error.facts["errors"]) == 20  # type: ignore[arg-type]
    assert "(and 97 more)" in error.message


def test_thousands_of_faults_take_linear_time() -> None:
    reads: list[str] = []

    class Fault(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            reads.append(name)
            return super().__getitem__(name)

    misfit([Fault(loc=("events", place, "event"), type="too_short", msg="too short") for place in range(1000)])
    assert reads.count("loc") < 10_000


@pytest.mark.parametrize(
    ("place", "path"),
    [(("body", "args", "a", 0), "$.args.a[0]"), (("query", "limit"), "query.limit"), (("body",), "$"), ((), "$")],
)
def test_fault_locations_are_written_as_paths(place: tuple[str | int, ...], path: str) -> None:
    problem = describe_problem(RequestValidationError([{"loc": place, "type": "missing", "msg": "Field required"}]))
    assert problem.status == 422
    assert problem.facts["errors"] == [{"path": path, "message": "is missing; add it"}]
