"""Scanners and previews that follow every link of a mail change nothing."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from sayso.core.records.deliveries import DeliveryState
from sayso.core.records.terms import RuleTerms
from service.app import create_app
from service.channels.kinds import open_channels
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import ask, make_pending, make_person
from tests.channels import Book
from tests.fakes.smtp import MailServer, links_of, serving_mail
from tests.service.features.phone.worlds import settings_with_channels
from tests.service.worlds import World, read_store
from workers.notify.attempts import Gate
from workers.notify.notifier import Notifier

BOOK = Book({"anna": ("anna@example.com",)})
AGENTS = (
    "Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.2) SafeLinks",
    "Proofpoint URL Defense",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 GoogleImageProxy",
    "",
)


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with serving_mail() as server:
        yield server


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, mail: MailServer) -> Settings:
    return settings_with_channels(clean_store_url, tmp_path, mail)


async def test_scanner_that_follows_every_link_changes_nothing(
    settings: Settings, mail: MailServer, clean_store_url: str
) -> None:
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        wiring: Wiring = app.state.process.wiring
        world = World(app, wiring, {"anna": await make_person(wiring, "anna")})
        record = await make_pending(wiring, ask(terms=RuleTerms(channels=("mail",), reviewers=("anna",))))
        notifier = Notifier(wiring, open_channels(settings), BOOK, Gate(wiring.attempts))
        await notifier.deliver_due()
        await notifier.finish()
        (one,) = (await wiring.desk.suspensions.read(record.id)).record.items[0].deliveries
        assert (one.state, len(mail.mails)) == (DeliveryState.SENT, 1)
        links = links_of(mail.mails[0])
        assert [urlsplit(link).path for link in links] == [f"/items/{record.id}/i1"]
        before = await read_store(clean_store_url)
        async with world.client() as scanner:
            for agent in AGENTS:
                for link in links:
                    for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE"):
                        answer = await scanner.request(
                            method,
                            urlsplit(link).path,
                            headers={"User-Agent": agent, "Sec-Fetch-Site": "none"},
                            data={"answer": "approve", "digest": record.items[0].digest} if method == "POST" else None,
                        )
                        assert not answer.is_success, (method, agent)
                        assert "A-1" not in answer.text
        assert await read_store(clean_store_url) == before
