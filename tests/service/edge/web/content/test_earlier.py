"""The comparison with the reader's last approval of the same tool, on the item's page."""

import sys

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from service.core.settings import Settings
from service.edge.web.content.edits import MOST_CHANGES, compare_calls
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import asked, decide, make_ask, place_of

HEADING = "Since you last approved this"
ARGS: dict[str, JsonValue] = {"amount": 129, "currency": "EUR", "to": "Mara", "note": "cup"}


def compare(before: JsonObject, after: JsonObject) -> list[tuple[str, str, str, str]]:
    since = compare_calls(before, after, "/", 0)
    return [(row.path, row.state, row.before, row.after) for row in since.changes]


def test_compare_calls_lists_what_differs_and_counts_the_rest() -> None:
    after: JsonObject = {"amount": 4890, "currency": "EUR", "to": "D. Whitfield", "extra": True}
    since = compare_calls(ARGS, after, "/", 0)
    assert compare(ARGS, after) == [
        ("amount", "changed", "129", "4890"),
        ("to", "changed", "Mara", "D. Whitfield"),
        ("note", "removed", "cup", ""),
        ("extra", "added", "", "true"),
    ]
    assert (since.same, since.more, since.fresh) == (1, 0, frozenset({"to"}))


def test_compare_calls_lists_a_bounded_number_of_changes() -> None:
    since = compare_calls({}, {f"a{place}": place for place in range(50)}, "/", 0)
    assert (len(since.changes), since.more) == (MOST_CHANGES, 50 - MOST_CHANGES)


async def test_page_compares_with_the_readers_own_last_approval(settings: Settings) -> None:
    async with visit(settings) as anna:
        first = await asked(anna.wiring, make_ask(args=ARGS))
        assert HEADING not in await anna.read(place_of(first))
        await decide(anna.wiring, first, "approve", name="ben")
        second = await asked(anna.wiring, make_ask(args={**ARGS, "amount": 4890, "to": "D. <Whitfield>"}))
        assert HEADING not in await anna.read(place_of(second))
        await decide(anna.wiring, await asked(anna.wiring, make_ask(args=ARGS)), "approve", name="anna")
        page = await anna.read(place_of(second))
        assert HEADING in page
        amount = '<span class="money" data-currency="EUR" data-decimals=".00">129</span>'
        assert f'<code>amount</code> <del><span class="literal">{amount}</span></del>' in page
        assert '<ins><span class="text">D. &lt;Whitfield&gt;</span></ins>' in page
        assert '<span class="flag">new recipient</span>' in page
        assert "2 values are the same." in page
        await decide(anna.wiring, second, "deny")
        assert HEADING not in await anna.read(place_of(second))


async def test_page_compares_with_the_arguments_that_were_approved(settings: Settings) -> None:
    async with visit(settings) as anna:
        args: JsonObject = {"order_id": "A-1", "amount": 250, "currency": "EUR"}
        first = await asked(anna.wiring, make_ask(args=args))
        await decide(anna.wiring, first, "approve", name="anna", args={**args, "amount": 7})
        again = await asked(anna.wiring, make_ask(args={**args, "amount": 7}))
        assert "Nothing differs: all 3 values are the same." in await anna.read(place_of(again))


async def test_page_compares_no_secrets_and_no_deleted_calls(settings: Settings) -> None:
    async with visit(settings) as anna:
        secret = make_ask(args=ARGS, terms={"secrets": ["note"]})
        await decide(anna.wiring, await asked(anna.wiring, secret), "approve", name="anna")
        record = await asked(anna.wiring, make_ask(args=ARGS))
        assert HEADING not in await anna.read(place_of(record))
        gone = await decide(anna.wiring, await asked(anna.wiring, make_ask(args=ARGS)), "approve", name="anna")
        await anna.wiring.desk.cancel(gone.run.id, gone.items[0].decisions[0].by)
        await anna.wiring.retention.forget_runs(gone.updated_at_ms + 10**9, 100)
        assert HEADING not in await anna.read(place_of(record))


async def test_calls_are_compared_in_a_thread(settings: Settings) -> None:
    """Twelve thousand values take more than a second."""
    async with visit(settings) as anna:
        await decide(anna.wiring, await asked(anna.wiring, make_ask(args=ARGS)), "approve", name="anna")
        record = await asked(anna.wiring, make_ask(args={**ARGS, "amount": 4890}))
        in_loop: set[str] = set()
        sys.setprofile(lambda frame, _event, _arg: in_loop.add(frame.f_code.co_name))
        try:
            page = await anna.read(place_of(record))
        finally:
            sys.setprofile(None)
        assert HEADING in page
        assert "find_since" in in_loop
        assert in_loop.isdisjoint({"compare_calls", "compare_args", "find_secrets"})


async def test_page_leads_with_the_last_denial_of_the_same_call(settings: Settings) -> None:
    async with visit(settings) as anna:
        await decide(anna.wiring, await asked(anna.wiring, make_ask(args=ARGS)), "approve", name="anna")
        denied = await asked(anna.wiring, make_ask(args=ARGS))
        await decide(anna.wiring, denied, "deny", name="ben", message="never for <Mara>")
        again = await asked(anna.wiring, make_ask(args=ARGS))
        page = await anna.read(place_of(again))
        line = page[page.index("ben denied this call") : page.index(HEADING)]
        assert "just now" in line
        assert ", for the same agent: never for &lt;Mara&gt;" in line
        assert f'href="{place_of(denied)}"' in line
        other = await asked(anna.wiring, make_ask(args={**ARGS, "amount": 130}))
        assert "denied this call" not in await anna.read(place_of(other))
        await decide(anna.wiring, again, "approve", name="ben")
        assert "denied this call" not in await anna.read(place_of(again))


async def test_page_leads_with_the_denial_of_a_near_call_and_what_differs(settings: Settings) -> None:
    async with visit(settings) as anna:
        await decide(anna.wiring, await asked(anna.wiring, make_ask(args=ARGS)), "approve", name="anna")
        denied = await asked(anna.wiring, make_ask(args=ARGS))
        await decide(anna.wiring, denied, "deny", name="ben", message="never for <Mara>")
        near = await asked(anna.wiring, make_ask(args={**ARGS, "amount": 128}))
        page = await anna.read(place_of(near))
        line = page[page.index("ben denied a similar call") : page.index(HEADING)]
        assert ", for the same agent: never for &lt;Mara&gt;" in line
        assert f'href="{place_of(denied)}"' in line
        assert "What differs:" in line
        assert line.count("<code>") == 1
        assert ">129</span>" in line[: line.index("<ins>")]
        assert ">128</span>" in line[line.index("<ins>") :]
        far = await asked(anna.wiring, make_ask(args={**ARGS, "to": "Ben"}))
        assert "denied a similar call" not in await anna.read(place_of(far))


async def test_page_masks_secrets_of_a_near_denied_call(settings: Settings) -> None:
    async with visit(settings) as anna:
        terms = {"secrets": ["note"]}
        denied = await asked(anna.wiring, make_ask(args={**ARGS, "note": "hunter2"}, terms=terms))
        await decide(anna.wiring, denied, "deny", message="not with hunter2")
        near = await asked(anna.wiring, make_ask(args={**ARGS, "amount": 1, "note": "swordfish"}, terms=terms))
        page = await anna.read(place_of(near))
        assert "denied a similar call" in page
        assert "hunter2" not in page
        assert "swordfish" not in page
