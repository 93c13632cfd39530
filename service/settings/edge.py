"""Settings of trusted proxies and allowed hosts."""

import re
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Annotated

from pydantic import BeforeValidator, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

_HOST = re.compile(r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*")
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})


def _split(value: object) -> object:
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value


SPLIT = BeforeValidator(_split)
Words = Annotated[tuple[str, ...], NoDecode, SPLIT]  # a setting written as words with commas between them


class EdgeSettings(BaseSettings):
    """Trusted proxies and allowed hosts."""

    model_config = SettingsConfigDict(use_attribute_docstrings=True)

    trusted_proxies: Words = ()
    """Addresses and networks of reverse proxies, such as `10.0.0.5,10.1.0.0/16`. Only their `X-Forwarded-For` and
    `X-Forwarded-Proto` count. Empty: none count."""
    allowed_hosts: Words = ()
    """Hosts beside that of `SAYSO_PUBLIC_URL` under which people may sign in and open pages, with commas between them.
    In the `local` environment this machine's own names are allowed too."""

    @field_validator("trusted_proxies", mode="after")
    @classmethod
    def _check_proxies(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                network = ip_network(proxy)
            except ValueError:
                raise ValueError(f"'{proxy}' is not an address or network; write 10.0.0.5 or 10.1.0.0/16") from None
            if not network.prefixlen:
                raise ValueError(f"'{proxy}' lets every client choose its address; name the proxies only")
        return proxies

    @field_validator("allowed_hosts", mode="after")
    @classmethod
    def _check_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        lowered = tuple(host.lower() for host in hosts)
        for host in lowered:
            if not _HOST.fullmatch(host):
                raise ValueError(
                    f"'{host}' is not a host; write a name such as desk.example.com, without port or scheme"
                )
        return lowered


def network_of(address: str) -> str:
    """Return the key by which limits count an address: the IPv4 address, or the /64 network of an IPv6 client."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv6Address):
        return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))
    return str(ip)
