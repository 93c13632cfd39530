"""Tests of the chart: Helm renders it, and what it renders follows the schemas of Kubernetes. No cluster runs it."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from launch.checks import PROBES
from sayso import __version__
from service.core.settings import InvalidSettings, Settings, load, variable_of
from service.core.settings.secrets import FILED, file_variable_of
from tests.distribution.tools import DISTRIBUTION, run

CHART = DISTRIBUTION / "chart" / "sayso"
VALUES: dict[str, Any] = {
    "image": {"repository": "registry.corp/sayso", "tag": "0.1.0"},
    "publicUrl": "https://desk.corp.io",
    "existingSecret": "sayso",
    "config": {"configMap": "sayso-config"},
}
ALL_KEYS = ["key-file", *(name.replace("_", "-") for name in FILED)]
FULL = VALUES | {
    "agents": "refunds:agent",
    "trustedProxies": ["10.0.0.0/8"],
    "secretKeys": ALL_KEYS,
    "ingress": {"enabled": True, "tlsSecret": "tls"},
    "networkPolicy": {"egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "settings": {"SAYSO_ENVIRONMENT": "staging"},
    "valkey": {"enabled": True},
    "backup": {"enabled": True, "claim": "backups", "keySecret": "backup-key"},
}
ONLY = {"metrics-token": "service", "webhook-secret": "service", "admin-password": "setup"}


def render(folder: Path, values: dict[str, Any], code: int = 0) -> str:
    file = folder / "values.json"
    file.write_text(json.dumps(values))
    return run("helm", "template", "desk", CHART, "--kube-version", "1.31", "--values", file, expects=(code,))


def read(text: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if document]


@pytest.mark.parametrize("values", [VALUES, FULL], ids=["least", "full"])
def test_chart_follows_the_schemas_of_kubernetes(tmp_path: Path, values: dict[str, Any]) -> None:
    (tmp_path / "values.json").write_text(json.dumps(values))
    run("helm", "lint", CHART, "--strict", "--kube-version", "1.31", "--values", tmp_path / "values.json")
    known = [document for document in read(render(tmp_path, values)) if document["kind"] != "ServiceMonitor"]
    (tmp_path / "rendered.yaml").write_text(yaml.safe_dump_all(known))
    said = run("kubernetes-validate", "--strict", tmp_path / "rendered.yaml")
    assert said.count("passed for resource") == len(known)


@pytest.fixture
def pods(tmp_path: Path) -> dict[str, Any]:
    """The pods of Sayso's programs, by name."""
    return {
        document["metadata"]["labels"]["app.kubernetes.io/component"]: spec["template"]["spec"]
        for document in read(render(tmp_path, FULL))
        if document["kind"] in ("Deployment", "Job", "CronJob")
        for spec in [document["spec"].get("jobTemplate", document)["spec"]]
    }


def test_pods_are_hardened_and_probed(pods: dict[str, Any]) -> None:
    assert set(pods) == {*PROBES, "setup", "backup"}
    for name, pod in pods.items():
        (container,) = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        assert not pod["enableServiceLinks"], "SAYSO_PORT of a Service named sayso is no setting"
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        if name == "service":
            assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
        elif name in PROBES:
            assert container["livenessProbe"]["exec"]["command"] == ["python", "-m", "launch.checks", name]


def test_pods_get_settings_that_exist_and_the_secrets_that_they_need(pods: dict[str, Any]) -> None:
    settings = {*map(variable_of, Settings.model_fields), *map(file_variable_of, FILED)}
    for name, pod in pods.items():
        environment = {row["name"]: row["value"] for row in pod["containers"][0]["env"]}
        assert set(environment) <= settings
        (volume,) = [row["secret"] for row in pod["volumes"] if row["name"] == "secrets"]
        wanted = {key for key in ALL_KEYS if ONLY.get(key, name) == name}
        assert {item["key"] for item in volume["items"]} == wanted
        assert {value.rpartition("/")[2] for value in environment.values() if "/run/secrets/" in value} == wanted


