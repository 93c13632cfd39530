"""Which URLs are this machine's, and which may be a link."""

import pytest

from sayso.core.urls import is_loopback, is_plain_https


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "127.0.0.1.example.com", "10.0.0.1", "localhost.example.com", "0.0.0.0", "::2"])
def test_other_hosts_are_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "url", ["https://a.example", "https://a.example:8443/x?y=1#z", "https://xn--caf-dma.example/%20"]
)
def test_plain_https_urls(url: str) -> None:
    assert is_plain_https(url)


@pytest.mark.parametrize(
    "url",
    ["", "http://a.example", "https://[::1]/", "https://[::1", "https://a.example:x/", "https://a\nb/", "HTTPS:a"],
)
def test_other_urls_are_not_plain(url: str) -> None:
    assert not is_plain_https(url)
