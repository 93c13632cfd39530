"""Files and receivers of the operator: YAML files read whole or not at all, their secrets, and internal receivers."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, SecretStr, ValidationError, ValidationInfo

from sayso.core.policy.files.yaml_documents import read_document
from sayso.errors import InvalidInput

_HOST = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_PORT = re.compile(r"(.+):([0-9]{1,5})")
_METADATA = frozenset(map(ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254")))
"""Addresses at which clouds hand out the credentials of a machine without a question."""

IpAddress = IPv4Address | IPv6Address


@dataclass(frozen=True)
class InternalReceivers:
    """Hosts by name, and networks; each with one port, or None for every port."""

    hosts: tuple[tuple[str, int | None], ...] = ()
    networks: tuple[tuple[IPv4Network | IPv6Network, int | None], ...] = ()

    def names(self, host: str, port: int) -> bool:
        """Return whether a host is named, or is an address in a named network."""
        if (address := read_address(host)) is not None:
            return self.holds(address, port)
        return any(name == host.lower().removesuffix(".") and known in (None, port) for name, known in self.hosts)

    def holds(self, address: IpAddress, port: int) -> bool:
        """Return whether an address lies in a named network. One that hands out credentials must be named itself."""
        for network, known in self.networks:
            exact = network.num_addresses == 1
            if address in network and known in (None, port) and (exact or address not in _METADATA):
                return True
        return False

    def reaches(self, host: str, address: IpAddress, port: int) -> bool:
        """Return whether a host may be reached at this address.

        A named host has addresses of private networks. This machine, its links and metadata are none of them: they are
        named by address.
        """
        if self.holds(address, port):
            return True
        mine = address.is_loopback or address.is_link_local or address.is_multicast or address.is_unspecified
        return not mine and address not in _METADATA and read_address(host) is None and self.names(host, port)


NO_RECEIVERS = InternalReceivers()


def read_receivers(words: tuple[str, ...]) -> InternalReceivers:
    """Return the receivers of a setting such as `n8n:5678,10.0.0.0/8`; raises `ValueError`."""
    hosts: list[tuple[str, int | None]] = []
    networks: list[tuple[IPv4Network | IPv6Network, int | None]] = []
    for word in words:
        name, port = _split(word)
        network = _read_network(name)
        if network is not None:
            if not network.prefixlen:
                raise ValueError(f"'{word}' names every address; name the networks of the receivers")
            networks.append((network, port))
        elif _HOST.fullmatch(name) and re.search("[a-z]", name):
            hosts.append((name, port))
        else:
            raise ValueError(f"'{word}' is no receiver; write n8n, n8n:5678, 10.1.2.3:8080 or 10.0.0.0/8")
    return InternalReceivers(tuple(hosts), tuple(networks))


def read_address(host: str) -> IpAddress | None:
    """Return the address that a text is; None for a name. One of version 4 may be mapped into version 6."""
    try:
        address = ip_address(host)
    except ValueError:
        return None
    return unmap(address)


def unmap(address: IpAddress) -> IpAddress:
    """Return the address of version 4 behind a mapped one."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _split(word: str) -> tuple[str, int | None]:
    name = word.lower()
    bracketed = re.fullmatch(r"\[([0-9a-f:.]+)\](?::([0-9]{1,5}))?", name)
    match = bracketed or (_PORT.fullmatch(name) if name.count(":") == 1 else None)
    if match is None:
        return name.removesuffix("."), None
    port = int(match[2]) if match[2] else None
    if port is not None and not 0 < port < 65_536:
        raise ValueError(f"'{word}' has no port of 1 to 65535")
    return match[1].removesuffix("."), port


def _read_network(name: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(name)
    except ValueError:
        if "/" in name:
            raise ValueError(f"'{name}' is no network; write it without host bits, such as 10.1.0.0/16") from None
        return None


def _resolve_secret(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str) or not value.startswith("env:"):
        return value
    name = value.removeprefix("env:")
    environ: Mapping[str, str] = (info.context or {}).get("environ", os.environ)
    if not environ.get(name):
        raise ValueError(f"the environment has no variable {name}; set it, or write the secret into the file")
    return environ[name]


Secret = Annotated[SecretStr, BeforeValidator(_resolve_secret)]
"""A secret: its text, or `env:NAME`."""


Plan = TypeVar("Plan", bound=BaseModel)


def read_plan(path: Path | None, plan: type[Plan], setting: str, fault: type[InvalidInput]) -> Plan:
    """Return the content of a file, or the defaults without a file; raises `fault` with all faults."""
    if path is None:
        return plan()
    try:
        document = read_document(path.read_bytes(), path.name)
    except OSError as error:
        raise fault(f"{path} cannot be read: {error.strerror}. Correct {setting}.") from error
    try:
        if not document.problems:
            return plan.model_validate(document.content or {})
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            field = ".".join(map(str, problem["loc"]))
            words = problem["msg"].removeprefix("Value error, ")
            document.report(problem["loc"], f"{field}: {words}" if field else words)
    raise fault("\n".join(map(str, sorted(document.problems))))
