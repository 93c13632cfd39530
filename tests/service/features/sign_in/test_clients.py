"""What a provider costs: slow ones are left after a bound, keys are looked up seldom."""

import asyncio

import pytest

from sayso.errors import SaysoError, Unavailable
from service.core.auth.providers import Provider
from service.core.outgoing.http import Posts
from service.core.settings.receivers import read_receivers
from service.features.sign_in.clients import ProviderClient
from service.features.sign_in.tokens import Header
from tests.fakes.provider import CLIENT_ID, FakeProvider


@pytest.fixture
def posts(provider: FakeProvider) -> Posts:
    return Posts(internal=read_receivers((provider.url.removeprefix("http://"),)))


def make_client(provider: FakeProvider, posts: Posts, answer_s: float = 8.0) -> ProviderClient:
    row = Provider(id="company", title="Company", issuer=provider.url, client_id=CLIENT_ID)
    return ProviderClient(row, posts, answer_s)


async def test_slow_provider_is_left_and_not_asked_again_at_once(posts: Posts) -> None:
    async def stay_silent(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    silent = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    host = ":".join(map(str, silent.sockets[0].getsockname()[:2]))
    slow = FakeProvider(url=f"http://{host}")
    client = make_client(slow, Posts(internal=read_receivers((host,))), answer_s=0.2)
    with pytest.raises(Unavailable, match=r"Company cannot be used now: no answer within 0.1 s"):
        await client.read_metadata()
    with pytest.raises(Unavailable, match="could not be reached a moment ago"):
        await client.read_metadata()
    silent.close()


async def test_unreachable_provider_is_unavailable(provider: FakeProvider) -> None:
    provider.url = "http://127.0.0.1:9"
    client = make_client(provider, Posts(internal=read_receivers(("127.0.0.1:9",))))
    with pytest.raises(Unavailable, match="the connection failed"):
        await client.read_metadata()


async def test_many_sign_ins_at_once_read_metadata_and_keys_once(provider: FakeProvider, posts: Posts) -> None:
    client = make_client(provider, posts)
    keys = await asyncio.gather(*(client.find_key(Header("RS256", "k1")) for _ in range(50)))
    assert len(keys) == 50
    assert provider.asked == ["/.well-known/openid-configuration", "/jwks"]


async def test_unknown_keys_at_once_are_looked_up_once(provider: FakeProvider, posts: Posts) -> None:
    client = make_client(provider, posts)
    headers = [Header("RS256", f"unknown-{number}") for number in range(50)]
    results = await asyncio.gather(*map(client.find_key, headers), return_exceptions=True)
    assert all(isinstance(result, SaysoError) for result in results)
    assert provider.asked.count("/jwks") == 1
