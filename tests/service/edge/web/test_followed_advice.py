"""Forms of pages whose refusal gives advice: each is sent again as the advice says, and succeeds."""

from html import unescape
from pathlib import Path
from typing import NamedTuple

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import CSRF, OWN, POLICY, settings_for, visit
from tests.service.edge.web.stories import asked, place_of
from tests.service.edge.web.test_freezes import make_admin

OPERATE, HOOKS, POSTS = (
    "service/features/operate/pages.py",
    "service/features/webhooks/api.py",
    "service/edge/web/sessions.py",
)
KEYS = PEOPLE = "service/features/people/admin_pages.py"
REPLAYS = SHADOWS = "service/features/whatif/pages.py"
DRAFTS = TRIALS = "service/features/whatif/trial_pages.py"
PAUSE = {"kind": "tool", "named": "refund", "reason": "Too many.", "unseen": "1", "confirm": "tool:refund"}
CANDIDATE = {"text": POLICY.replace("1000", "2000")}
RANGE = {"text": POLICY, "since": "2026-01-02", "until": "2026-01-09"}
ENDPOINT = {"url": "https://1.1.1.1/", "event:item.created": "1"}
TRY = {"tool": "refund", "args": '{"amount": 250}', "step": "2"}
ROTATE = {"act": "rotate", "overlap": "0"}
BOT = {"name": "bot", "kind": "agent"}
EDIT = "Open the page again and send it from there"
Fields = dict[str, str]


class Form(NamedTuple):
    """An advice, the place of a form, what its refused fields change, and the fields that follow the advice."""

    module: str
    advice: str
    place: str
    changed: Fields
    fields: Fields


FORMS = [
    Form(OPERATE, "Choose what to freeze", "/operate", {"named": "", "scope": ""}, PAUSE),
    Form(OPERATE, "Choose whether the name is that of a tool or of an agent", "/operate", {"kind": ""}, PAUSE),
    Form(OPERATE, "Enter the reason", "/operate", {"reason": " "}, PAUSE),
    Form(OPERATE, "Freeze each by its name", "/operate", {"named": "re*", "confirm": ""}, PAUSE),
    Form(HOOKS, "Choose at least one event", "/webhooks/endpoints", {"event:item.created": ""}, ENDPOINT),
    Form(KEYS, "Choose the kind of the key", "/keys", {"kind": ""}, BOT),
    Form(
        KEYS,
        "Choose how long the old key stays valid",
        "/keys/{key}",
        {"overlap": "1"},
        {"act": "rotate", "overlap": "0"},
    ),
    Form(KEYS, EDIT, "/keys/{key}", {"act": "none"}, {"act": "revoke"}),
    Form(PEOPLE, EDIT, "/people/anna", {"act": "none"}, {"act": "activate"}),
    Form(
        "service/features/people/account_pages.py",
        "Correct it and send the form again",
        "/me/preferences",
        {"time_zone": "Nowhere"},
        {"time_zone": "Europe/Berlin"},
    ),
    Form(REPLAYS, "Paste the rules to try", "/rules/-/replays", {"text": " "}, RANGE),
    Form(REPLAYS, "Enter both days as 2026-11-01", "/rules/-/replays", {"since": "2 January"}, RANGE),
    Form(DRAFTS, "Paste the rules to try", "/rules/-/draft", {"text": ""}, {"text": POLICY}),
    Form(
        SHADOWS,
        "Paste the rules of the candidate",
        "/rules/-/shadow",
        {"text": ""},
        CANDIDATE,
    ),
    Form(TRIALS, "Enter the name of a tool", "/rules/-/try", {"tool": " "}, TRY),
    Form(TRIALS, "Enter the step as a number from 1", "/rules/-/try", {"step": "two"}, TRY),
    Form(TRIALS, "Write them as", "/rules/-/try", {"args": "[250]"}, TRY),
]
ATTACHING = "service/features/discussions/api.py"
FOLLOWED = [
    *((form.module, form.advice) for form in FORMS),
    (ATTACHING, "Choose a file, then attach it"),
    (ATTACHING, "Send the form as multipart/form-data"),
    (HOOKS, EDIT),
    ("service/edge/web/items.py", "Choose again"),
    ("service/forms/controls.py", "Type one of these"),
    ("service/edge/web/items.py", "Choose one of the new deadlines"),
    ("service/features/people/account_pages.py", "Enter them again"),
    (HOOKS, "Choose the messages to send again"),
    ("service/features/control/api.py", "Choose one of the buttons on this page"),
    ("service/features/permissions/pages.py", "Choose one of the buttons on this page"),
    (POSTS, EDIT),
    (POSTS, "Open the page here and send it again"),
    (POSTS, "Send the form as"),
]
"""Advice that these tests follow, and those of accounts, changes, deadlines, endpoints, grants and second looks."""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.place}: {form.advice}")
async def test_form_that_follows_its_advice_succeeds(settings: Settings, form: Form) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        key, _ = await anna.wiring.api_keys.create("robot")
        place, sent = form.place.replace("{key}", key.id), {"csrf": CSRF, **form.fields}
        refused = await anna.client.post(place, data={**sent, **form.changed}, headers=OWN)
        assert 400 <= refused.status_code < 500, refused.text
        assert form.advice in unescape(refused.text)
        followed = await anna.client.post(place, data=sent, headers=OWN)
        assert followed.status_code in (200, 303), followed.text


@pytest.mark.parametrize(
    ("advice", "content", "headers"),
    [
        ("Send the form as application/x-www-form-urlencoded", "{}", {**OWN, "Content-Type": "application/json"}),
        ("Open the page here and send it again", "", {"Sec-Fetch-Site": "cross-site"}),
        (EDIT, "&tool=a&tool=b", OWN),
    ],
)
async def test_any_form_that_follows_its_advice_succeeds(
    settings: Settings, advice: str, content: str, headers: Fields
) -> None:
    async with visit(settings) as anna:
        encoded = {"Content-Type": "application/x-www-form-urlencoded", **headers}
        refused = await anna.client.post("/rules/-/try", content=f"csrf={CSRF}{content}", headers=encoded)
        assert 400 <= refused.status_code < 500, refused.text
        assert advice in unescape(refused.text)
        assert "refund" in await anna.send("/rules/-/try", 200, **TRY)


async def test_form_of_a_file_that_follows_its_advice_succeeds(settings: Settings) -> None:
    async with visit(settings) as anna:
        place, sent = f"{place_of(await asked(anna.wiring))}/attachments", {"csrf": CSRF}
        refused = await anna.send(place, 422)
        assert "Send the form as multipart/form-data" in refused
        empty = await anna.client.post(place, data=sent, files={"file": ("", b"")}, headers=OWN)
        assert "Choose a file, then attach it" in unescape(empty.text)
        followed = await anna.client.post(place, data=sent, files={"file": ("a.txt", b"A note.")}, headers=OWN)
        assert followed.status_code == 303, followed.text
