"""Tests of the supervisor's configuration."""

import configparser
import sys
from pathlib import Path

import pytest

from launch.programs import CLOCK, DEMO_MODEL, SERVER, SERVICE, WORKER, Program, programs_for, watches_for
from launch.supervision import render_config
from service.core.settings import Settings


def parsed(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(inline_comment_prefixes=(";", "#"))
    parser.read_string(text)
    return parser


def test_render_config_restarts_every_program() -> None:
    settings = Settings(workers=3)
    config = parsed(render_config(programs_for(settings), settings.home))

    names = [name for name in config.sections() if name.startswith("program:")]
    assert names == [f"program:{p.name}" for p in (SERVER, SERVICE, WORKER, CLOCK, DEMO_MODEL)]
    assert all(config[name]["autorestart"] == "true" for name in names)
    assert config["program:worker"]["command"] == f"{sys.executable} -m workers"
    assert config["program:worker"]["numprocs"] == "3"
    assert config["program:worker"]["process_name"] == "%(program_name)s-%(process_num)d"


def test_each_tenant_has_a_worker_and_a_clock_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text("tenants: {acme: {public_url: 'http://a'}, globex: {public_url: 'http://b'}}")
    settings = Settings(tenants=file)
    programs = programs_for(settings)
    config = parsed(render_config(programs, settings.home))

    tenants = {"worker-acme": "acme", "clock-acme": "acme", "worker-globex": "globex", "clock-globex": "globex"}
    assert [program.name for program in programs] == ["server", "service", *tenants, "demo-model"]
    assert all(
        f'SAYSO_TENANT="{tenant}"' in config[f"program:{name}"]["environment"] for name, tenant in tenants.items()
    )
    assert "SAYSO_TENANT" not in config["program:service"]["environment"]
    assert set(watches_for(settings, programs)) == {"service", "clock-acme", "clock-globex"}


def test_render_config_gives_workers_priority_over_the_service() -> None:
    config = parsed(render_config([SERVER, SERVICE, WORKER, CLOCK], Path("/home")))

    assert config["program:service"]["command"] == f"nice -n 5 {sys.executable} -m service"
    others = [config[f"program:{program.name}"]["command"] for program in (SERVER, WORKER, CLOCK)]
    assert not [command for command in others if command.startswith("nice")]


def test_render_config_does_without_nice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = parsed(render_config([SERVICE], Path("/home")))
    assert config["program:service"]["command"] == f"{sys.executable} -m service"


def test_render_config_stops_the_server_last() -> None:
    config = parsed(render_config([SERVER, SERVICE, CLOCK], Path("/home")))

    assert config["group:sayso"]["programs"] == "service,clock"
    assert int(config["group:sayso"]["priority"]) > int(config["program:server"]["priority"])


def test_render_config_opens_no_port() -> None:
    config = parsed(render_config([SERVER, SERVICE], Path("/home")))

    assert "inet_http_server" not in config.sections()
    assert config["unix_http_server"]["chmod"] == "0700"


def test_render_config_escapes_percent_signs() -> None:
    config = parsed(render_config([SERVICE], Path("/my 100%")))

    assert config["unix_http_server"]["file"] == "/my 100%%/supervisor.sock"
    assert config["program:service"]["stdout_logfile"] == "logs/service.log"


def test_programs_for_omits_the_server_with_another_store() -> None:
    assert SERVER not in programs_for(Settings(redis_url="redis://localhost"))


def test_programs_for_omits_the_demo_model_with_another_model() -> None:
    assert DEMO_MODEL not in programs_for(Settings(model_url="https://models.example/v1"))


def test_render_config_names_a_single_worker_plainly() -> None:
    config = parsed(render_config([Program("worker", "workers")], Path("/home")))

    assert config["program:worker"]["process_name"] == "worker"
