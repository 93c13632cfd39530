"""Pages of the rulebook's versions: read by everybody, attested and put back by admins."""

from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.test_freezes import make_admin
from tests.service.features.rulebook.test_operations_versions import NEW, OLD, THIRD, find, write
from tests.service.features.whatif.test_operations_replays import request

VERSIONS = "/rules/-/versions"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return settings_for(clean_store_url, tmp_path, OLD)


async def test_versions_are_listed_and_each_has_a_page(settings: Settings, tmp_path: Path) -> None:
    async with visit(settings) as anna:
        write(tmp_path, "policy", NEW)
        await anna.wiring.rules.compare("test")
        new, old = await find(anna.wiring, NEW), await find(anna.wiring, OLD)
        listed = await anna.read(VERSIONS)
        assert f'href="{VERSIONS}/{new.saved.version}"' in listed
        assert "The newest file takes force by itself." in listed
        page = await anna.read(f"{VERSIONS}/{new.saved.version}")
        for words in (
            new.saved.digest,
            "no-refunds: Calls of refund are denied.",
            f"Compared with version {old.saved.version}",
            "Rule no-refunds is new",
            "{id: no-refunds, tool: refund, action: deny}",
        ):
            assert words in page
        assert "Put it back in force" not in page
        assert "Attest" not in page.replace("Attested", ""), "only admins attest"
        await anna.read(f"{VERSIONS}/none", 404)
        assert f'href="{VERSIONS}/{new.saved.version}"' in await anna.read("/rules")


async def test_item_links_the_version_under_which_it_was_asked(clean_store_url: str, tmp_path: Path) -> None:
    async with visit(settings_for(clean_store_url, tmp_path)) as anna:
        record = await request(anna.wiring, "publish", note="x")
        version = anna.wiring.rules.policy().version
        assert f'href="{VERSIONS}/{version}"' in await anna.read(f"/items/{record.id}/i1")
        assert "in force" in await anna.read(f"{VERSIONS}/{version}")


async def test_admin_puts_a_version_back_in_force(settings: Settings, tmp_path: Path) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        write(tmp_path, "policy", NEW)
        await anna.wiring.rules.compare("test")
        new, old = [(await find(anna.wiring, text)).saved.version for text in (NEW, OLD)]
        place = f"{VERSIONS}/{old}"
        assert f'href="/rules/-/replays?version={old}"' in await anna.read(place)
        assert "default: allow" in await anna.read(f"/rules/-/replays?version={old}")
        await anna.read("/rules/-/replays?version=none", 404)
        assert "Put it back in force" in await anna.read(place)
        refused = await anna.send(place, 409, act="restore", replaces="another")
        assert f"Version {new} came into force meanwhile" in refused
        assert await anna.send(place, act="restore", replaces=new) == place
        assert "put back by" in await anna.read(place)
        assert "withdrawn" in await anna.read(f"{VERSIONS}/{new}")
        await anna.wiring.rules.compare("test")
        assert anna.wiring.rules.policy().version == old
        assert "an admin put an earlier version in its place" in await anna.read(VERSIONS)


async def test_admins_attest_what_they_have_read(clean_store_url: str, tmp_path: Path) -> None:
    settings = settings_for(clean_store_url, tmp_path).model_copy(update={"policy_attestations": 2})
    settings.policy.write_text(THIRD)
    async with visit(settings) as anna:
        state = await find(anna.wiring, THIRD)
        place = f"{VERSIONS}/{state.saved.version}"
        await anna.send(place, 403, act="attest", digest=state.saved.digest)
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "takes force when 2 people have attested" in await anna.read(VERSIONS)
        assert "0 of 2 people have attested its bytes" in await anna.read("/rules")
        refused = await anna.send(place, 409, act="attest", digest="0" * 64)
        assert "changed meanwhile. Read it again before you attest it" in refused
        await anna.send(place, act="attest", digest=state.saved.digest)
        page = await anna.read(place)
        assert "1 of 2" in page
        assert "Attest exactly these bytes" not in page, "one person counts once"
        await anna.wiring.rules.compare("test")
        assert "1 of 2 people have attested its bytes" in await anna.read(VERSIONS)
