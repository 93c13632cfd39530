"""Measure the processor time of `import sayso` and of the gate, in fresh interpreters."""

import subprocess
import sys
from statistics import median

from service.core.settings import CHECKOUT

_RUNS = 9
_SCRIPT = "from time import process_time as cpu; began = cpu(); {}; print((cpu() - began) * 1000)"


def measure_imports() -> dict[str, float]:
    """Return the processor time of both imports, ms."""
    return {"import_sayso_ms": _cost("import sayso"), "import_gate_ms": _cost("from sayso import gate")}


def _cost(statement: str) -> float:
    command = [sys.executable, "-c", _SCRIPT.format(statement)]
    took = [subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True).stdout for _ in range(_RUNS)]
    return median(float(one) for one in took)


if __name__ == "__main__":
    for name, value in measure_imports().items():
        print(f"{name}: {value:.1f}")
