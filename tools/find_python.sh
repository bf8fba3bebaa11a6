#!/usr/bin/env bash
# Prints the name of a Python of 3.11 or later, or one line saying what to do.
# A name alone proves nothing (version managers put stubs on the path), so each one is asked.
set -uo pipefail

candidates=(python3 python3.13 python3.12 python3.11)
[ -z "${PYTHON:-}" ] || candidates=("$PYTHON")

for candidate in "${candidates[@]}"; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        echo "$candidate"
        exit 0
    fi
done
echo "gantrymq needs Python 3.11 or later, and there is none among: ${candidates[*]}." \
    "Install one, or name it: make PYTHON=/path/to/python3" >&2
exit 1
