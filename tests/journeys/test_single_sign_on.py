"""People sign in with npm's certified `oidc-provider`, decide, and are signed out by it, in a real browser."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest
import yaml
from playwright.sync_api import Page, expect

from demo.journeys import AGENT, connected
from demo.stacks import Stack
from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.browser import running_browser
from tests.journeys.stacks import PATIENCE_S, quick_stack
from tests.journeys.test_browser import MAILS, approve

FOLDER = CHECKOUT / "tests" / "journeys" / "provider"
PROVIDER = {
    "id": "company",
    "title": "Company",
    "client_id": "sayso",
    "client_secret": "env:COMPANY_SECRET",
    "scopes": ["openid", "profile", "groups"],
    "groups": {"desk-admins": {"roles": ["admin", "reviewer"], "groups": ["payments"]}},
    "default_roles": [],
}


def find_missing() -> str:
    """Return what is missing for this provider; empty for nothing."""
    if shutil.which("node") is None:
        return "Node.js is not installed"
    if not (FOLDER / "node_modules").is_dir():
        return "the provider is not installed; run `make journeys`"
    return ""


pytestmark = pytest.mark.skipif(bool(find_missing()), reason=find_missing())


@contextmanager
def running_provider(issuer: str, port: int, desk: str, output: IO[bytes]) -> Iterator[None]:
    environ = {"PATH": os.environ["PATH"], "ISSUER": issuer, "PORT": str(port), "DESK": desk}
    node = subprocess.Popen(["node", "server.mjs"], cwd=FOLDER, env=environ, stdout=output, stderr=output)
    try:
        assert wait_until(lambda: node.poll() is not None or is_ready(issuer), PATIENCE_S)
        yield
    finally:
        node.terminate()
        node.wait()


def is_ready(issuer: str) -> bool:
    try:
        return httpx.get(f"{issuer}/.well-known/openid-configuration").is_success
    except httpx.TransportError:
        return False


def find_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_person_signs_in_decides_and_is_signed_out_by_the_provider(tmp_path: Path) -> None:
    port = find_port()
    issuer = f"http://127.0.0.1:{port}"
    file = tmp_path / "sign-in.yaml"
    file.write_text(yaml.safe_dump({"providers": [{**PROVIDER, "issuer": issuer}], "local_accounts": "break_glass"}))
    environ = {
        "SAYSO_SIGN_IN": str(file),
        "SAYSO_INTERNAL_RECEIVERS": f"127.0.0.1:{port}",
        "COMPANY_SECRET": "a secret of the client",
    }
    with (
        quick_stack(tmp_path / "home", **environ) as stack,
        (tmp_path / "provider.log").open("wb") as output,
        running_provider(issuer, port, stack.url, output),
    ):
        asyncio.run(start(stack))
        with running_browser() as browser:
            expect.set_options(timeout=PATIENCE_S * 1000)
            stranger = browser.new_page()
            sign_in_there(stranger, stack.url, "dora")
            expect(stranger.get_by_role("alert")).to_contain_text("None of your groups of Company has a role here.")

            page = browser.new_context(viewport={"width": 1024, "height": 768}).new_page()
            sign_in_there(page, f"{stack.url}/runs", "carla")
            expect(page).to_have_url(f"{stack.url}/runs")
            page.goto(f"{stack.url}/me")
            expect(page.get_by_text("Signed in as carla.bruns")).to_be_visible()
            expect(page.get_by_label("Time zone").first).to_have_value("Europe/Berlin")
            page.goto(stack.url)
            page.get_by_role("button", name="Skip").click()
            approve(page)
            sign_out_there(page, stack, issuer)


async def start(stack: Stack) -> None:
    async with connected(stack) as (agent, _):
        await agent.start_run(AGENT, MAILS.request, "Two mails", key="start")


def sign_in_there(page: Page, place: str, name: str) -> None:
    """Open a page here, and sign in and consent at the provider."""
    page.goto(place)
    page.get_by_role("link", name="Sign in with Company").click()
    page.locator('input[name="login"]').fill(name)
    page.locator('input[name="password"]').fill("any")
    page.locator('button[type="submit"]').click()
    page.get_by_role("button", name="Continue").click()


def sign_out_there(page: Page, stack: Stack, issuer: str) -> None:
    """Sign out at the provider, which signs the person out here."""
    page.goto(f"{issuer}/session/end")
    page.get_by_role("button", name="Yes").click()
    page.wait_for_load_state()
    assert wait_until(lambda: page.goto(f"{stack.url}/me") is not None and "/sign-in" in page.url, PATIENCE_S)
