#!/bin/sh
# Create a virtual environment and install one lock file: install.sh <venv> <lock file> <uv version>
set -eu
venv=$1 lock=$2 uv_version=$3

find_python() {
    for name in "${PYTHON3:-python3.11}" python3.11 python3.12 python3.13 python3.14 python3; do
        if "$name" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
    echo "Sayso needs Python 3.11 or newer with its venv module (on Debian: apt-get install python3 python3-venv)." >&2
    echo "If it has another name, run: make PYTHON3=/path/to/python3.11 ..." >&2
    return 1
}

if ! "$venv/bin/python" -c '' 2>/dev/null; then
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
