"""Settings, effects and result of an agent, shared by its processes in a folder."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workspace:
    """One agent's settings and its folder."""

    folder: str
    base_url: str
    tool: str
    port: int
    certificate: str
    secret: str
    registration_id: str
    token: str = ""
    timeout: str = "10m"

    @classmethod
    def read(cls, folder: str) -> "Workspace":
        """Return the settings in a folder."""
        return cls(**json.loads((Path(folder) / "workspace.json").read_text()))

    def save(self) -> None:
        """Save the settings."""
        self.path("workspace.json").write_text(json.dumps(asdict(self)))

    def path(self, name: str) -> Path:
        """Return the path of a file in the folder."""
        return Path(self.folder) / name

    def record_effect(self, **arguments: object) -> str:
        """Record an effect of the tool."""
        with self.path("effects").open("a") as file:
            file.write(json.dumps(arguments) + "\n")
            file.flush()
            os.fsync(file.fileno())
        return "done"

    def read_effects(self) -> list[dict[str, object]]:
        """Return all recorded effects."""
        path = self.path("effects")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def save_result(self, text: str) -> None:
        """Save the final text of the run."""
        self.path("end.part").write_text(text)
        self.path("end.part").rename(self.path("end"))

    def read_result(self) -> str | None:
        """Return the final text of the run, or None before its end."""
        path = self.path("end")
        return path.read_text() if path.exists() else None
