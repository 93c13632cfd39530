"""The production checklist, followed step by step on two network namespaces, and used from a third place."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from demo.stacks import neutral_environ
from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.distribution.proxies import complete_nginx
from tests.distribution.tools import DISTRIBUTION, find_tool
from tests.journeys.namespaces import REPLICA, SERVICES, SPARE, STORE, Machine, Site, running_site
from tests.journeys.stacks import PATIENCE_S
from tests.pages import find_blocks, read_page
from tests.sentinels import find_tls

START_S = 200  # six programs start beside other tests
RULES = "version: 1\ndefault: request_approval\nrules: []\n"
UNITS, STORE_FILES = DISTRIBUTION / "systemd", DISTRIBUTION / "store"
STEPS = ("Store", "Secrets", "Settings", "Programs", "Proxy", "Sign-in", "Backup, alerts, upgrade", "What was tested")
PLAIN = "import redis; redis.Redis(host='{host}', port=6379, socket_timeout=5).ping()"
NO_PASSWORD = "import redis; redis.Redis(host='{host}', port=6379, ssl=True, ssl_ca_certs='{authority}').ping()"


class Follower:
    """Follows the page in a folder, with the addresses of a site in place of the page's names and paths."""

    def __init__(self, folder: Path, site: Site, programs: ExitStack) -> None:
        self._folder, self.site, self._programs = folder, site, programs
        self._steps = dict(
            re.findall(r"^## (?:\d\. )?([^\n]+)\n(.*?)(?=^## |\Z)", read_page("production"), re.M | re.S)
        )
        assert tuple(self._steps) == STEPS
        for place in ("etc/sayso", "etc/sayso-store", "etc/ssl/sayso", "var/backups", "var/lib", "bin"):
            (folder / place).mkdir(parents=True)
        command = folder / "bin" / "sayso"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m sayso "$@"\n')
        command.chmod(0o755)
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.path("/etc/sayso/authority.crt")))
        for place, names in (("sayso-store", (STORE, REPLICA, SPARE)), ("ssl/sayso", (site.address,))):
            self._certify(authority, self.path(f"/etc/{place}"), *names)

    def _certify(self, authority: trustme.CA, folder: Path, *names: str) -> None:
        own = authority.issue_cert(*names)
        own.cert_chain_pems[0].write_to_path(str(folder / "tls.crt"))
        own.private_key_pem.write_to_path(str(folder / "tls.key"))
        authority.cert_pem.write_to_path(str(folder / "authority.crt"))

    def path(self, place: str) -> Path:
        return self._folder / place.lstrip("/")

    def here(self, text: str) -> str:
        """Replace what the page tells its readers to replace."""
        for place in ("/etc/sayso", "/etc/ssl", "/var/backups"):
            text = text.replace(place, str(self.path(place)))
        text = text.replace("CHANGE-ME-", "the-password-of-")
        return text.replace("store.example.com", STORE).replace("sayso.example.com", self.site.address)

    def text(self, step: str) -> str:
        return self.here(self._steps[step])

    def block(self, step: str) -> str:
        (block,) = find_blocks(self.text(step), "sh")
        return block.rstrip()

    def run(self, machine: Machine, script: str) -> str:
        return machine.run(script, self._folder)

    def start(self, machine: Machine, *command: str | Path, **environ: str) -> None:
        process = machine.start(*command, cwd=CHECKOUT, **environ)
        self._programs.callback(process.wait)
        self._programs.callback(process.kill)

    def start_server(self, host: str, *, replicated: bool = False, replica: bool = False) -> None:
        """Start a server of the store with the page's settings."""
        config = self.here((STORE_FILES / "store.conf").read_text())
        if not replicated:
            config = re.sub(r"^min-replicas-to-write.*\n", "", config, flags=re.M)
        if replica:
            (line,) = re.findall(r"`(replicaof [^`]+)`", self.text("Store"))
            config += f"{line}\n"
        data = self.path(f"/var/lib/{host}")
        data.mkdir()
        (data / "server.conf").write_text(config)
        tls = find_tls(data)
        self.start(
            self.site.store,
            tls.binary,
            data / "server.conf",
            "--bind",
            host,
            "--dir",
            data,
            LD_LIBRARY_PATH=tls.libraries,
        )

    def start_program(self, unit: str, role: str = "", **environ: str) -> None:
        """Start what a unit runs, with its settings and credentials."""
        lines = (UNITS / "sayso-.service.d" / "hardened.conf").read_text()
        known = dict(
            pair.split("=", 1) for line in re.findall(r"^Environment=(.*)", lines, re.M) for pair in line.split()
        )
        known |= dict(line.split("=", 1) for line in self.settings().splitlines() if line and line[0] != "#")
        credentials = str(self.path("/etc/sayso/credentials"))
        known = {name: value.replace("%S", str(self.path("/var/lib"))) for name, value in known.items()}
        known = {name: value.replace("%d", credentials) for name, value in known.items()}
        known["SAYSO_REDIS_URL_FILE"] += role
        (command,) = re.findall(r"^ExecStart=\S+ (.*)", (UNITS / f"{unit}.service").read_text(), re.M)
        self.start(self.site.programs, sys.executable, *command.split(), **known, **environ)

    def settings(self) -> str:
        """Return the page's file of settings."""
        text = self.here((UNITS / "sayso.env").read_text()).replace(
            "PROXIES=127.0.0.1", f"PROXIES={','.join(SERVICES)}"
        )
        (replicas,) = re.findall(r"`(SAYSO_REPLICAS=1)`", self.text("Settings"))
        return f"{text}{replicas}\n"


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    environ = {
        **neutral_environ(),
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(CHECKOUT),
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    } | dict.fromkeys(("SSL_CERT_FILE", "CURL_CA_BUNDLE"), str(tmp_path / "etc/sayso/authority.crt"))
    with running_site(environ) as site, ExitStack() as programs:
        yield Follower(tmp_path, site, programs)


