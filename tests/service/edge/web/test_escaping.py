"""What agents write is shown to people who are signed in, so every page has to bear the worst of it."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.events import Event, EventType
from sayso.core.records.tools import ToolDefinition
from service.core.settings import Settings
from tests.service.edge.web.sites import Visit, visit
from tests.service.edge.web.stories import asked, begin, decide, finish, make_ask, pause

PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' autofocus onfocus=alert(1) x='",
    "</textarea><script>alert(1)</script>",
    "</title></style></pre><svg/onload=alert(1)>",
    "javascript:alert(1)//",
    "{{ 7*7 }} {% raw %} ${7*7} #{7*7}",
    "<!--<script>--><b>",
    "]]><![CDATA[<b>",
    "&lt;script&gt; &#x3c;b&#x3e; &amp;",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<base href=//evil.example><form action=//evil.example><button formaction=//evil.example>",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200b\u200d\ufeff \u00ad",
    "\0\x01\x1b[31m\x7f\x85",
    "a\r\nSet-Cookie: x=y\r\n\r\n<b>",
    "\U000e0041\U000e0042 \ufe0f\ufe0f \u3164",
    "Z̴̡͓̲̜̟̎a̷͕̅l̷̰̆g̴̣̏o̵̖͝ 東京 مرحبا 👩‍👩‍👧",
    "x" * 5000,
    "word " * 500,
    "\n" * 50,
    "   ",
)
KNOWN_TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title link script body a header div svg path nav span form input button main footer p h1 h2 h3 "
        "section table thead tbody tr th td details summary pre code strong ol ul li dl dt dd time label textarea "
        "select option datalist blockquote noscript kbd fieldset legend aside del ins tfoot em",
    )
)
OWN_SCRIPT = re.compile(
    r"/static/(arm|batch|call|copy|decision|insights|list|operate|page|push|rows|settle|times|words"
    r"|vendor/uPlot\.iife\.min)\.js\?v=[0-9a-f]+"
)


class Markup(HTMLParser):
    """Every tag and attribute of a page, and all of its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def check(page: str) -> Markup:
    """Check that the page has no markup from the text."""
    markup = Markup(page)
    for tag, attributes in markup.tags:
        assert tag in KNOWN_TAGS, tag
        assert not any(name.startswith("on") or name in ("style", "srcdoc", "formaction") for name in attributes)
        for name in ("src", "href", "action"):
            if value := attributes.get(name):
                assert re.match(r"/(?!/)|\?|#", value), value
        if tag == "script":
            assert OWN_SCRIPT.fullmatch(attributes["src"] or "")
    assert page.count("<script") == sum(1 for tag, _ in markup.tags if tag == "script") <= 15
    seen = re.sub(r'<textarea.*?</textarea>|value="[^"]*"', "", page, flags=re.DOTALL)
    for hidden in "\u202e\u202c\u2066\u2069\u200b\ufeff\x1b\x7f\x85\0":
        assert hidden not in seen, f"U+{ord(hidden):04X} is not shown"
    return markup


async def story(anna: Visit, text: str) -> tuple[str, str]:
    """A run that has the text wherever an agent or a rule can put one."""
    name = text.replace("\0", "")[:200] or "x"
    definition = ToolDefinition(
        name=name,
        description=text,
        parameters={
            "type": "object",
            "properties": {
                "plain": {"type": "string", "description": text, "title": text},
                text: {"type": "string"},
                "choice": {"enum": [text, "other"]},
            },
            "required": ["plain"],
        },
    )
    await anna.wiring.runs.save_definitions([definition])
    args: dict[str, Any] = {"plain": text, text: text, "deep": [{text: [text]}], "choice": text}
    prompt = {"title": text[:200], "body": text, "metadata": {text: text}}
    ask = make_ask(
        definition,
        args,
        reason=text[:2000],
        prompt=prompt,
        rule_id=text[:100],
        terms={"reviewers": [text[:60], "anna"], "fallback": {"action": "value", "value": text}},
    )
    again = ask.model_copy(update={"index": 1})
    record = await asked(anna.wiring, ask, again, words=text, title=text[:500], agent=text[:60] or "a")
    return record.id, record.run.id


@pytest.mark.parametrize("text", PAYLOADS, ids=lambda text: repr(text[:24]))
async def test_agent_texts_are_shown_escaped(settings: Settings, text: str) -> None:
    async with visit(settings) as anna:
        suspension_id, run_id = await story(anna, text)
        place = f"/items/{suspension_id}/i1"
        open_page = check(await anna.read(place))
        if text.isprintable():
            assert text in open_page.text
        for other in ("/", f"/runs/{run_id}", f"/runs/{run_id}/cancel", "/runs"):
            check(await anna.read(other))
        digest = (await anna.wiring.desk.suspensions.read(suspension_id)).record.items[0].digest
        fields = {
            "answer": "edit",
            "digest": digest,
            "f0": text,
            "f1": text,
            "f2": "nonsense",
            "f3": text,
            "message": text,
        }
        check(await anna.send(place, 422, **fields))
        await anna.send(place, answer="deny", digest=digest, message=text[:1000])
        check(await anna.read(place))
        found = await anna.wiring.desk.suspensions.read(suspension_id)
        assert found.record is not None
        await decide(anna.wiring, found.record, "approve", name="anna", item_id="i2", args={"plain": text, "n": text})
        await finish(anna.wiring, found.record, {text: text})
        for other in (place, f"/items/{suspension_id}/i2", "/history", f"/runs/{run_id}"):
            check(await anna.read(other))


@pytest.mark.parametrize("text", PAYLOADS[:8], ids=lambda text: repr(text[:24]))
async def test_texts_in_urls_are_shown_escaped(settings: Settings, text: str) -> None:
    async with visit(settings) as anna:
        for place, name in (
            ("/", "q"),
            ("/history", "q"),
            ("/history", "agent"),
            ("/runs", "agent"),
            ("/", "skip"),
        ):
            check((await anna.client.get(place, params={name: text})).text)
        for place in ("/items/x/y", "/runs/x", "/x"):
            check((await anna.client.get(place.replace("x", "%3Cscript%3E%22%27%E2%80%AE"))).text)


async def test_deep_and_wide_arguments_are_shown_completely(settings: Settings) -> None:
    deep: Any = "the deepest leaf"
    for _ in range(28):
        deep = {"down": [deep]} if isinstance(deep, str) else {"down": deep}
    wide: JsonObject = {f"name{place}": f"value{place}" for place in range(3000)}
    async with visit(settings) as anna:
        definition = ToolDefinition(name="wide")
        record = await asked(anna.wiring, make_ask(definition, {"deep": deep, "wide": wide}))
        page = check(await anna.read(f"/items/{record.id}/i1"))
        assert page.text.count("the deepest leaf") == 3, "read, as a tree and as JSON"
        edit = check(await anna.read(f"/items/{record.id}/i1?answer=edit"))
        assert edit.text.count("the deepest leaf") == 1, "in the form"
        assert "value2999" in page.text
        inbox = check(await anna.read("/"))
        assert re.search(r"\+ \d+ values", inbox.text), "what the card leaves out is counted"


async def test_unknown_event_is_shown(settings: Settings) -> None:
    async with visit(settings) as anna:
        warning = Event(type=EventType.WARNING, data={"message": "<b>mind</b> \u202ethis"})
        record = await pause(anna.wiring, await begin(anna.wiring), [make_ask()], others=[warning])
        page = check(await anna.read(f"/items/{record.id}/i1"))
        assert "<b>mind</b>" in page.text
