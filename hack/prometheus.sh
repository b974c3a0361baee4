#!/usr/bin/env bash
# Prints the directory of prometheus and promtool, for the tests of hack/deploy.
# Where they are not in PATH, Debian's package is unpacked into
# BERTH_TOOL_CACHE (default /var/tmp/berth-tools), not installed: its installation
# would start a service.
set -euo pipefail

say() { echo "prometheus.sh: $*" >&2; }

if command -v promtool >/dev/null && command -v prometheus >/dev/null; then
	dirname "$(command -v promtool)"
	exit 0
fi

cache=${BERTH_TOOL_CACHE:-/var/tmp/berth-tools}
mkdir -p "$cache"
exec 9>>"$cache/lock"
flock 9
if [ ! -x "$cache/prometheus/usr/bin/promtool" ]; then
	command -v apt-get >/dev/null || { say "install prometheus with your package manager, then call again"; exit 1; }
	say "unpacking Debian's prometheus into $cache"
	part=$(mktemp -d "$cache/part.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	chmod 755 "$part"
	(
		cd "$part"
		apt-get -q download prometheus >&2 || { [ "$(id -u)" = 0 ] && apt-get -q update >&2 && apt-get -q download prometheus >&2; }
		dpkg-deb -x prometheus_*.deb root
	)
	mv "$part/root" "$cache/prometheus"
fi
echo "$cache/prometheus/usr/bin"
