"""The page of the candidate in shadow: read by everybody, changed by admins, and never mistaken for live."""

from pathlib import Path

import pytest

from service.core.settings import Settings
from service.features.whatif.shadows import read_shadows
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.test_freezes import make_admin
from tests.service.features.rulebook.test_operations_versions import find
from tests.service.features.whatif.test_operations_replays import LIVE, WRONG, refund

SHADOW, VERSIONS = "/rules/-/shadow", "/rules/-/versions"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, LIVE)


async def test_everybody_reads_and_only_admins_change(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "No candidate is in shadow." in await anna.read(SHADOW)
        await anna.send(SHADOW, 403, act="begin", text=WRONG)
        assert f'href="{SHADOW}"' in await anna.read("/rules")
        assert f'href="{SHADOW}"' in await anna.read(VERSIONS)
        assert (await read_shadows(anna.wiring)).current is None


async def test_pasted_candidate_is_compared_ended_and_put_in_force(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "Paste the rules of the candidate." in await anna.send(SHADOW, 422, act="begin", text=" ")
        faulty = await anna.send(SHADOW, 422, act="begin", text="version: 1\nrules: [<b>]\n")
        assert "has faults" in faulty
        assert "rules: [&lt;b&gt;]" in faulty, "the text is kept, as text"
        assert await anna.send(SHADOW, act="begin", text=WRONG.replace("\n", "\r\n")) == SHADOW
        version = (await find(anna.wiring, WRONG)).saved.version
        await anna.wiring.rules.compare("test")
        record = await refund(anna.wiring, 900, "deny")
        for place in (f"/items/{record.id}/i1", f"/runs/{record.run.id}"):
            page = await anna.read(place)
            assert "candidate" not in page.lower(), "what a candidate said is no part of what happened"
        page = await anna.read(SHADOW)
        assert "In shadow now" in page
        assert "Put it in force" in page
        report = await anna.send(SHADOW, act="compare", version=version)
        await anna.app.state.rule_replays.wait(report.rpartition("/")[2], 60)
        page = await anna.read(report)
        for words in ("1 of 1 calls would have gone otherwise", "Candidate: allowed", "None of it took effect"):
            assert words in page
        assert await anna.send(SHADOW, act="end", version=version) == SHADOW
        assert "Earlier candidates" in await anna.read(SHADOW)
        assert "is not in shadow" in await anna.send(SHADOW, 409, act="end", version=version)
        place = f"{VERSIONS}/{version}"
        assert "Put it in shadow" in await anna.read(place)
        assert await anna.send(SHADOW, act="begin", version=version) == SHADOW
        in_force = (await find(anna.wiring, LIVE)).saved.version
        assert await anna.send(SHADOW, act="promote", version=version, replaces=in_force) == place
        assert "in force" in await anna.read(place)
        assert "No candidate is in shadow" not in await anna.read(SHADOW), "an admin sees the form instead"


async def test_unattested_candidate_shows_how_to_attest_it(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        await anna.send(SHADOW, act="begin", text=WRONG)
    async with visit(settings.model_copy(update={"policy_attestations": 2})) as anna:
        await make_admin(anna)
        page = await anna.read(SHADOW)
        assert "0 of 2" in page
        assert "Put it in force" not in page
