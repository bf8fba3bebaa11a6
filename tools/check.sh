#!/usr/bin/env bash
# Runs every check, goes on after one that fails, and ends with a summary whose last line is pytest's own.
# Arguments go to pytest.
#
# The tests start brokers, JVMs and Spark, two at a time. A few that fail beside others are run once more,
# alone: if they pass then, the machine was busy. They are named in the summary all the same, and each is
# a test to be mended: it waits for too short a time.
set -uo pipefail

python=.venv/bin/python
log=$(mktemp)
again=$(mktemp)
trap 'rm -f "$log" "$again"' EXIT
names=() results=() seconds=()

run() {
    local name=$1 start=$SECONDS
    shift
    printf '\n== %s\n' "$name"
    if "$@"; then results+=(ok); else results+=(FAILED); fi
    names+=("$name")
    seconds+=($((SECONDS - start)))
}

# pytest's closing line ("5 passed in 0.12s") is held back for the summary.
closing='(passed|failed|error|errors|skipped|deselected|no tests ran).* in [0-9.]+s'
tests() {
    local colour=no
    [ ! -t 1 ] || colour=yes
    "$python" -m pytest -n "${PYTEST_WORKERS:-2}" --dist worksteal --color="$colour" "$@" 2>&1 | tee "$log" |
        grep --line-buffered -vE "$closing"
    return "${PIPESTATUS[0]}"
}

alone_max=10
alone() {
    local failed
    # Without the colours of a terminal.
    sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -E '^(FAILED|ERROR) ' | cut -c1-160 >"$again"
    failed=$(wc -l <"$again")
    if [ "$failed" -eq 0 ] || [ "$failed" -gt "$alone_max" ]; then
        echo "$failed failures: only 1 to $alone_max are run once more, alone"
        return 1
    fi
    "$python" -m pytest --last-failed --last-failed-no-failures none "$@" 2>&1 | tee "$log" |
        grep --line-buffered -vE "$closing"
    return "${PIPESTATUS[0]}"
}

kernel=$("$python" -c 'import logging; logging.disable()
from gantrymq.kernel import kernel; print(kernel.KERNEL_NAME)') || exit 1
if [ "$kernel" != compiled ]; then
    if [ "${CI:-}" = true ]; then
        echo "CI=true, and the kernel in use is the $kernel one (GANTRYMQ_KERNEL=${GANTRYMQ_KERNEL:-}):" \
            "the compiled kernel must be built and chosen here" >&2
        exit 1
    fi
    if [ -n "${GANTRYMQ_KERNEL:-}" ]; then
        echo "GANTRYMQ_KERNEL=$GANTRYMQ_KERNEL: testing on the $kernel kernel (GANTRYMQ_ALLOW_READABLE=1)"
    else
        echo "no compiled kernel: testing the readable one alone (GANTRYMQ_ALLOW_READABLE=1)"
    fi
    export GANTRYMQ_ALLOW_READABLE=1
fi

run "ruff check" "$python" -m ruff check --quiet --output-format concise
run "ruff format" "$python" -m ruff format --check --quiet
run "mypy" "$python" -m mypy
run "pytest" tests "$@"
if [ "${results[-1]}" != ok ]; then
    run "pytest alone" alone "$@"
    [ "${results[-1]}" != ok ] || results[-2]="again"
fi

printf '\n== summary (kernel: %s)\n' "$kernel"
status=0
for index in "${!names[@]}"; do
    printf '   %-13s %-6s %4d s\n' "${names[index]}" "${results[index]}" "${seconds[index]}"
    [ "${results[index]}" != FAILED ] || status=1
done
if [ -s "$again" ]; then
    echo "   failed beside others, and were run once more alone:"
    sed 's/^/     /' "$again"
fi
grep -E "$closing" "$log" | tail -n 1
exit "$status"
