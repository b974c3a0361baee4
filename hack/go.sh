#!/usr/bin/env bash
# Prints the path of a Go command that can build berth. Where there is none, or
# one that is too old to fetch the right one itself (before 1.21), it gets the
# toolchain that go.mod names from the module proxy into .cache/go.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "go.sh: $*" >&2; }

for go in "$(command -v go || true)" /usr/local/go/bin/go; do
	[ -x "$go" ] || continue
	minor=$("$go" env GOVERSION | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
	if [ "${minor:-0}" -ge 21 ]; then
		echo "$go"
		exit 0
	fi
done

version=$(sed -n 's/^go \([0-9.]*\)$/\1/p' go.mod)
case $(uname -m) in
x86_64) arch=amd64 ;;
aarch64) arch=arm64 ;;
*) say "no Go here, and none to get for $(uname -m): install Go $version"; exit 1 ;;
esac
home=$PWD/.cache/go/golang.org/toolchain@v0.0.1-go$version.linux-$arch
if [ ! -x "$home/bin/go" ]; then
	for tool in curl unzip; do
		command -v $tool >/dev/null && continue
		[ "$(id -u)" = 0 ] || { say "install $tool, or Go $version, then call again"; exit 1; }
		apt-get -q update >&2 && apt-get -q install -y --no-install-recommends curl ca-certificates unzip >&2
	done
	proxy=${GOPROXY:-https://proxy.golang.org}
	say "getting Go $version"
	mkdir -p .cache/go
	curl -fsSL -o .cache/go.zip "${proxy%%,*}/golang.org/toolchain/@v/v0.0.1-go$version.linux-$arch.zip"
	unzip -q -o -d .cache/go .cache/go.zip
	rm .cache/go.zip
	chmod -R +x "$home/bin" "$home/pkg/tool"
fi
echo "$home/bin/go"
