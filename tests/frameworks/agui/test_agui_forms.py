"""Forms and expiries of AG-UI agents: values of people go back in `resume`, and nothing after the expiry."""

from datetime import UTC, datetime, timedelta

import pytest

from launch.stops import wait_until
from sayso.client.operations import Action
from tests.frameworks.agui.chats import Setup, read_error
from tests.frameworks.agui.servers import AMOUNT
from tests.frameworks.mcp.desks import PATIENCE_S

pytestmark = pytest.mark.timeout(240)


def test_value_of_a_form_goes_back_to_the_agent(forms: Setup) -> None:
    chat = forms.ask(("choice", 1))
    (item,) = forms.desk.await_suspension().items
    assert (item.kind, item.response_schema, item.tool.args["message"]) == ("input", AMOUNT, "How much?")
    forms.desk.decide("value", value={"amount": 7})
    chat.resume({"amount": 9})
    assert (forms.desk.effects(), chat.text) == ([{"to": "choice", "amount": 7}], "done: sent 7 to choice")


def test_form_without_a_rule_takes_its_answer_from_an_edit(forms: Setup) -> None:
    chat = forms.ask(("form", 1))
    (item,) = forms.desk.await_suspension().items
    forms.desk.decide("approve", args={**item.tool.args, "answer": {"amount": 7}})
    chat.resume()
    assert forms.desk.effects() == [{"to": "form", "amount": 7}]


@pytest.mark.parametrize("action", ["approve", "deny"])
def test_form_without_a_value_is_cancelled(forms: Setup, action: Action) -> None:
    chat = forms.ask(("form", 1))
    forms.desk.decide(action)
    chat.resume({"amount": 9})
    assert (forms.desk.effects(), chat.text) == ([], "done: no answer")


def test_question_is_denied_once_it_expires(forms: Setup) -> None:
    chat = forms.ask(("soon", 3))
    latest = datetime.now(UTC) + timedelta(seconds=3)
    (item,) = forms.desk.await_suspension().items
    assert item.terms.deadline_at <= latest
    assert chat.interrupts[0]["expiresAt"] == item.terms.deadline_at.isoformat()
    assert wait_until(lambda: not forms.desk.waiting(), PATIENCE_S)
    chat.resume({"approved": True})
    assert "done: denied: " in chat.text
    assert forms.desk.effects() == []


def test_question_that_has_expired_before_it_is_asked_ends_the_run(forms: Setup) -> None:
    assert "expires_at has passed" in read_error(forms.chat().ask(("soon", 0)))
    assert forms.desk.waiting() == []
