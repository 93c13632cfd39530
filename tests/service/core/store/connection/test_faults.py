"""Tests of the sentences about a store that does not answer."""

import socket
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import BusyLoadingError

from sayso.errors import Unavailable
from service.core.settings.stores import hide_password
from service.core.store.connection.connecting import await_store, describe_fault


def unused_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:secret@db:6379/1", "redis://db:6379/1"),
        ("redis://db:6379/1", "redis://db:6379/1"),
        ("unix:///home/store.sock?db=0", "unix:///home/store.sock?db=0"),
        ("unix:///home/store.sock?db=0&password=secret", "unix:///home/store.sock?db=0"),
        ("redis+sentinel://u:p@a:1,b:2/desk?sentinel_password=secret", "redis+sentinel://a:1,b:2/desk"),
    ],
)
def test_hide_password_omits_every_password(url: str, shown: str) -> None:
    assert hide_password(url) == shown


async def test_await_store_names_address_and_cause_when_nothing_listens() -> None:
    port = unused_port()
    with pytest.raises(Unavailable, match=f"redis://127.0.0.1:{port}/0 .* nothing listens there") as caught:
        await await_store(f"redis://:hunter2@127.0.0.1:{port}/0", wait_s=0)
    assert "hunter2" not in caught.value.message


async def test_await_store_names_the_cause_when_the_socket_is_missing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="there is no such socket"):
        await await_store(f"unix://{tmp_path}/absent.sock?db=0", wait_s=0)


async def test_await_store_does_not_wait_after_a_wrong_password(clean_store_url: str) -> None:
    with Redis.from_url(clean_store_url) as redis:
        redis.config_set("requirepass", "the right one")
        try:
            with pytest.raises(Unavailable, match="refuses the user or the password"):
                await await_store(f"{clean_store_url}&password=wrong", wait_s=3_600)
        finally:
            redis.config_set("requirepass", "")


async def test_await_store_returns_when_the_store_answers(clean_store_url: str) -> None:
    await await_store(clean_store_url, wait_s=0)


def test_describe_fault_quotes_any_other_cause() -> None:
    message = describe_fault("redis://db:6379/0", BusyLoadingError("it is loading its data."))
    assert message == "The store at redis://db:6379/0 does not answer: it is loading its data."
