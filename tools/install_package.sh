#!/usr/bin/env bash
# Installs this clone into .venv, editable, which builds the compiled kernel. Without a C compiler
# that works too, on the readable twin, and is said here, once.
set -euo pipefail

python=.venv/bin/python
log=$(mktemp)
probe=$(mktemp -d)
trap 'rm -rf "$log" "$probe"' EXIT

# Nothing of an earlier build may stand in for one that fails now.
rm -f src/gantrymq/kernel/_native*.so src/gantrymq/kernel/_native*.pyd

echo "package: installing gantrymq and building its kernel"
if ! "$python" -m pip install -q --no-deps --no-build-isolation -e . >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi

kernel=$("$python" -c 'import logging; logging.disable()
from gantrymq.kernel import kernel; print(kernel.KERNEL_NAME)')
[ "$kernel" != compiled ] || exit 0

if [ "${GANTRYMQ_PURE:-}" = 1 ]; then
    echo "package: GANTRYMQ_PURE=1, so the readable kernel is used"
    exit 0
fi

# Is it the compiler that is missing, or is the kernel's source at fault?
cat >"$probe/probe.c" <<'C'
#include <Python.h>
int main(void) { return 0; }
C
compiles() {
    local compiler include
    compiler=${CC:-$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("CC") or "cc")')}
    include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
    # The compiler may be several words ("gcc -pthread").
    # shellcheck disable=SC2086
    $compiler -I"$include" -c "$probe/probe.c" -o "$probe/probe.o" >/dev/null 2>&1
}
if compiles; then
    echo "package: there is a C compiler, and yet the kernel was not built:" >&2
    "$python" setup.py -q build_ext --inplace >&2 || true
    exit 1
fi
cat <<'TEXT'
package: no C compiler (or no Python.h), so there is no compiled kernel. Everything works on the
package: readable one, slowly. For the fast one: install a C compiler and Python's headers (Debian,
package: Ubuntu: apt-get install gcc python3-dev), then run `make clean setup`.
TEXT
