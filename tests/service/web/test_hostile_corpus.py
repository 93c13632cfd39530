"""The hostile corpus in a real browser: nothing fires, and every hidden or look-alike character has a sign."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page

from sayso.canonical_json import JsonObject
from sayso.clock import new_id
from sayso.records.decisions import Actor, ActorKind
from sayso.records.suspensions import RunRef, SuspensionRecord
from sayso.records.tool_calls import ToolDefinition
from sayso.records.tool_names import find_name_fault
from service.store.runs.external_events import ExternalEvent
from service.wiring import Wiring
from tests.builders import answer_question, person
from tests.hostile import CORPUS, EMOJI, HIDDEN, LOOKALIKES
from tests.service.web.sites import Site
from tests.service.web.stories import STATE, decide, finish, make_ask, pause, place_of

END = "~"
"""Stands behind every text in a list of texts, so that a sign at the end of a text is seen to be missing."""

TITLE_CHARS = 200
LONG = 150
HIDDEN_CATEGORIES = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
NAMED = frozenset(name.split(" ")[-1] for name in HIDDEN)

WATCH = """
document.addEventListener("securitypolicyviolation", (event) => console.error(`CSP: ${event.violatedDirective}`));
"""
READ = """
() => {
    const texts = [], named = [];
    const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        if (!walker.currentNode.parentElement.closest("textarea, script")) texts.push(walker.currentNode.data);
    }
    for (const node of document.querySelectorAll("*")) {
        for (const { name, value } of node.attributes) {
            if (!["value", "href", "action", "data-date"].includes(name)) named.push(value);
        }
    }
    return [texts.join(""), named];
}
"""
ROWS = """
() => [...document.querySelectorAll(".what table.pairs tr")].slice(1).map((row) => [
    row.querySelector("th").textContent,
    [...row.querySelectorAll("td .sign")].map((sign) => `${sign.textContent} ${sign.title}`).join(" "),
    row.querySelector("td").textContent,
])
"""


def chunks() -> Iterator[dict[str, str]]:
    """Yield all texts in groups that fit a title; long ones come alone."""
    chunk: dict[str, str] = {}
    for name, text in CORPUS.items():
        if len(text) >= LONG:
            yield {name: text}
            continue
        if len(join({**chunk, name: text})) > TITLE_CHARS:
            yield chunk
            chunk = {}
        chunk[name] = text
    yield chunk


def join(texts: dict[str, str]) -> str:
    return "".join(f"{text}{END}" for text in texts.values())


def is_hidden(sign: str) -> bool:
    """Whether nobody sees this character, by its category or as the corpus says; without the code under test."""
    return sign not in " \n\t" and (unicodedata.category(sign) in HIDDEN_CATEGORIES or f"U+{ord(sign):04X}" in NAMED)


def list_needed_signs(name: str) -> set[str]:
    """Return the characters of a text that must have a sign."""
    if CORPUS[name] in EMOJI:
        return set()
    named = {chr(int(name.split("U+")[1], 16))} if "U+" in name else set()
    return named | {sign for sign in CORPUS[name] if is_hidden(sign)}


async def submit(wiring: Wiring, texts: dict[str, str]) -> SuspensionRecord:
    """Suspend a run that has the texts wherever an agent or its requester can put one."""
    joined = join(texts)
    definition = ToolDefinition(
        name="send_mail",
        description=joined,
        parameters={
            "type": "object",
            "title": joined,
            "properties": {
                **{name: {"type": "string", "title": text, "description": text} for name, text in texts.items()},
                **{text: {"enum": [text, "x"]} for text in texts.values()},
            },
        },
    )
    await wiring.runs.save_definitions([definition])
    args: JsonObject = {**texts, "keys": {text: name for name, text in texts.items()}, "list": [[*texts.values()]]}
    args |= {"filename": joined, "attachments": [{"filename": text, "type": text} for text in texts.values()]}
    prompt = {"title": joined[:TITLE_CHARS], "body": joined, "metadata": {"list": [*texts.values()], joined: joined}}
    ask = make_ask(definition, args, reason=joined[:2000], prompt=prompt, subagent=joined)
    run_id = new_id("run")
    run = RunRef(id=run_id, agent="bot", owner="demo", thread_id=run_id, title=joined, claimed={joined: joined})
    begun = (await wiring.desk.start(run, STATE)).record
    record = await pause(wiring, begun, [ask], words=joined)
    await report(wiring, run_id, joined)
    await wiring.desk.ask_requester(record.id, "i1", joined[:2000], person("ben"))
    return await answer_question(wiring, record, joined[:2000])


async def report(wiring: Wiring, run_id: str, text: str) -> None:
    """Report events of the agent with the text."""
    events: list[JsonObject] = [
        {"type": "message", "who": text, "data": {"text": text, text: text}},
        {"type": text[:100] or "x", "data": {text: text}},
    ]
    numbered = [ExternalEvent(seq, None, event) for seq, event in enumerate(events, start=1)]
    await wiring.external_events.add(run_id, "agent", "sayso", numbered)


async def settle(wiring: Wiring, record: SuspensionRecord, texts: dict[str, str], number: int) -> None:
    """Deny one call, let one fail, one succeed, one run with other arguments, and cancel one run, in turn."""
    joined = join(texts)
    message = joined[:1000]
    if number % 5 == 0:
        decided = await decide(wiring, record, "deny", message=message)
        await finish(wiring, decided)
    elif number % 5 == 1:
        await finish(wiring, await decide(wiring, record, "approve", message=message), error=joined)
    elif number % 5 == 2:
        await finish(wiring, await decide(wiring, record, "approve", message=message), {joined: [*texts.values()]})
    elif number % 5 == 3:
        await finish(wiring, await decide(wiring, record, "approve", args={**texts, joined: joined}), joined)
    else:
        await wiring.desk.cancel(record.run.id, Actor(id="demo", kind=ActorKind.AGENT), joined[:500])


@pytest.fixture
def witness(open_as: Callable[..., Page], site: Site) -> Page:
    """A reviewer's page, on which no dialog opens, no policy is violated and no other host is asked."""
    page = open_as("/account")
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    page.on("popup", lambda popup: pytest.fail(f"a window opened: {popup.url}"))
    check_requests(page.context, site.url)
    page.add_init_script(WATCH)
    return page


