"""Computation of the shorthands that a condition reads, each once for a call."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.budgets import Computed, measure
from sayso.core.policy.functions import Uncomputable
from sayso.core.policy.functions.reading import Call, Reading, Variable
from sayso.core.policy.functions.shorthands import Kind, shorten
from sayso.errors import SaysoError

Path = tuple[str | int, ...]

MOST_PARTS = 1_000  # more parts than a reader finds in most texts; a loop over more ends at the engine's own limit


class Computing:
    """The computed values of one call, and why others cannot be computed."""

    def __init__(self, values: Mapping[str, Any], constants: Mapping[str, Any]) -> None:
        self._values, self._constants = values, constants
        self._found: dict[Call, JsonValue] = {}
        self._faults: dict[Call, str] = {}
        self._weights: dict[tuple[Path, Callable[[JsonValue], float]], float] = {}
        self._entries: dict[Path, int] = {}

    @property
    def has_any(self) -> bool:
        return bool(self._found)

    def compute(self, reading: Reading) -> dict[str, JsonValue]:
        """Return the variables of a condition; those that cannot be computed are missing."""
        for variable in reading.variables:
            if variable.call in self._found or variable.call in self._faults:
                continue
            try:
                given = () if variable.call.parameter is None else (self._read_parameter(variable.call),)
                self._found[variable.call] = variable.call.shorthand.compute(self._read(variable.call), *given)
            except SaysoError as error:
                self._faults[variable.call] = error.message
            except Exception as error:  # noqa: BLE001 - a parser may fail in any way on hostile text; the rule is doubted
                self._faults[variable.call] = f"it cannot be read: {type(error).__name__}"
        return {variable.name: self._value(variable) for variable in reading.variables if variable.call in self._found}

    def describe_fault(self, reading: Reading, name: str) -> str:
        """Return why a variable could not be computed, as in `shell(args.command): it is not …`; empty if it was."""
        call = next((variable.call for variable in reading.variables if variable.name == name), None)
        return f"{call.label}: {self._faults[call]}" if call in self._faults else ""

    def weigh(self, reading: Reading) -> float:
        """Return at most how many microseconds it takes to compute what a condition reads and is not known yet."""
        calls = dict.fromkeys(variable.call for variable in reading.variables)
        return sum(self._weigh(call) for call in calls if call not in self._found and call not in self._faults)

    def count_entries(self, reading: Reading) -> int:
        """Return at most how many entries the computed lists have over which a condition can go."""
        lists = {
            variable.call
            for variable in reading.variables
            if variable.call.shorthand.kind_of(variable.field) in (Kind.TEXTS, Kind.ANY)
        }
        return sum(map(self._count, lists))

    def list_computed(self, reading: Reading) -> list[Computed]:
        """Return the values that were computed for a condition, with the parts of their calls."""
        calls = dict.fromkeys(variable.call for variable in reading.variables)
        known = (call for call in calls if call in self._found)
        return [(call.name, call.path, call.parameter, call.is_constant, self._found[call]) for call in known]

    def learn(self, computed: Iterable[Computed]) -> None:
        """Keep values that were computed elsewhere, for the record."""
        for name, path, parameter, is_constant, value in computed:
            self._found.setdefault(Call(name, tuple(path), parameter, is_constant), value)

    def list_recorded(self, readings: Iterable[Reading]) -> JsonObject:
        """Return the computed values that conditions read, as they write them, such as `mail(args.to).domains`."""
        read = [variable for reading in readings for variable in reading.variables]
        known = [variable for variable in read if variable.call in self._found and variable.call.shorthand.recorded]
        return {variable.label: shorten(self._value(variable)) for variable in known}

    def _value(self, variable: Variable) -> JsonValue:
        value = self._found[variable.call]
        return value[variable.field] if variable.field and isinstance(value, dict) else value

    def _weigh(self, call: Call) -> float:
        """Return the cost of one call; several readers of one value weigh it once."""
        key = call.path, call.shorthand.weigh
        if key not in self._weights:
            self._weights[key] = call.shorthand.weigh(self._try_read(call))
        return self._weights[key]

    def _count(self, call: Call) -> int:
        if call.path not in self._entries:
            size = measure(self._try_read(call))
            # Its entries, and one part for each two signs of a text: the most that a reader finds.
            self._entries[call.path] = size.values + min(size.chars // 2, MOST_PARTS)
        return self._entries[call.path]

    def _try_read(self, call: Call) -> Any:
        try:
            return self._read(call)
        except Uncomputable:
            return None

    def _read(self, call: Call) -> Any:
        value: Any = self._values
        for step in call.path:
            fits = isinstance(value, list) if isinstance(step, int) else isinstance(value, Mapping)
            if not fits or (step not in value if isinstance(step, str) else step >= len(value)):
                raise Uncomputable(f"there is no {call.source}")
            value = value[step]
        return value

    def _read_parameter(self, call: Call) -> JsonValue:
        if call.parameter is None or not call.is_constant:
            return call.parameter
        if call.parameter not in self._constants:
            raise Uncomputable(f"there is no constants.{call.parameter}")
        value: JsonValue = self._constants[call.parameter]
        call.shorthand.check(value)
        return value
