#!/usr/bin/env bash
# Makes .venv in this clone, or mends one that was left half made.
set -euo pipefail

python=$(tools/find_python.sh)
[ ! -e .venv/bin/python ] || .venv/bin/python -c 'import pip' 2>/dev/null || rm -rf .venv
[ -e .venv/bin/python ] && exit 0

echo "environment: making .venv with $("$python" --version)"
if ! message=$("$python" -m venv .venv 2>&1); then
    rm -rf .venv
    echo "$message" | tail -n 3 >&2
    echo "environment: $python cannot make virtual environments;" \
        "on Debian and Ubuntu, as root: apt-get install python3-venv" >&2
    exit 1
fi
