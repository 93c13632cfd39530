"""`sayso recover`: an operator on the server's machine lets in a person who lost their app and passkeys."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sayso.core.key_files import create_key_file
from sayso.errors import NotFound
from service.assembly import assemble
from service.core.settings import CHECKOUT, Settings
from service.core.store.connection.formats import check_format
from service.core.store.connection.macs import Macs
from service.features.passkeys.store import Passkeys
from service.recover import recover
from tests.service.edge.web.sites import PASSWORD, Visit, settings_for
from tests.service.features.codes.apps import add_app, make_carla
from tests.service.features.passkeys.people import add_passkey, read_log, read_name


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings of a desk whose host browsers know passkeys for."""
    create_key_file(tmp_path / "key")
    places = {"key_file": str(tmp_path / "key"), "public_url": "http://localhost:8321"}
    return settings_for(clean_store_url, tmp_path, **places)


async def test_app_and_passkeys_are_removed_and_sessions_end(anna: Visit, settings: Settings) -> None:
    await add_app(anna.wiring, "anna")
    await add_passkey(anna)
    assert await recover(settings, "anna") == (
        "The authenticator app and 1 passkeys of anna are removed, and all sessions ended. The password stays."
    )
    assert await anna.wiring.reviewers.list_sessions("anna") == []
    assert await anna.wiring.part(Passkeys).list_of("anna") == []
    acts = [(entry.act, entry.target) for entry in await read_log(anna) if entry.door == "setup"]
    assert {*acts} == {("app_removed", "anna"), ("passkey_removed", "anna"), ("sessions_ended", "anna")}


async def test_password_alone_signs_in_then(anna: Visit, settings: Settings) -> None:
    await make_carla(anna.wiring)
    for app in ("The", "No"):
        assert (await recover(settings, "carla")).startswith(f"{app} authenticator app and 0 passkeys of carla")
    assert (await anna.wiring.reviewers.sign_in("carla", PASSWORD)).token


async def test_unknown_name_changes_nothing(anna: Visit, settings: Settings) -> None:
    with pytest.raises(NotFound, match="Check the name and SAYSO_TENANT"):
        await recover(settings, "nobody")
    assert await read_name(anna) == "anna"
    assert "of anna are removed" in await recover(settings, "anna")


def test_command_recovers_with_the_settings_of_the_server(settings: Settings, tmp_path: Path) -> None:
    async def prepare() -> None:
        await check_format(settings.store_url, Macs(settings.key_file))
        async with assemble(settings) as wiring:
            await make_carla(wiring)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        given = {"SAYSO_REDIS_URL": settings.store_url, "SAYSO_KEY_FILE": str(settings.key_file)}
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **given}
        program = [sys.executable, "-m", "sayso", "recover", *words]
        return subprocess.run(program, cwd=CHECKOUT, env=environ, capture_output=True, text=True, check=False)

    asyncio.run(prepare())
    unknown = run("nobody")
    assert (unknown.returncode, "There is no person 'nobody'" in unknown.stderr) == (1, True), unknown.stderr
    done = run("carla")
    assert (done.returncode, done.stderr) == (0, "")
    assert "The authenticator app and 0 passkeys of carla are removed" in done.stdout
