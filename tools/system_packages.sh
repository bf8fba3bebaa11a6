#!/usr/bin/env bash
# Installs the programs that some tests need, where that is possible without asking anybody:
# as root, on a system with apt-get. Anywhere else it says what is missing and how to get it.
#
# It never fails the build. A program that is still missing becomes a named skip in the test summary,
# and a failure when CI=true (tests/support/tools.py).
set -uo pipefail

# A JDK of 17 or later, with its compiler, whoever made it.
have_jdk() {
    command -v java >/dev/null && command -v javac >/dev/null || return 1
    local major
    major=$(javac -version 2>&1 | sed -nE 's/^javac ([0-9]+).*/\1/p')
    [ "${major:-0}" -ge 17 ]
}

# Fetches the Apache RocketMQ releases that interoperability tests run.
have_maven() { command -v mvn >/dev/null; }

# Go and Node build and run two of the clients that interoperability tests talk to.
have_go() { command -v go >/dev/null; }

have_node() { command -v node >/dev/null; }

have_npm() { command -v npm >/dev/null; }

have_etcd() { command -v etcd >/dev/null; }
have_ip() { command -v ip >/dev/null; }

have_chromium() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null; }

# Debian's own Python comes without the module that makes environments.
have_venv() {
    local python
    python=$(tools/find_python.sh 2>/dev/null) || return 0
    "$python" -c 'import ensurepip' 2>/dev/null || [ "$(command -v "$python")" != "/usr/bin/$python" ]
}

missing=()
have_venv || missing+=(python3-venv)
have_jdk || missing+=(openjdk-17-jdk-headless)
have_maven || missing+=(maven)
have_go || missing+=(golang-go)
have_node || missing+=(nodejs)
have_npm || missing+=(npm)
have_etcd || missing+=(etcd-server)
have_ip || missing+=(iproute2)
have_chromium || missing+=(chromium)
[ "${#missing[@]}" -gt 0 ] || exit 0

say_how() {
    echo "system packages: not installed: ${missing[*]} ($1); tests that need them are skipped by name."
    echo "system packages: to have them, as root: apt-get install ${missing[*]}"
    exit 0
}

[ "${GANTRYMQ_SYSTEM_PACKAGES:-1}" = 1 ] || say_how "GANTRYMQ_SYSTEM_PACKAGES=0"
command -v apt-get >/dev/null || say_how "no apt-get here"
[ "$(id -u)" = 0 ] || say_how "not root"

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# A package's own service is not wanted: tests start what they need on ports of their own. The
# policy is put back as it was, whatever happens.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ] && printf '#!/bin/sh\nexit 101\n' >"$policy" 2>/dev/null; then
    chmod 755 "$policy"
    trap 'rm -f "$log" "$policy"' EXIT
fi

apt() {
    apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 -o Acquire::http::Timeout=30 \
        "$@" >"$log" 2>&1 </dev/null
}

echo "system packages: refreshing the package lists"
apt update || echo "system packages: the lists could not be refreshed; trying with the old ones"
failed=()
for package in "${missing[@]}"; do
    echo "system packages: installing $package"
    if ! apt install --no-install-recommends "$package"; then
        failed+=("$package")
        echo "system packages: $package failed: $(grep -E '^E:' "$log" | head -n 1)"
    fi
done
missing=("${failed[@]}")
[ "${#missing[@]}" -eq 0 ] || say_how "apt-get failed"
