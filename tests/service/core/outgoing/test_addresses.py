"""Which addresses may be sent to."""

from ipaddress import ip_address

import pytest

from service.core.outgoing.connections import UnsafeUrl, check_url, is_allowed

PRIVATE = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.8.8.8",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a00:1::",
    "3fff::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fec0::1",
    "ff02::1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001::1", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("address", PRIVATE)
def test_is_allowed_rejects_private_addresses(address: str) -> None:
    assert not is_allowed(ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_is_allowed_accepts_public_addresses(address: str) -> None:
    assert is_allowed(ip_address(address))


def test_is_allowed_with_loopback_adds_loopback_only() -> None:
    reached = [address for address in PRIVATE if is_allowed(ip_address(address), loopback=True)]
    assert reached == ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"]


@pytest.mark.parametrize(
    "url",
    [
        "http://agent.example.com/x",
        "https://",
        "https:///x",
        "https://user@agent.example.com/",
        "https://user:pass@agent.example.com/",
        "https://@agent.example.com/",
        "https://agent.example.com/#part",
        "https://agent.example.com/#",
        "https://agent.example.com:99999/",
        "https://agent.example.com:x/",
        "https://[::1/",
        "https://agent.example.com/a b",
        "https://agent.example.com\\@10.0.0.1/",
        "https://ägent.example.com/",
        "https://agent.example.com/\n",
        "https://127.0.0.1/",
        "https://[::ffff:169.254.169.254]/latest",
        "https://[fe80::1%25eth0]/",
        "ftp://agent.example.com/",
        "https://agent.example.com/" + "a" * 2000,
    ],
)
def test_check_url_rejects_unsafe_urls(url: str) -> None:
    with pytest.raises(UnsafeUrl):
        check_url(url)


def test_check_url_accepts_safe_urls() -> None:
    for url in ("https://agent.example.com/aap?x=1", "https://8.8.8.8:8443/", "https://[2606:4700:4700::1111]/"):
        check_url(url)
    check_url("https://127.0.0.1:5000/", loopback=True)