def check_requests(context: BrowserContext, url: str) -> None:
    """Let no request leave the site."""

    def check(request: Any) -> None:
        assert request.url.startswith((f"{url}/", "data:image/")), request.url

    context.on("request", check)


def check_page(page: Page, place: str, texts: dict[str, str]) -> None:
    """Open a page and check that no text is on it with a hidden or look-alike character bare."""
    response = page.goto(place)
    assert response is not None
    assert response.status == 200, place
    shown, named = page.evaluate(READ)
    for emoji in EMOJI:
        shown = shown.replace(emoji, "")
    assert {f"U+{ord(sign):04X}" for sign in set(shown) if is_hidden(sign)} == set(), place
    marked = [text for name, text in texts.items() if name in LOOKALIKES]
    assert [text for text in marked if f"{text}{END}" in shown] == [], place
    assert [text for text in marked if text in "\n".join(named)] == [], place
    assert {f"U+{ord(sign):04X}" for sign in set("".join(named)) if is_hidden(sign)} == set(), place
    assert page.evaluate("document.querySelectorAll('main script, main style, main base, iframe, object').length") == 0


def check_signs(page: Page, texts: dict[str, str]) -> None:
    """Check that Approve is live on this page, and that every argument has the signs that it needs."""
    assert page.locator(".approval button.approve").count() == 1
    rows = {name: (signs, value) for name, signs, value in page.evaluate(ROWS)}
    for name, text in texts.items():
        signs, value = rows[name]
        missing = {sign for sign in list_needed_signs(name) if f"U+{ord(sign):04X}" not in signs}
        quoted = {sign for sign in missing if value[:1] == '"' and json.dumps(sign)[1:-1] in value}
        assert missing - quoted == set(), f"{name}: {text!r} shows {signs!r}"
        assert name not in LOOKALIKES or "U+" in signs, name
    assert page.locator(".what .warn").count() >= any(map(list_needed_signs, texts))


def test_corpus_has_300_texts_that_differ() -> None:
    assert len(set(CORPUS.values())) >= 300


def test_tool_names_take_no_text_that_needs_escapes_or_signs() -> None:
    taken = {text for text in CORPUS.values() if find_name_fault(text) is None}
    assert all(re.fullmatch(r"[A-Za-z0-9_./:-]+", text) for text in taken)
    assert len(taken) < len(CORPUS) / 10


def test_no_page_lets_the_corpus_fire_or_hide(site: Site, witness: Page) -> None:
    groups = [*chunks()]
    records = site.act(lambda wiring: _submit_all(wiring, groups))
    for skip in range(0, len(groups), 50):
        check_page(witness, f"/?skip={skip}", CORPUS)
    check_page(witness, f"/runs/{records[0].run.id}/cancel", groups[0])
    for record, texts in zip(records, groups, strict=True):
        check_page(witness, place_of(record), texts)
        check_signs(witness, texts)
        check_page(witness, f"{place_of(record)}?answer=edit", texts)
    site.act(lambda wiring: _settle_all(wiring, records, groups))
    for record, texts in zip(records, groups, strict=True):
        check_page(witness, place_of(record), texts)
        check_page(witness, f"/runs/{record.run.id}", texts)
    for place in ("/decided", "/runs"):
        for skip in range(0, len(groups), 25):
            check_page(witness, f"{place}?skip={skip}", CORPUS)


def test_no_page_lets_an_address_fire(witness: Page, site: Site) -> None:
    """The texts stand in the address of a page that shows what was searched."""
    for texts in chunks():
        given = quote(join(texts)[:TITLE_CHARS])
        for place in (f"/decided?q={given}&agent={given}", f"/runs?agent={given}"):
            check_page(witness, place, {})


async def _submit_all(wiring: Wiring, groups: list[dict[str, str]]) -> list[SuspensionRecord]:
    return [await submit(wiring, texts) for texts in groups]


async def _settle_all(wiring: Wiring, records: list[SuspensionRecord], groups: list[dict[str, str]]) -> None:
    for number, (record, texts) in enumerate(zip(records, groups, strict=True)):
        await settle(wiring, record, texts, number)