@pytest.mark.parametrize("name", [*PROBES, "setup", "backup"])
def test_pods_read_a_cluster_and_its_queue_from_the_secret(
    pods: dict[str, Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = {"redis-url": "rediss+cluster://user:password@one,two:7000", "queue-url": "rediss://user:password@queue/0"}
    environment = {row["name"]: row["value"] for row in pods[name]["containers"][0]["env"]}
    for key, url in urls.items():
        (tmp_path / key).write_text(url)
        variable = file_variable_of(key.replace("-", "_"))
        assert environment[variable].endswith(f"/{key}")
        monkeypatch.setenv(variable.removesuffix("_FILE"), "")  # what is read from the file is removed after the test
        monkeypatch.setenv(variable, str(tmp_path / key))
    settings = load()
    assert (settings.store_url, settings.jobs_url) == (f"{urls['redis-url']}/default", urls["queue-url"])
    monkeypatch.delenv("SAYSO_QUEUE_URL")
    with pytest.raises(InvalidSettings, match="set SAYSO_QUEUE_URL to a small store"):
        load()


@pytest.mark.parametrize("own", [True, False])
def test_backup_writes_into_its_claim_with_a_key(tmp_path: Path, own: bool) -> None:
    values = VALUES | {"backup": {"enabled": True, "schedule": "@daily", "claim": "disks", "keep": 7}}
    values["backup"] |= {"keySecret": "other"} if own else {}
    (job,) = [document for document in read(render(tmp_path, values)) if document["kind"] == "CronJob"]
    assert (job["spec"]["schedule"], job["spec"]["concurrencyPolicy"]) == ("@daily", "Forbid")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]
    assert command[:5] == ["python", "-m", "service.features.backup", "save", "/backups/"]
    assert command[5:] == ["--keep", "7", *(["--key-file", "/run/secrets/backup/key-file"] if own else [])]
    places = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["mountPath"]: places[mount["name"]] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts["/backups"]["persistentVolumeClaim"] == {"claimName": "disks"}
    assert ("/run/secrets/backup" in mounts) == own
    if own:
        assert mounts["/run/secrets/backup"]["secret"]["secretName"] == "other"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"publicUrl": "https://sayso.example.com"}, "a placeholder"),
    ({"publicUrl": "http://desk.corp.io"}, "publicUrl"),
    ({"image": {"repository": "registry.corp/sayso", "tag": "latest"}}, "a placeholder"),
    ({"image": {"repository": "registry.corp/sayso"}}, "Set image.tag or image.digest"),
    ({"existingSecret": ""}, "existingSecret"),
    ({"existingSecret": "CHANGE-ME"}, "a placeholder"),
    ({"secretKeys": ["key-file"]}, "secretKeys"),
    ({"settings": {"SAYSO_KEY": "secret"}}, "settings.SAYSO_KEY holds a secret"),
    ({"settings": {"SAYSO_QUEUE_URL": "redis://:secret@queue"}}, "settings.SAYSO_QUEUE_URL holds a secret"),
    (
        {"settings": {"SAYSO_EGRESS_PROXY": "http://out:secret@proxy:3128"}},
        "settings.SAYSO_EGRESS_PROXY holds a secret",
    ),
    ({"serviceMonitor": {"enabled": True}}, "needs metrics-token"),
    ({"valkey": {"enabled": True}, "networkPolicy": {"enabled": False}}, "needs networkPolicy"),
    ({"backup": {"enabled": True}}, "backup needs a claim"),
    ({"backup": {"enabled": True, "claim": "disks"}, "secretKeys": ["redis-url"]}, "would write in clear"),
    ({"backup": {"enabled": True, "claim": "disks", "schedule": "often"}}, "schedule"),
    ({"replicas": 3}, "replicas"),
]


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
def test_chart_refuses_values_that_cannot_work(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    assert says in render(tmp_path, VALUES | change, code=1)


def test_chart_names_the_release_that_it_installs() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == __version__


def test_chart_refuses_to_start_without_values(tmp_path: Path) -> None:
    assert "image" in render(tmp_path, {}, code=1)
