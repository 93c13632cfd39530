"""Suspensions for a terminal: short ids, and no text that passes for a line of the command line."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from sayso.cli.suspensions import Barred, shorten_ids, show_args, show_inbox, show_suspension
from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Actor, Shown
from sayso.core.records.items import ItemTool
from sayso.core.records.terms import Fallback
from sayso.core.sentences.deliveries import NOBODY
from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.summaries import list_values
from sayso.wire.items import DecisionView, DeliveryView, EarlierDenialView, InquiryView, ItemView
from sayso.wire.suspensions import RunRefView, SuspensionView
from sayso.wire.terms import TermsView
from tests.hostile import CORPUS
from tests.sayso.cli.test_screens import NOW, TITLE, read
from tests.sayso.views import view


def test_shorten_ids_takes_as_much_as_tells_them_apart() -> None:
    ids = ["sus_1aaaaaabbbb", "sus_2caaaaabbbb", "sus_3ffffff"]
    assert shorten_ids(ids) == {ids[0]: "aaaaaabbbb", ids[1]: "caaaaabbbb", ids[2]: "ffffff"}
    assert shorten_ids([]) == {}


@given(st.lists(st.text("ab", min_size=1, max_size=12), unique=True))
def test_short_ids_are_the_ends_of_one_id_each(ids: list[str]) -> None:
    for one, short in shorten_ids(ids).items():
        assert one.endswith(short)
        assert short == one or [other for other in ids if other.endswith(short)] == [one]


def test_every_line_of_a_text_stands_behind_a_bar() -> None:
    console = Console(width=60, force_terminal=False, color_system=None)
    for name, text in CORPUS.items():
        with console.capture() as printed:
            for part in show_args({"name": text, text: "x"}):
                assert isinstance(part, Barred)
                console.print(part)
        for line in printed.get().split("\n")[:-1]:
            literal = line.startswith(("name ", text))
            assert literal or line.lstrip().startswith(("│", "┆")) or " │ " in line, f"{name}: {line!r}"


def test_show_args_shows_every_leaf() -> None:
    args: JsonObject = {"a": {"b": [1, None, True, [], {}]}, "text": "one\ntwo", "quoted": "1", "long" * 10: "x"}
    console = Console(width=80, force_terminal=False, color_system=None)
    with console.capture() as printed:
        console.print(*show_args(args), sep="\n")
    shown = printed.get()
    assert all(leaf.path in shown for leaf in list_values(args))
    assert "a.b[0]   1\n" in shown
    assert 'quoted │ "1"\n' in shown
    assert "text   │ one\n       │ two\n" in shown


def test_barred_text_ends_with_its_empty_line() -> None:
    console = Console(width=40, force_terminal=False, color_system=None)
    with console.capture() as printed:
        console.print(Barred(Text("a\n"), Text("name"), 5))
    assert printed.get() == "name │ a\n     │ \n"


def test_show_suspension_marks_the_title_and_the_context() -> None:
    run = view(RunRefView, id="run_1", agent="bot", owner="demo", claimed_title=TITLE, claimed_context={"env": "prod"})
    lines = read(show_suspension(view(SuspensionView, id="sus_1", status="pending", created_at=NOW, run=run)))
    assert lines[0] == "bot  sus_1"
    place = lines.index(UNCHECKED)
    assert lines[place + 1 : place + 3] == [f"│ {TITLE}", "env │ prod"]


def test_show_suspension_says_what_was_asked_and_who_was_not_notified() -> None:
    failed = view(DeliveryView, channel="ops", person="anna", state="failed", reason="HTTP 503", next_try_at=NOW)
    ben = view(Actor, id="ben", kind="human")
    asked = view(InquiryView, id="inq_1", by=ben, text="Which\norder?", answer="A-1\nOutcome: approved")
    item = view(
        ItemView,
        item_id="i1",
        kind="approval",
        tool=view(ItemTool, name="refund", args={}),
        terms=view(TermsView, deadline_at=NOW, fallback=view(Fallback, action="deny")),
        digest="d",
        state="open",
        deliveries=(failed,),
        inquiries=(asked,),
    )
    run = view(RunRefView, id="run_1", agent="bot", owner="demo")
    suspension = view(SuspensionView, id="sus_1", status="pending", created_at=NOW, run=run, items=(item,))
    assert read(show_suspension(suspension))[-8:] == [
        "ben asked:",
        "│ Which",
        "│ order?",
        "The requester answered · not checked",
        "│ A-1",
        "│ Outcome: approved",
        NOBODY,
        "anna was not notified over ops: HTTP 503. The next attempt is due at 2026-11-22 00:00:00 UTC.",
    ]


def make_waiting(args: JsonObject) -> SuspensionView:
    """A payment that waits for a decision."""
    item = view(
        ItemView,
        item_id="i1",
        kind="approval",
        tool=view(ItemTool, name="pay_out", args=args),
        terms=view(TermsView, deadline_at=NOW, fallback=view(Fallback, action="approve")),
        digest="d",
        state="open",
        allowed=("approve", "deny"),
    )
    run = view(RunRefView, id="run_1", agent="bot", owner="demo")
    return view(SuspensionView, id="sus_1abcdef", status="pending", created_at=NOW, run=run, items=(item,))


def test_inbox_has_the_headline_and_flags_of_the_row() -> None:
    found = make_waiting({"to": "D. Whitfield", "amount": 4890, "currency": "EUR", "note": "p\u0430ypal"})
    first, second = read(show_inbox([found], (), 160))
    assert first.startswith("abcdef  ")
    assert first.endswith("  look-alike letters  runs by itself  Pay out EUR 4,890.00 to D. Whitfield")
    assert second.strip() == "bot"
    (plain, _) = read(show_inbox([make_waiting({"a": 1})], (), 160))
    assert plain.endswith('  runs by itself  pay_out {"a": 1}')


def test_show_suspension_has_the_headline_and_warnings_of_the_page() -> None:
    lines = read(show_suspension(make_waiting({"to": "DE89370400440532013001", "amount": 5, "currency": "EUR"})))
    assert lines[lines.index("i1  pay_out") + 1] == "Pay out EUR 5.00 to DE89370400440532013001"
    assert any("its checksum is wrong" in line for line in lines)


def test_show_suspension_says_what_reviewers_were_shown() -> None:
    shown = view(Shown, display_hash="1:ab", values=7, values_shown=7, look_ms=41_000)
    decisions = (
        view(DecisionView, action="approve", by=view(Actor, id="anna", kind="human"), at=NOW, shown=shown),
        view(DecisionView, action="approve", by=view(Actor, id="ben", kind="human"), at=NOW),
        view(DecisionView, action="deny", by=view(Actor, id="timeout", kind="timeout"), at=NOW),
    )
    item = view(
        ItemView,
        item_id="i1",
        kind="approval",
        tool=view(ItemTool, name="refund", args={}),
        terms=view(TermsView, deadline_at=NOW, fallback=view(Fallback, action="deny")),
        digest="d",
        decisions=decisions,
    )
    run = view(RunRefView, id="run_1", agent="bot", owner="demo")
    lines = read(
        show_suspension(view(SuspensionView, id="sus_1", status="pending", created_at=NOW, run=run, items=(item,)))
    )
    assert "anna: 7 of 7 values shown, 41 s" in lines
    assert "ben: what was shown was not measured" in lines
    assert not any(line.startswith("timeout") for line in lines)


def test_show_suspension_leads_with_the_last_denial_of_the_same_call() -> None:
    denied = view(EarlierDenialView, by="anna", at=NOW, message="never for D-1", run_id="run_1")
    item = view(
        ItemView,
        item_id="i1",
        kind="approval",
        tool=view(ItemTool, name="refund", args={"customer": "D-1"}),
        terms=view(TermsView, deadline_at=NOW, fallback=view(Fallback, action="deny")),
        digest="d",
        denied_before=denied,
    )
    run = view(RunRefView, id="run_1", agent="bot", owner="demo")
    lines = read(
        show_suspension(view(SuspensionView, id="sus_1", status="pending", created_at=NOW, run=run, items=(item,)))
    )
    place = lines.index("i1  refund")
    assert lines[place + 1].startswith("anna denied this call ")
    assert lines[place + 1].endswith(", in the same run: never for D-1")
