"""Signing in on the command line with the code of an authenticator app."""

import asyncio
import os
from pathlib import Path

from sayso.core.clock import now_ms
from service.assembly import assemble
from service.core.settings import Settings
from tests.sayso.cli.programs import Programs
from tests.service.edge.web.sites import PASSWORD
from tests.service.features.codes.apps import make_carla, make_code, make_wrong_code
from tests.service.servers import served


def test_login_asks_for_the_code(settings: Settings, tmp_path: Path) -> None:
    async def prepare() -> str:
        async with assemble(settings) as wiring:
            return await make_carla(wiring)

    programs = Programs()
    with served(settings) as url:
        seed = asyncio.run(prepare())
        given = {"SAYSO_URL": url, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        words = ("login", "--name", "carla")
        wrong = programs.run(words, given, f"{PASSWORD}\n{make_wrong_code(seed)}\n")
        assert wrong.returncode == 1
        assert "This code is not right" in wrong.stderr
        opened = programs.run(words, given, f"{PASSWORD}\n{make_code(seed)}\n")
        assert opened.returncode == 0, opened.stderr
        assert "Code of your authenticator app" in opened.stdout + opened.stderr
        assert "as carla." in opened.stdout
        piped = programs.run((*words, "--password-stdin"), given, PASSWORD)
        assert (piped.returncode, "Add --code CODE." in piped.stderr) == (1, True)
        following = make_code(seed, now_ms() + 30_000)
        coded = programs.run((*words, "--password-stdin", "--code", following), given, PASSWORD)
        assert coded.returncode == 0, coded.stderr
    programs.close()
