"""Receivers on the operator's own network: those that are named, and no others, at look-up and at the connection."""

import socket
from ipaddress import ip_address
from typing import Any

import httpcore
import pytest
from starlette.responses import Response

from service.core.outgoing.connections import GuardedBackend, UnsafeUrl, check_url
from service.core.outgoing.http import Posts
from service.core.settings import Settings
from service.core.settings.receivers import read_receivers
from tests.receivers import SECRET, Receiver

NAMED = read_receivers(("n8n:5678", "hooks.corp.example", "10.1.0.0/16", "192.168.7.9:8080", "fd12::/16"))
LIVE = read_receivers(("localhost", "127.0.0.0/8", "::1"))


@pytest.mark.parametrize(
    "url",
    [
        "http://n8n:5678/hook",
        "https://n8n:5678/hook",
        "http://N8N.:5678/hook",
        "http://hooks.corp.example/x",
        "https://hooks.corp.example:9443/x",
        "http://10.1.2.3/x",
        "https://10.1.2.3:8443/x",
        "http://192.168.7.9:8080/x",
        "http://[fd12::5]/x",
        "https://[::ffff:10.1.2.3]/x",
    ],
)
def test_check_url_accepts_named_receivers(url: str) -> None:
    check_url(url, internal=NAMED)
    with pytest.raises(UnsafeUrl):
        check_url(url if "//10" in url or "ffff" in url else url.replace("https", "http"))


@pytest.mark.parametrize(
    "url",
    [
        "http://n8n/hook",
        "http://n8n:5679/hook",
        "http://other:5678/hook",
        "http://n8n.evil.example:5678/hook",
        "http://sub.hooks.corp.example/x",
        "http://10.2.0.1/x",
        "https://10.2.0.1/x",
        "http://192.168.7.9/x",
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/x",
        "http://anna@n8n:5678/x",
        "ftp://n8n:5678/x",
        "http://hooks.example.com/x",
    ],
)
def test_check_url_refuses_what_is_not_named(url: str) -> None:
    with pytest.raises(UnsafeUrl):
        check_url(url, internal=NAMED)


@pytest.mark.parametrize(
    ("host", "address", "port", "reached"),
    [
        ("n8n", "10.9.9.9", 5678, True),
        ("n8n", "10.9.9.9", 80, False),
        ("n8n", "127.0.0.1", 5678, False),
        ("n8n", "169.254.169.254", 5678, False),
        ("n8n", "169.254.1.1", 5678, False),
        ("n8n", "fd00:ec2::254", 5678, False),
        ("n8n", "0.0.0.0", 5678, False),
        ("evil.example", "10.1.2.3", 443, True),
        ("evil.example", "10.9.9.9", 443, False),
        ("evil.example", "192.168.7.9", 443, False),
    ],
)
def test_name_that_leads_elsewhere_is_refused(host: str, address: str, port: int, reached: bool) -> None:
    assert NAMED.reaches(host, ip_address(address), port) is reached


def test_metadata_address_needs_its_own_name() -> None:
    """A network around it is not enough: it hands out the credentials of the machine."""
    for around, exact in (("169.254.0.0/16", "169.254.169.254"), ("fd00::/8", "fd00:ec2::254")):
        address = ip_address(exact)
        assert not read_receivers((around,)).holds(address, 80)
        assert read_receivers((exact,)).holds(address, 80)


BAD = ["http://n8n", "n8n:0", "n8n:99999", "10.1.2.3/8", "0.0.0.0/0", "*", "a b", "n8n/x", "1"]


@pytest.mark.parametrize("word", BAD)
def test_setting_refuses_what_is_no_receiver(word: str) -> None:
    with pytest.raises(ValueError, match=r"'.*' (is no|names every|has no port)"):
        Settings(internal_receivers=(word,))


async def test_post_reaches_a_named_receiver_over_https(receiver: Receiver) -> None:
    receiver.say = lambda _: Response("", 204)
    posts = Posts(internal=LIVE)
    assert (await posts.post(receiver.url, [SECRET], "m", b"{}")).accepted
    await posts.aclose()


async def test_connection_that_reached_another_address_is_refused() -> None:
    """The name leads to a checked address, and the connection ends at another one."""

    class Rebound(httpcore.AnyIOBackend):
        async def connect_tcp(self, host: str, *args: Any, **options: Any) -> httpcore.AsyncNetworkStream:
            return await super().connect_tcp("127.0.0.2", *args, **options)

    backend = GuardedBackend(internal=read_receivers(("127.0.0.1", "::1")), sockets=Rebound())
    refused = pytest.raises(UnsafeUrl, match="SAYSO_INTERNAL_RECEIVERS")
    with socket.create_server(("127.0.0.2", 0)) as elsewhere, refused:
        await backend.connect_tcp("localhost", elsewhere.getsockname()[1], 5)
    backend.close()
