"""Guards at the place where each framework executes tools, also for a framework that a gated tool imports.

An adapter guards its own framework when it builds an agent, and every other one that is imported already. A framework
that is imported later is guarded right after its import. Agents that run outside of gated runs notice nothing.
"""

import logging
import sys
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from sayso.errors import InvalidInput
from sayso.guarding import carry_into_threads

_GUARDS = {
    "pydantic_ai": "pydantic_ai",
    "agents": "openai_agents",
    "autogen_agentchat": "autogen",
    "langchain_core": "langchain",
    "afk": "afk",
}
"""The guard of each framework, by the package that it is imported as."""

_CHANGED = (
    "Sayso does not know where {package} of this version executes tools: {fault}. Agents inside of tools could run "
    "without review. Install a version that Sayso's extras allow."
)
_LOG = logging.getLogger("sayso")


class Changed(Exception):
    """A framework has no longer the place that its guard replaces."""


def guard_framework(package: str) -> None:
    """Guard the framework of an adapter and the others. Raises `InvalidInput` if the framework has changed."""
    carry_into_threads()
    try:
        _install(package)
    except (Changed, ImportError, AttributeError) as error:
        raise InvalidInput(_CHANGED.format(package=package, fault=error)) from error
    for other in _GUARDS:
        if other in sys.modules and other != package:
            _try_install(other)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def _install(package: str) -> None:
    import_module(f"sayso.adapters.guards.{_GUARDS[package]}").install()


def _try_install(package: str) -> None:
    """Guard another framework. A module of the user may have its name."""
    try:
        _install(package)
    except (Changed, ImportError, AttributeError) as error:
        _LOG.warning("%s", _CHANGED.format(package=package, fault=error))


class _Finder(MetaPathFinder):
    """Guards frameworks right after their import."""

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname not in _GUARDS:
            return None
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
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