def test_production_checklist_leads_to_a_desk_that_approves(follower: Follower) -> None:
    nginx = find_tool("nginx")
    programs, callers = follower.site.programs, follower.site.callers
    follow_store(follower)
    follower.run(programs, follower.block("Secrets"))

    follower.path("/etc/sayso/policy.yaml").write_text(RULES)
    follower.path("/etc/sayso/sayso.env").write_text(follower.settings())
    said = follower.run(programs, follower.block("Settings"))
    assert "with the password in SAYSO_ADMIN_PASSWORD" in said

    for host in SERVICES:
        follower.start_program("sayso-service", SAYSO_HOST=host)
    for _ in range(2):
        follower.start_program("sayso-worker@", "_worker")
        follower.start_program("sayso-clock", "_clock")

    proxy = follower.path("/etc/nginx.conf")
    example = follower.here((DISTRIBUTION / "proxies" / "nginx.conf").read_text())
    proxy.write_text(complete_nginx(example, follower.path("/var/lib")))
    follower.start(programs, nginx, "-c", proxy)
    ready = follower.block("Proxy")
    assert wait_until(lambda: '"right"' in follower.run(callers, f"{ready} || true"), START_S)

    *lines, doctor = follower.block("Sign-in").splitlines()
    follower.run(callers, "\n".join(lines))
    assert wait_until(lambda: "all is well" in follower.run(callers, f"{doctor} && echo all is well || true"), START_S)
    approve_from_outside(follower)
    check_monitoring(follower)
    follow_backup(follower)


def follow_store(follower: Follower) -> None:
    """Start the store, its replica and an empty one; callers without TLS, password or cable get nothing."""
    users = (STORE_FILES / "users.acl").read_text()
    follower.path("/etc/sayso-store/users.acl").write_text(follower.here(users))
    follower.start_server(STORE, replicated=True)
    follower.start_server(REPLICA, replica=True)
    follower.start_server(SPARE)
    programs, authority = follower.site.programs, follower.path("/etc/sayso/authority.crt")

    def said(machine: Machine, script: str) -> str:
        code = script.format(host=STORE, authority=authority)
        return follower.run(machine, f'{sys.executable} -c "{code}" 2>&1 || true')

    assert wait_until(lambda: "AuthenticationError" in said(programs, NO_PASSWORD), PATIENCE_S)
    assert "ConnectionError" in said(programs, PLAIN)
    assert re.search("ConnectionError|TimeoutError", said(follower.site.callers, NO_PASSWORD))


def approve_from_outside(follower: Follower) -> None:
    """Play the page on any language against the proxy: ask, decide, redeem, report."""
    blocks = find_blocks(read_page("start/curl"), "sh")[:4]
    script = "\n".join(blocks).replace("http://127.0.0.1:8321", f"https://{follower.site.address}")
    secrets = "SAYSO_KEY=$(cat refunds.key)\n" + follower.here(
        "SAYSO_ADMIN_PASSWORD=$(cat /etc/sayso/credentials/admin_password)\n"
    )
    said = follower.run(follower.site.callers, secrets + script)
    assert "paying {'order': '4711', 'amount': 200}" in said


def check_monitoring(follower: Follower) -> None:
    """The key for monitoring reads the metrics through the proxy, and decides nothing."""
    read = f'curl -fsS https://{follower.site.address}/metrics -H "Authorization: Bearer $(cat prometheus.key)"'
    assert "sayso_" in follower.run(follower.site.callers, read)


def follow_backup(follower: Follower) -> None:
    """Back up, and restore into the empty store."""
    folder = follower.path("/var/backups/sayso")
    folder.mkdir()
    url = follower.path("/etc/sayso/credentials/redis_url_service").read_text()
    (user,) = re.findall(r"as\s+`sayso-(\w+)`", follower.text("Backup, alerts, upgrade"))
    spare = follower.path("/etc/sayso/credentials/redis_url_drill")
    spare.write_text(url.replace(STORE, SPARE).replace("service", user))
    *settings, _ = follower.block("Settings").splitlines()
    said = follower.run(follower.site.programs, "\n".join((*settings, follower.block("Backup, alerts, upgrade"))))
    assert "the trails of 1 runs are whole" in said
