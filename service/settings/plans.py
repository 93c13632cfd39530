"""Reading of the YAML files that settings name: all of a file or none, with every fault and its line."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from sayso.core.policy.files.yaml_documents import read_document
from sayso.errors import InvalidInput

Plan = TypeVar("Plan", bound=BaseModel)


def read_plan(path: Path | None, plan: type[Plan], setting: str, fault: type[InvalidInput]) -> Plan:
    """Return the content of a file, or the defaults without a file; raises `fault` with all faults."""
    if path is None:
        return plan()
    try:
        document = read_document(path.read_bytes(), path.name)
    except OSError as error:
        raise fault(f"{path} cannot be read: {error.strerror}. Correct {setting}.") from error
    try:
        if not document.problems:
            return plan.model_validate(document.content or {})
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            field = ".".join(map(str, problem["loc"]))
            words = problem["msg"].removeprefix("Value error, ")
            document.report(problem["loc"], f"{field}: {words}" if field else words)
    raise fault("\n".join(map(str, sorted(document.problems))))
