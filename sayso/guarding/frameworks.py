"""Guards of all frameworks: of those that are imported, and of those that a gated tool imports.

An adapter guards its framework when it builds an agent. Each gated run guards the others that are imported already. A
framework that is imported later is guarded right after its import. Agents outside of gated runs notice nothing.
"""

import logging
import sys
import threading
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from sayso.errors import InvalidInput
from sayso.guarding.runs import carry_into_threads

_GUARDS = {
    "pydantic_ai": "pydantic_ai",
    "agents": "openai_agents",
    "agent_framework": "agent_framework",
    "autogen_agentchat": "autogen",
    "langchain_core": "langchain",
    "google.adk": "google_adk",
    "crewai": "crewai",
    "afk": "afk",
    "parsimony_agents": "parsimony",
}
"""The guard of each framework, by the package that it is imported as."""

_DISTRIBUTIONS = {"agents": "openai-agents"}
"""The distribution of a package whose name a module of the user may have, too."""

_CHANGED = (
    "Sayso does not know where {package} of this version executes tools: {fault}. Agents inside of tools could run "
    "without review. Install a version that Sayso's extras allow."
)
_LOG = logging.getLogger("sayso")
_GUARDING = threading.Lock()


class Changed(Exception):
    """A framework has no longer the place that its guard replaces."""


_FAULTS = (Changed, ImportError, AttributeError, LookupError, TypeError, ValueError)
"""The errors of a guard whose framework has other modules, names or signatures."""


def guard_framework(package: str) -> None:
    """Guard the framework of an adapter. Raises `InvalidInput` if the framework has changed."""
    try:
        _install(package)
    except _FAULTS as error:
        raise InvalidInput(_CHANGED.format(package=package, fault=error)) from error


def guard_imports() -> None:
    """Guard each framework that is imported, now or later, and carry gated runs into threads."""
    with _GUARDING:
        if any(isinstance(finder, _Finder) for finder in sys.meta_path):
            return
        carry_into_threads()
        sys.meta_path.insert(0, _Finder())
        for package in _GUARDS:
            if package in sys.modules:
                _try_install(package)


def _install(package: str) -> None:
    import_module(f"sayso.guarding.{_GUARDS[package]}").install()


def _try_install(package: str) -> None:
    """Guard a framework, or warn. A module of the user may have its name."""
    try:
        _install(package)
    except _FAULTS as error:
        if _is_installed(package):
            _LOG.warning("%s", _CHANGED.format(package=package, fault=error))


def _is_installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return package not in _DISTRIBUTIONS or bool(distribution(_DISTRIBUTIONS[package]))
    except PackageNotFoundError:
        return False


class _Finder(MetaPathFinder):
    """Guards frameworks right after their import."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in _GUARDS:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):  # finders of before Python 3.4 have none
                continue
            if (spec := finder.find_spec(fullname, path, target)) is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(Loader):
    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _try_install(module.__name__)
