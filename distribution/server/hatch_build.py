"""Hooks of the server's wheel: its dependencies are those of the checkout, and the SDK's packages lie in it."""

import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilder
from hatchling.metadata.plugin.interface import MetadataHookInterface

_CHECKOUT = Path(__file__).resolve().parents[2]
_PROJECT = tomllib.loads((_CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))


class ServerMetadata(MetadataHookInterface):
    """The version of the checkout, and what its programs need."""

    def update(self, metadata: dict[str, Any]) -> None:
        version = _PROJECT["project"]["version"]
        metadata["version"] = version
        metadata["dependencies"] = [f"sayso[cli]=={version}", *_PROJECT["dependency-groups"]["server"]]


class ServerWheel(BuildHookInterface[Any]):
    """Builds the SDK's wheel, which the service offers at `/sdk/`, into the server's.

    The TypeScript client lies beside it if `make` has built that: only npm can.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self._folder = tempfile.TemporaryDirectory()
        for wheel in WheelBuilder(str(_CHECKOUT)).build(directory=self._folder.name, versions=["standard"]):
            build_data["force_include"][wheel] = f"sayso_server/sdk/{Path(wheel).name}"
        client = Path(sys.prefix) / "sdk" / f"sayso-client-{_PROJECT['project']['version']}.tgz"
        if client.is_file():
            build_data["force_include"][str(client)] = f"sayso_server/sdk/{client.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._folder.cleanup()
