#!/usr/bin/env bash
# Installs Node.js 18 or newer, npm, and the packages of package-lock.json, and runs
# what is given with them, in a directory of .cache with the files of hack/panel.
#
#   hack/panel/npm.sh tsc            packages for the panel
#   hack/panel/npm.sh --lint COMMAND packages for linting as well
#
# It is idempotent, and several callers may run it at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
directory=$root/.cache/panel omit=--omit=dev
if [ "${1:-}" = --lint ]; then
	directory=$root/.cache/lint omit=
	shift
fi

"$root/hack/docker.sh" tools node:nodejs npm:npm
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 18 ] || { echo "npm.sh: Node.js $(node --version) is too old: install 18 or newer" >&2; exit 1; }

mkdir -p "$directory"
exec 9>>"$directory/lock"
flock -w 600 9
cd "$directory"
if ! cmp -s "$here/package-lock.json" installed.json || ! cmp -s "$here/package.json" package.json; then
	cp "$here/package.json" "$here/package-lock.json" .
	rm -f installed.json
	npm ci $omit --ignore-scripts --no-audit --no-fund --loglevel=error >&2
	cp package-lock.json installed.json
fi
cp "$here"/*.ts "$here"/*.mjs "$here"/tsconfig.json "$here"/spectral.yaml .
PATH=$directory/node_modules/.bin:$PATH "$@" 9>&-
