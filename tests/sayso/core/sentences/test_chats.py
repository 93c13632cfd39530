"""Requests for a reply say what to reply, and list choices without flooding the chat."""

from sayso.core.sentences.deliveries import request_reason, request_value


def test_request_reason_says_how_to_give_none() -> None:
    assert request_reason("refund(order: A-1)") == (
        "Why do you deny refund(order: A-1)? Reply with the reason, or with - for none. Until then it stays open."
    )


def test_request_value_lists_the_first_choices() -> None:
    assert (
        request_value("pay()", None)
        == "Which value for pay()? Reply with it, as text or JSON. Until then it stays open."
    )
    assert "Choose one of: EUR, 7, [1,null]. Until" in request_value("pay()", ["EUR", 7, [1, None]])
    assert "18, 19, and 5 more." in request_value("pay()", list(range(25)))
