"""The example configurations of proxies with the addresses of a test, and how each proxy checks and runs one."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.distribution.tools import DISTRIBUTION, find_tool
from tests.receivers import make_certificate

UPSTREAMS = ("10.0.0.11:8321", "10.0.0.12:8321")
_NGINX = "daemon off;\npid {0}/pid;\nerror_log {0}/errors;\nevents {{}}\nhttp {{\naccess_log off;\n{1}\n{2}\n}}\n"
_NGINX_PLACES = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
_CADDY = "{{\n admin off\n auto_https disable_redirects\n}}\n{}"


@dataclass(frozen=True)
class Proxy:
    """A proxy: its example, the options that check it and that run it, and what a test puts in place of what."""

    name: str
    example: str
    check: tuple[str, ...]
    serve: tuple[str, ...]
    replaced: tuple[tuple[str, str], ...]

    def write(self, folder: Path, port: int, ports: Sequence[int]) -> Path:
        """Write the example for these ports of this machine, with a certificate for it."""
        text = (DISTRIBUTION / "proxies" / self.example).read_text(encoding="utf-8")
        pem, _ = make_certificate(folder)
        here = zip(UPSTREAMS, (f"127.0.0.1:{own}" for own in ports), strict=True)
        for old, new in (*here, *self.replaced):
            assert old in text, f"{self.example} has no {old}"
            text = text.replace(old, new.format(port=port, pem=pem))
        if self.name == "nginx":
            text = complete_nginx(text, folder)
        elif self.name == "caddy":
            text = _CADDY.format(text)
        file = folder / self.example
        file.write_text(text, encoding="utf-8")
        return file

    def command(self, options: tuple[str, ...], file: Path) -> list[str]:
        return [find_tool(self.name), *(option.format(file=file) for option in options)]


PROXIES = (
    Proxy(
        "nginx",
        "nginx.conf",
        ("-t", "-c", "{file}"),
        ("-c", "{file}"),
        (
            ("listen 443", "listen 127.0.0.1:{port}"),
            ("/etc/ssl/sayso/tls.crt", "{pem}"),
            ("/etc/ssl/sayso/tls.key", "{pem}"),
        ),
    ),
    Proxy(
        "haproxy",
        "haproxy.cfg",
        ("-c", "-f", "{file}"),
        ("-db", "-f", "{file}"),
        (
            ("bind :443", "bind 127.0.0.1:{port}"),
            ("/etc/haproxy/sayso.pem", "{pem}"),
            ("Host sayso.example.com", "Host 127.0.0.1:{port}"),
        ),
    ),
    Proxy(
        "caddy",
        "Caddyfile",
        ("validate", "--adapter", "caddyfile", "--config", "{file}"),
        ("run", "--adapter", "caddyfile", "--config", "{file}"),
        (
            ("Host sayso.example.com", "Host 127.0.0.1:{port}"),
            ("sayso.example.com {\n", "https://127.0.0.1:{port} {{\n\ttls {pem} {pem}\n"),
        ),
    ),
)


def complete_nginx(text: str, folder: Path) -> str:
    """Return the configuration around an http block's text, with all files of nginx in the folder."""
    places = "\n".join(f"{place}_temp_path {folder / place};" for place in _NGINX_PLACES)
    return _NGINX.format(folder, places, text)


@contextmanager
def running_proxy(proxy: Proxy, file: Path) -> Iterator[None]:
    """Run a proxy for the length of the block. It ends with all its processes."""
    environ = {**os.environ, "HOME": str(file.parent)}
    with (file.parent / "output").open("wb") as output:
        command = proxy.command(proxy.serve, file)
        child = subprocess.Popen(command, stdout=output, stderr=output, env=environ, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
