"""The hostile corpus in a real browser: nothing fires, and every hidden or look-alike character has a sign."""

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.suspensions import RunRef, SuspensionRecord
from sayso.core.records.tools import ToolDefinition, find_name_fault
from service.core.store.runs.external_events import ExternalEvent, ExternalEvents
from service.core.wiring import Wiring
from service.features.discussions.discussing import LONGEST_NAME, add_comment, attach
from tests.builders import answer_question, person
from tests.hostile import CORPUS, EMOJI, HIDDEN, LOOKALIKES
from tests.service.edge.web.sites import Site
from tests.service.edge.web.stories import STATE, asked, decide, finish, make_ask, pause, place_of

END = "~"
"""Stands behind every text in a list of texts, so that a sign at the end of a text is seen to be missing."""

TITLE_CHARS = 200
REASON_CHARS = 2000
HIDDEN_CATEGORIES = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs")
NAMED = frozenset(name.split(" ")[-1] for name in HIDDEN)

WATCH = """
document.addEventListener("securitypolicyviolation", (event) => console.error(`CSP: ${event.violatedDirective}`));
"""
READ = """
() => {
    const texts = [], named = new Set(); // a page of signs has the same names thousands of times
    const walker = document.createTreeWalker(document.documentElement, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        if (!walker.currentNode.parentElement.closest("textarea, script")) texts.push(walker.currentNode.data);
    }
    for (const node of document.querySelectorAll("*")) {
        for (const { name, value } of node.attributes) {
            if (!["value", "href", "action", "data-date"].includes(name)) named.add(value);
        }
    }
    return [texts.join(""), [...named]];
}
"""
INSERTED = """
() => [...document.querySelectorAll("main script, main style, main base, iframe, object")].filter((node) => {
    const item = new RegExp(`^${origin}/items/[^/]+/i[0-9]+[?]quiet=1$`);
    return !node.matches(".pane > iframe[title=Item]:not([srcdoc])") || !item.test(node.src);
}).length
"""
"""How many elements the texts could have made. The one frame of the page is that of the item beside the inbox."""

ROWS = """
() => [...document.querySelectorAll(".what table.pairs tr")].slice(1).map((row) => [
    row.querySelector("th").textContent.slice(row.querySelector(".titled")?.textContent.length).trim(),
    [...row.querySelectorAll("td .sign")].map((sign) => `${sign.textContent} ${sign.title}`).join(" "),
    row.querySelector("td").textContent,
])
"""


def chunks(most: int) -> Iterator[dict[str, str]]:
    """Yield all texts in groups of at most so many characters; longer ones come alone."""
    chunk: dict[str, str] = {}
    for name, text in CORPUS.items():
        if chunk and len(join({**chunk, name: text})) > most:
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
    ask = make_ask(definition, args, reason=joined[:REASON_CHARS], prompt=prompt, subagent=joined)
    run_id = new_id("run")
    run = RunRef(id=run_id, agent="bot", owner="demo", thread_id=run_id, title=joined, claimed={joined: joined})
    begun = (await wiring.desk.start(run, STATE)).record
    record = await pause(wiring, begun, [ask, ask.model_copy(update={"index": 1})], words=joined)
    await report(wiring, run_id, joined)
    agent = Actor(id="demo", kind=ActorKind.AGENT)
    await attach(wiring, record.id, "i1", joined[:LONGEST_NAME], _clean(joined), agent)
    await add_comment(wiring, record.id, "i1", joined[:REASON_CHARS], "ben", None)
    await wiring.desk.ask_requester(record.id, "i1", joined[:REASON_CHARS], person("ben"))
    return await answer_question(wiring, record, joined[:REASON_CHARS])


def _clean(text: str) -> bytes:
    """Return a text without the characters that no attached text has."""
    return re.sub("[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\ud800-\udfff]", "", text).encode()


async def report(wiring: Wiring, run_id: str, text: str) -> None:
    """Report events of the agent with the text."""
    events: list[JsonObject] = [
        {"type": "message", "who": text, "data": {"text": text, text: text}},
        {"type": text[:100] or "x", "data": {text: text}},
    ]
    numbered = [ExternalEvent(seq, None, event) for seq, event in enumerate(events, start=1)]
    await wiring.part(ExternalEvents).add(run_id, "agent", "sayso", numbered)


async def submit_titles(wiring: Wiring, texts: dict[str, str]) -> None:
    """Suspend a run for each title: one title holds only few of the texts."""
    titles = [join(chunk)[:TITLE_CHARS] for chunk in chunks(TITLE_CHARS) if not chunk.keys().isdisjoint(texts)]
    asks = [make_ask(index=index, prompt={"title": title}) for index, title in enumerate(titles)]
    await asked(wiring, *asks)


async def settle(wiring: Wiring, texts: dict[str, str], record: SuspensionRecord) -> list[str]:
    """Deny a call, let others succeed with other arguments and fail, and cancel a run; return the pages to see."""
    joined = join(texts)
    message = joined[:REASON_CHARS]
    denied = await decide(wiring, record, "deny", message=message)
    both = await decide(wiring, denied, "approve", item_id="i2", args={**texts, joined: joined}, message=message)
    await finish(wiring, both, {joined: [*texts.values()]})
    failed = await decide(wiring, await asked(wiring, title=joined), "approve", message=message)
    await finish(wiring, failed, error=joined)
    cancelled = await asked(wiring)
    await wiring.desk.cancel(cancelled.run.id, Actor(id="demo", kind=ActorKind.AGENT), message)
    ids = [one.run.id for one in (record, failed, cancelled)]
    return [place_of(record), place_of(record, "i2"), place_of(failed), *(f"/runs/{run_id}" for run_id in ids)]


@pytest.fixture
def witness(open_as: Callable[..., Page], site: Site) -> Page:
    """A reviewer's page, on which no dialog opens, no policy is violated and no other host is asked."""
    page = open_as("/me")
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
    assert page.evaluate(INSERTED) == 0, place


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
    assert page.locator("ul.flags .severe").count() >= any(map(list_needed_signs, texts))


def test_corpus_has_300_texts_that_differ() -> None:
    assert len(set(CORPUS.values())) >= 300


def test_tool_names_take_no_text_that_needs_escapes_or_signs() -> None:
    taken = {text for text in CORPUS.values() if find_name_fault(text) is None}
    assert all(re.fullmatch(r"[A-Za-z0-9_./:-]+", text) for text in taken)
    assert len(taken) < len(CORPUS) / 10


@pytest.mark.timeout(400)  # it opens some 70 pages of up to 4 MB, nearly all of it signs; 120 s on a busy machine
def test_no_page_lets_the_corpus_fire_or_hide(site: Site, witness: Page) -> None:
    for texts in chunks(REASON_CHARS):
        record = site.act(partial(submit, texts=texts))
        check_page(witness, f"/runs/{record.run.id}/cancel", texts)
        check_page(witness, f"{place_of(record)}?answer=edit", texts)
        check_page(witness, place_of(record), texts)
        check_signs(witness, texts)
        check_page(witness, "/", texts)
        for place in site.act(partial(settle, texts=texts, record=record)):
            check_page(witness, place, texts)
    site.act(partial(submit_titles, texts=CORPUS))
    for place in ("/", "/history", "/runs"):
        check_page(witness, place, CORPUS)


def test_no_page_lets_an_address_fire(witness: Page) -> None:
    """The texts stand in the address of a page that shows what was searched."""
    for texts in chunks(TITLE_CHARS):
        given = quote(join(texts)[:TITLE_CHARS])
        check_page(witness, f"/history?q={given}&agent={given}&by={given}&tool={given}", {})
