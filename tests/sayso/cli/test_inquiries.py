"""Commands that claim items, ask and answer."""

from tests.sayso.cli.test_commands import Run, ask, desk, sayso  # noqa: F401

Desk = tuple[str, str, str, str]


def test_claim_and_release(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk)
    assert "You claimed refund." in sayso("claim", waiting).stdout
    assert "anna claimed this item" in sayso("claim", waiting, key=desk[3]).stderr
    assert "is no active reviewer" in sayso("forward", waiting, "nobody", "--note", "Why?").stderr
    assert "refund is released." in sayso("release", waiting).stdout


def test_invite_lists_and_refuses(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk)
    assert "Nobody outside was invited." in sayso("invite", waiting).stdout
    assert "No mail channel is configured" in sayso("invite", waiting, "jane@partner.example").stderr
    assert "has no invitation 'inv_1'" in sayso("invite", waiting, "--revoke", "inv_1").stderr
    assert "not both" in sayso("invite", waiting, "jane@partner.example", "--revoke", "inv_1").stderr


def test_retract_needs_a_decision(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk, "wipe")
    assert "no decision on this item to take back" in sayso("retract", waiting).stderr
    sayso("approve", waiting, "--yes")
    assert "Your decision on wipe no longer counts." in sayso("retract", waiting).stdout
    assert "took it back" in sayso("show", waiting).stdout


def test_approve_says_how_long_it_can_be_undone(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk, "lend")
    assert f"nothing has run. `sayso retract {waiting}` undoes it until" in sayso("approve", waiting, "--yes").stdout
    assert "may decide anew" in sayso("retract", waiting).stdout
    assert "took it back" in sayso("show", waiting).stdout


def test_comment_and_list_comments(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk)
    assert "No comments." in sayso("comments", waiting).stdout
    shown = sayso("comment", waiting, "Is the order real?").stdout
    assert "anna on i1" in shown
    assert "│ Is the order real?" in shown
    assert sayso("comments", waiting).stdout == shown


def test_ask_and_reply(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk)
    assert "waits for an answer" in sayso("reply", waiting, "A-1", key=desk[1]).stderr
    assert "is asked" in sayso("ask", waiting, "Which order?").stdout
    replied = sayso("reply", waiting, "A-1", key=desk[1])
    assert "anna asked: Which order?" in replied.stdout, replied.stderr
    assert "Your answer stands on the item." in replied.stdout
