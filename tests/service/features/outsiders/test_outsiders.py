"""Somebody outside decides one item by a mailed link and a mailed code, and by nothing less."""

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from httpx import ASGITransport, AsyncClient, Response

from sayso import AsyncClient as Client
from sayso.client import outsiders
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from service.app import create_app
from service.channels.kinds import open_channels
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.edge.web.sessions import cookie_name
from service.features.control.drills import plant_drill
from tests.builders import approve, ask, make_pending, make_person, person
from tests.channels import Book
from tests.fakes.smtp import MailServer, html_of, links_of, text_of
from tests.service.worlds import World, read_store
from workers.notify.attempts import Gate
from workers.notify.notifier import Notifier

JANE = "jane@partner.example"
RULE = (JANE, "*@customer.example")
DRILLED = f"""
version: 1
default: request_approval
rules:
  - {{id: refunds, tool: refund, action: request_approval, terms: {{outsiders: [{JANE}], reviewers: [anna]}}}}
"""
DRILL = """
drills:
  - {id: false-refund, agent: shop, requested_by: bot, tool: refund, args: {order: A-7}, rule: refunds, signs: [None]}
"""
SAME = {"Sec-Fetch-Site": "same-origin"}
WRONG = "This code is not right"


@dataclass
class Outside:
    """A desk with one item that anna may decide, and the mails to people outside."""

    world: World
    mail: MailServer
    record: SuspensionRecord
    client: AsyncClient

    @property
    def wiring(self) -> Wiring:
        return self.world.wiring

    async def read(self) -> Item:
        return (await self.wiring.desk.suspensions.read(self.record.id)).record.items[0]

    async def invite(self, address: str = JANE, who: str = "anna", **fields: Any) -> Response:
        body = {"address": address, "digest": self.record.items[0].digest, **fields}
        place = f"/api/v1/suspensions/{self.record.id}/items/i1/invitations"
        async with self.world.client(who) as client:
            return await client.post(place, json=body)

    async def get_link(self, address: str = JANE, **fields: Any) -> str:
        """Invite somebody, deliver the mail, and return the path of its link."""
        answer = await self.invite(address, **fields)
        assert answer.status_code == 200, answer.text
        await self.deliver()
        (link,) = links_of(self.mail.to(address)[-1])
        return urlsplit(link).path

    async def deliver(self) -> None:
        channels, gate = open_channels(self.wiring.settings), Gate(self.wiring.attempts)
        notifier = Notifier(self.wiring, channels, Book({}), gate)
        await notifier.deliver_due()
        await notifier.finish()

    async def send(self, path: str, status: int = 200, **form: str) -> str:
        answer = await self.client.post(path, data=form, headers=SAME)
        assert answer.status_code == status, answer.text
        return answer.text

    def read_code(self, address: str = JANE) -> str:
        code = re.search(r"^\d{6}$", text_of(self.mail.to(address)[-1]), re.MULTILINE)
        assert code
        return code[0]

    async def prove(self, path: str) -> tuple[str, str]:
        """Have a code mailed and enter it; return the page of the item, and the proof in its forms."""
        await self.send(path, act="send")
        page = await self.send(path, act="enter", code=self.read_code())
        proof = re.search(r'name="proof" value="([0-9a-f]{64})"', page)
        assert proof, page
        return page, proof[1]


@pytest.fixture
async def outside(settings: Settings, mail: MailServer) -> AsyncIterator[Outside]:
    async with opened(settings, mail) as desk:
        yield desk


@asynccontextmanager
async def opened(settings: Settings, mail: MailServer, **terms: Any) -> AsyncIterator[Outside]:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        wiring: Wiring = app.state.process.wiring
        tokens = {name: await make_person(wiring, name) for name in ("anna", "ben")}
        world = World(app, wiring, tokens)
        stated = {"outsiders": RULE, "timeout_s": 86_400, "reviewers": ("anna",), **terms}
        record = await make_pending(wiring, ask(terms=RuleTerms(**stated)))
        async with world.client() as client:
            yield Outside(world, mail, record, client)


