"""Tests that containers run the same programs as `make up`."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from launch.checks import PROBES
from launch.programs import CLOCK, DEMO_MODEL, SERVICE, SETUP, WORKER, Program
from launch.server import DURABILITY
from launch.watched import MODULES
from service.core.settings import CHECKOUT, Settings, variable_of
from service.core.settings.secrets import FILED, file_variable_of


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    text = (CHECKOUT / "compose.yaml").read_text(encoding="utf-8")
    document: dict[str, dict[str, Any]] = yaml.safe_load(text)
    return document["services"]


@pytest.mark.parametrize("program", [SERVICE, CLOCK], ids=lambda program: program.name)
def test_container_of_a_program_that_can_hang_is_watched(services: dict[str, Any], program: Program) -> None:
    assert services[program.name]["command"] == ["python", "-m", "launch.watched", program.name]
    assert services[program.name]["restart"] == "unless-stopped"
    assert MODULES[program.name] == program.module


@pytest.mark.parametrize("program", [WORKER, DEMO_MODEL, SETUP], ids=lambda program: program.name)
def test_container_runs_the_command_of_its_program(services: dict[str, Any], program: Program) -> None:
    assert services[program.name]["command"] == ["python", "-m", program.module]


def test_container_of_the_service_gives_way_to_the_others(services: dict[str, Any]) -> None:
    shares = {name: row["cpu_shares"] for name, row in services.items() if "cpu_shares" in row}
    assert shares == {"service": 341}


def test_containers_are_the_programs_and_the_store(services: dict[str, Any]) -> None:
    names = {program.name for program in (SERVICE, WORKER, CLOCK, DEMO_MODEL, SETUP)}

    assert set(services) == names | {"store"}


def test_container_store_is_as_durable_as_the_embedded_one(services: dict[str, Any]) -> None:
    assert services["store"]["command"][3:] == ["sh", "valkey-server", *DURABILITY]
    assert services["store"]["volumes"] == ["store:/data"]


@pytest.mark.parametrize(("limit", "given"), [("2147483648", ["--maxmemory", "1610612736"]), ("max", []), ("", [])])
def test_container_store_refuses_data_before_it_is_killed(
    services: dict[str, Any], tmp_path: Path, limit: str, given: list[str]
) -> None:
    (tmp_path / "memory.max").write_text(limit)
    shell, flag, script, *rest = services["store"]["command"]
    script = (
        script.replace("$$", "$").replace("/sys/fs/cgroup/memory/", "/none/").replace("/sys/fs/cgroup", str(tmp_path))
    )
    ended = subprocess.run([shell, flag, script, "sh", "echo", *rest[1:]], capture_output=True, text=True, check=True)
    assert ended.stdout.split()[-len(given) or None :] == (given or [part for part in rest[1:] if part])
    assert ("--maxmemory" in ended.stdout.split()) is bool(given)


def test_containers_get_the_settings_that_they_read(services: dict[str, Any]) -> None:
    secrets = {variable_of("admin_password"), variable_of("key")}
    theirs = {variable_of(name) for name in ("home", "host", "port", "workers")}
    hook = {variable_of("webhook_secret"), variable_of("metrics_token")}
    wanted = {variable_of(name) for name in Settings.model_fields} - secrets - theirs - hook
    files = {variable_of(name): file_variable_of(name) for name in FILED}

    def variables_of(container: str) -> set[str]:
        return {name for name in services[container]["environment"] if name not in files.values()}

    assert variables_of("service") == wanted | {"REDIS_URL"} | hook
    for name in ("worker", "clock"):
        assert variables_of(name) == wanted | {"REDIS_URL"}
    assert variables_of("setup") == wanted | {"REDIS_URL"} | secrets
    for name in ("service", "worker", "clock", "setup"):
        environment = services[name]["environment"]
        assert set(files.values()) & set(environment) == {files[known] for known in files if known in environment}


def test_containers_get_the_files_of_the_secrets_that_they_read(services: dict[str, Any]) -> None:
    document = yaml.safe_load((CHECKOUT / "compose.yaml").read_text(encoding="utf-8"))
    for name in ("service", "worker", "clock", "setup"):
        container = services[name]
        mounts = {mount for mount in container["environment"].values() if "/run/secrets/" in mount}
        assert sorted(re.findall(r"/run/secrets/(\w+)", " ".join(mounts))) == sorted(container["secrets"])
        assert "${SAYSO_CONFIG:-./config}:/etc/sayso:ro" in container["volumes"]
    for name, secret in document["secrets"].items():
        variable = "SAYSO_KEY_FILE" if name == "key_file" else file_variable_of(name)
        assert secret == {"file": f"${{{variable}:-/dev/null}}"}


def test_each_container_says_whether_it_works(services: dict[str, Any]) -> None:
    assert "healthcheck" not in services["service"], "the image has its own"
    for name in ("worker", "clock"):
        assert services[name]["healthcheck"]["test"] == ["CMD", "python", "-m", "launch.checks", name]
    assert {"service", "worker", "clock"} == set(PROBES)
    assert services["demo-model"]["profiles"] == ["local"]


@pytest.mark.parametrize("name", ["store", "setup", "service", "worker", "clock", "demo-model"])
def test_container_is_read_only_and_unprivileged(services: dict[str, Any], name: str) -> None:
    container = services[name]
    assert (container["read_only"], container["cap_drop"]) == (True, ["ALL"])
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert container["pids_limit"] > 0
    assert {"mem_limit", "cpus"} <= set(container)
    assert name == "store" or any(mount.startswith("/tmp:") for mount in container["tmpfs"])


def test_containers_have_volumes_for_their_data(services: dict[str, Any]) -> None:
    assert services["store"]["user"] == "valkey"  # else the entry point needs rights to change the user
    assert "/home/sayso/data" in services["worker"]["volumes"]
    assert "install -d -o sayso" in (CHECKOUT / "Dockerfile").read_text(encoding="utf-8")


def test_image_is_made_of_wheels_alone_and_has_no_root_user() -> None:
    rows = [line.split() for line in (CHECKOUT / "Dockerfile").read_text(encoding="utf-8").splitlines() if line]

    assert [rest for first, *rest in rows if first == "USER"] == [["10001"]]
    copied = {source for first, *rest in rows if first == "COPY" and rest[0][:2] != "--" for source in rest[:-1]}
    assert copied == {"requirements.lock", "dist/wheels.txt", "dist/*.whl"}
    assert [row[-2:] for row in rows if row[:2] == ["COPY", "--from=packages"]] == [["/opt/sayso", "/opt/sayso"]]
    kept = (CHECKOUT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert copied == {line[1:] for line in kept if line[:1] == "!"}
