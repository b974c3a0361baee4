#!/usr/bin/env bash
# Prints the path of versitygw, an S3 server over a directory, for the tests of backups.
# Where it is not in PATH, it is built from the Go module proxy, in a module of its own,
# into BERTH_TOOL_CACHE (default /var/tmp/berth-tools).
set -euo pipefail
version=v1.8.0
go=$("$(dirname "$0")/go.sh")

say() { echo "versitygw.sh: $*" >&2; }

if command -v versitygw >/dev/null; then
	command -v versitygw
	exit 0
fi

cache=${BERTH_TOOL_CACHE:-/var/tmp/berth-tools}
tool=$cache/versitygw-$version
mkdir -p "$cache"
exec 9>>"$cache/lock-versitygw"
flock 9
if [ ! -x "$tool" ]; then
	say "building versitygw $version"
	part=$(mktemp -d "$cache/part.XXXXXX")
	trap 'rm -rf "$part"' EXIT
	(
		cd "$part"
		export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
		"$go" mod init tool
		"$go" get "github.com/versity/versitygw/cmd/versitygw@$version"
		"$go" build -buildvcs=false -trimpath -ldflags '-s -w' -o versitygw github.com/versity/versitygw/cmd/versitygw
	) >&2
	mv "$part/versitygw" "$tool"
fi
echo "$tool"