async def test_link_and_mailed_code_decide_once(outside: Outside, clean_store_url: str) -> None:
    path = await outside.get_link(note="Is this yours? <b>")
    (first,) = outside.mail.to(JANE)
    assert "anna asks for your decision" in str(first["Subject"])
    assert "Is this yours? <b>" in text_of(first)
    assert "Is this yours? &lt;b&gt;" in html_of(first)
    before = await read_store(clean_store_url)
    for method in ("GET", "HEAD"):
        answer = await outside.client.request(method, path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    page = (await outside.client.get(path)).text
    assert "Send me a code" in page
    assert 'content="noindex"' in page
    assert not {"refund", "anna", "A-1"} & {*re.findall(r"[\w-]+", page)}, (
        "nothing of the desk is shown before the code"
    )
    assert await read_store(clean_store_url) == before
    page, proof = await outside.prove(path)
    assert "refund" in page
    assert "anna asks you about a call" in page
    assert "ben" not in page
    assert "/items/" not in page
    answer = await outside.client.post(path, data={"act": "decide", "action": "approve", "proof": proof}, headers=SAME)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    item = await outside.read()
    assert item.outcome is not None
    assert (item.outcome.verdict, item.outcome.by.id) == ("approved", f"outsider:{JANE}")
    assert "You approved this." in (await outside.client.get(path)).text
    async with outside.world.client("anna") as anna:
        shown = (await anna.get(f"/api/v1/suspensions/{outside.record.id}")).json()["items"][0]["decisions"][0]
        events = (await anna.get(f"/api/v1/runs/{outside.record.run.id}/events")).json()["events"]
    assert shown["invited"] == {
        "id": item.invitations[0].id,
        "address": JANE,
        "by": "anna",
        "proven": ["link", "mailed code"],
    }
    assert [event["type"] for event in events][-6:] == [
        "outsider_invited",
        "card_sent",
        "outsider_code_sent",
        "outsider_proven",
        "decision_recorded",
        "decided",
    ]
    stored = repr(await read_store(clean_store_url))
    assert path.rpartition("/")[2] not in stored
    assert proof not in stored


async def test_denial_needs_a_reason_and_loses_no_input(outside: Outside) -> None:
    path = await outside.get_link()
    _, proof = await outside.prove(path)
    page = await outside.send(path, 422, act="decide", action="deny", proof=proof, reason=" ")
    assert "Write why you deny." in page
    assert proof in page
    await outside.send(path, 303, act="decide", action="deny", proof=proof, reason="Not ours.")
    outcome = (await outside.read()).outcome
    assert outcome is not None
    assert (outcome.verdict, outcome.message) == ("denied", "Not ours.")
    assert "You denied this." in (await outside.client.get(path)).text


async def test_guessing_codes_closes_the_invitation(outside: Outside) -> None:
    path = await outside.get_link()
    assert WRONG in await outside.send(path, 422, act="enter", code="000000"), "no code was mailed yet"
    await outside.send(path, act="send")
    code = outside.read_code()
    guesses = [f"{number:06}" for number in range(10) if f"{number:06}" != code][:5]
    for guess in guesses[:4]:
        assert WRONG in await outside.send(path, 422, act="enter", code=guess)
    assert "Too many wrong codes" in await outside.send(path, 422, act="enter", code=guesses[4])
    assert "Too many wrong codes" in await outside.send(path, 409, act="enter", code=code)
    assert "Ask anna for another invitation" in (await outside.client.get(path)).text
    assert (await outside.read()).outcome is None


async def test_code_is_mailed_once_a_minute(outside: Outside) -> None:
    path = await outside.get_link()
    await outside.send(path, act="send")
    assert "Wait a minute" in await outside.send(path, 429, act="send")
    assert len(outside.mail.to(JANE)) == 2
    outside.mail.refuse(503)
    other = await outside.invite("a@customer.example")
    assert other.status_code == 200


async def test_forged_links_are_answered_like_waiting_ones(outside: Outside) -> None:
    path = await outside.get_link()
    begin, _, token = path.rpartition("/")
    forged = [f"{begin}/{'0' * 64}", f"/outside/sus_x/i1/{token}", f"/outside/{outside.record.id}/i9/{token}"]
    real = (await outside.client.get(path)).text
    sent = await outside.send(path, act="send")
    wrong = await outside.send(path, 422, act="enter", code="x")

    def plain(page: str, place: str) -> str:
        return re.sub(r'data-now="\d+"', "", page.replace(place, ""))

    for place in forged:
        assert plain((await outside.client.get(place)).text, place) == plain(real, path)
        assert plain(await outside.send(place, act="send"), place) == plain(sent, path)
        assert plain(await outside.send(place, 422, act="enter", code="x"), place) == plain(wrong, path)
        await outside.send(place, 404, act="decide", action="approve", proof="0" * 64)
    assert len(outside.mail.to(JANE)) == 2


async def test_proof_is_needed_and_other_sites_are_refused(outside: Outside) -> None:
    path = await outside.get_link()
    _, proof = await outside.prove(path)
    for form in ({"act": "decide", "action": "approve"}, {"act": "decide", "action": "approve", "proof": "0" * 64}):
        await outside.send(path, 403, **form)
    await outside.send(path, 422, act="decide", action="always", proof=proof)
    await outside.send(path, 422, act="other")
    form = {"act": "decide", "action": "approve", "proof": proof}
    answer = await outside.client.post(path, data=form, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert (await outside.read()).outcome is None


async def test_ended_links_say_why_and_decide_nothing(outside: Outside) -> None:
    path = await outside.get_link()
    _, proof = await outside.prove(path)
    form = {"act": "decide", "action": "approve", "proof": proof}
    frozen = await outside.wiring.freezes.freeze("all", "odd", person("root"))
    assert "on hold" in (await outside.client.get(path)).text
    assert "on hold" in await outside.send(path, 409, **form)
    await outside.wiring.freezes.unfreeze(frozen.id, person("root"))
    (known,) = (await outside.read()).invitations
    async with outside.world.client("anna") as anna:
        place = f"/api/v1/suspensions/{outside.record.id}/items/i1/invitations"
        assert (await anna.delete(f"{place}/{known.id}")).json()["invitations"][0]["state"] == "revoked"
        assert (await anna.get(place)).json()["invitations"][0]["address"] == JANE
    assert "was revoked" in (await outside.client.get(path)).text
    assert "was revoked" in await outside.send(path, 409, **form)
    other = await outside.get_link("b@customer.example")
    await approve(outside.wiring, outside.record)
    assert "no longer needs your decision" in (await outside.client.get(other)).text
    assert "no longer needs your decision" in await outside.send(other, 409, act="send")


async def test_link_ends_with_the_account_of_who_invited(outside: Outside) -> None:
    path = await outside.get_link()
    _, proof = await outside.prove(path)
    await outside.wiring.reviewers.deactivate("anna")
    assert "was revoked" in (await outside.client.get(path)).text
    await outside.send(path, 409, act="decide", action="approve", proof=proof)
    assert (await outside.read()).outcome is None


async def test_only_allowed_addresses_are_invited_by_reviewers(outside: Outside) -> None:
    assert (await outside.invite(who="ben")).status_code == 403
    assert (await outside.invite("ben@partner.example")).status_code == 403
    assert (await outside.invite("jane@partner.example\r\nBcc: x@y.example")).status_code == 422
    assert (await outside.invite(digest="0" * 64)).status_code == 409
    assert (await outside.invite(expires_in_s=8 * 86_400)).status_code == 422
    contacts = outside.wiring.contacts
    code = (await contacts.create_code("ben", "mail")).code
    await contacts.redeem_code("mail", code, JANE)
    refused = await outside.invite(JANE.upper())
    assert (refused.status_code, "belongs to ben" in refused.text) == (409, True)
    assert (await outside.read()).invitations == ()


async def test_refused_invitation_keeps_what_was_typed(settings: Settings, outside: Outside) -> None:
    token, digest = outside.world.tokens["anna"], outside.record.items[0].digest
    csrf = "0" * 64 + (await outside.wiring.credentials.identify(token)).csrf
    sent = {"csrf": csrf, "part": "outside", "digest": digest, "note": "Is it <b>?", "expires": "14400"}
    place, cookie = f"/items/{outside.record.id}/i1", {"Cookie": f"{cookie_name(settings)}={token}"}

    async def send(address: str, status: int, nonce: str = "n") -> str:
        form = {**sent, "address": address, "nonce": nonce}
        answer = await outside.client.post(place, data=form, headers={**SAME, **cookie})
        assert answer.status_code == status, answer.text
        return answer.text

    for address, status, why in (("x@else.example", 403, "does not let x@else.example"), ("x", 422, "mail address")):
        page = await send(address, status)
        assert re.search(rf'id="outside-problem" role="alert">.*{why}', page), page
        assert f'type="email" value="{address}"' in page
        assert "Is it &lt;b&gt;?</textarea>" in page
        assert '<option value="14400" selected>' in page
    await send(JANE, 303)
    await outside.invite("a@customer.example")
    assert "is invited already" in await send(JANE, 409, "m")
    await approve(outside.wiring, outside.record)
    page = await send(JANE, 409, "m")
    assert "Your input was not used" in page
    assert "Is it &lt;b&gt;?</p>" in page
    assert [known.address for known in (await outside.read()).invitations] == [JANE, "a@customer.example"]


async def test_rule_without_outsiders_lets_nobody_be_asked(settings: Settings, mail: MailServer) -> None:
    async with opened(settings, mail, outsiders=()) as outside:
        assert (await outside.invite()).status_code == 403


async def test_secrets_are_masked_for_outsiders(settings: Settings, mail: MailServer) -> None:
    async with opened(settings, mail, secrets=("order",)) as outside:
        page, _ = await outside.prove(await outside.get_link())
        assert "Secret values are masked." in page
        assert str(outside.record.items[0].tool.args["order"]) not in page


async def test_client_invites_lists_and_revokes(outside: Outside) -> None:
    transport = ASGITransport(app=outside.world.app)
    async with Client("http://sayso.test", outside.world.tokens["anna"], transport=transport) as anna:
        item = (await anna.find(outside.record.id)).items[0]
        made = await anna.exchange(outsiders.invite(outside.record.id, item, JANE, "Is it right?", 3_600))
        (invited,) = made.invitations
        assert (invited.address, invited.note, invited.by, invited.state) == (JANE, "Is it right?", "anna", "open")
        assert await anna.exchange(outsiders.list_invitations(outside.record.id, "i1")) == made
        closed = await anna.exchange(outsiders.revoke_invitation(outside.record.id, "i1", invited.id))
        assert [known.state for known in closed.invitations] == ["revoked"]


async def test_evidence_and_history_say_who_approved(outside: Outside) -> None:
    path = await outside.get_link()
    _, proof = await outside.prove(path)
    await outside.send(path, 303, act="decide", action="approve", proof=proof)
    outside.world.tokens["root"] = await make_person(outside.wiring, "root", "admin")
    (known,) = (await outside.read()).invitations
    invited = {"id": known.id, "address": JANE, "by": "anna", "proven": ["link", "mailed code"]}
    said = f"outsider:{JANE} approved, invited by anna and proven by a mailed code"
    async with outside.world.client("root") as root:
        text = (await root.get("/api/v1/evidence", params={"run": outside.record.run.id})).json()["text"]
        exact = (await root.get("/api/v1/history/export")).json()
        table = (await root.get("/api/v1/history/export", params={"format": "csv"})).text
    lines = [json.loads(line) for line in text.splitlines()]
    (item,) = (line for line in lines if line["kind"] == "item")
    assert item["view"]["decisions"][0]["invited"] == invited
    assert said in item["html"]
    events = {line["type"]: line["hashed"] for line in lines if line["kind"] == "event"}
    assert JANE in events["outsider_invited"]
    assert json.loads(events["decision_recorded"])[3]["invited"] == invited
    assert json.loads(events["outsider_proven"])[3]["by"]["id"] == f"outsider:{JANE}"
    (row,) = csv.DictReader(io.StringIO(table, newline=""))
    (listed,) = exact["items"]
    assert (row["decided_by"], listed["decided_by"]) == (f"outsider:{JANE}",) * 2
    assert json.loads(row["invited"]) == listed["invited"] == [invited]


async def test_drill_takes_an_invitation_and_mails_nobody(settings: Settings, mail: MailServer, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(DRILLED)
    (tmp_path / "drills.yaml").write_text(DRILL)
    drilled = settings.model_copy(update={"policy": tmp_path / "rules.yaml", "drills": tmp_path / "drills.yaml"})
    async with opened(drilled, mail) as desk:
        outside = replace(desk, record=await plant_drill(desk.wiring, "false-refund", "anna", "root"))
        place = f"/items/{outside.record.id}/i1"
        headers = {"Cookie": f"{cookie_name(drilled)}={outside.world.tokens['anna']}"}
        assert 'id="outsider"' in (await outside.client.get(place, headers=headers)).text
        assert (await outside.invite()).status_code == 200
        await outside.deliver()
        (delivery,) = (await outside.read()).deliveries
        assert (delivery.state, delivery.references, mail.to(JANE)) == ("sent", {}, [])
        await approve(outside.wiring, outside.record)
        assert "Nobody outside got a mail about it." in (await outside.client.get(place, headers=headers)).text
