#!/bin/sh
# Create a virtual environment and install one lock file: install.sh <venv> <lock file> <uv version>
set -eu
venv=$1 lock=$2 uv_version=$3

fits() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

version_of() {
    "$1" -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null
}

find_python() {
    if [ -n "${PYTHON3:-}" ]; then
        fits "$PYTHON3" && echo "$PYTHON3" && return
        echo "PYTHON3=$PYTHON3 is no Python 3.11 or newer with its venv module. Name another one, or unset it." >&2
        return 1
    fi
    for name in python3.11 python3.12 python3.13 python3.14 python3; do
        if fits "$name"; then
            echo "$name"
            return
        fi
    done
    echo "Sayso needs Python 3.11 or newer with its venv module (on Debian: apt-get install python3 python3-venv)." >&2
    echo "If it has another name, run: make PYTHON3=/path/to/python3.11 ..." >&2
    return 1
}

# Another PYTHON3 than the environment has makes a new one.
is_current() {
    [ -z "${PYTHON3:-}" ] || [ "$(version_of "$venv/bin/python")" = "$(version_of "$PYTHON3")" ]
}

if ! "$venv/bin/python" -c '' 2>/dev/null || ! is_current; then
    python=$(find_python)
    echo "Creating $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi

echo "Installing $lock"
if "$venv/bin/python" -m pip install -qq --disable-pip-version-check "uv==$uv_version" &&
    "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --require-hashes -r "$lock"; then
    exit 0
fi
echo "uv failed. Installing with pip, which takes longer." >&2
exec "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
