#!/usr/bin/env bash
# Installs Node.js 18 or newer, npm, and the packages of package-lock.json into
# .cache/ui, and runs what is given with them, in the directory of this script.
#
#   hack/ui/npm.sh node vendor.mjs   copy the packages of the page to api/ui/assets/vendor
#   hack/ui/npm.sh eslint …          look for mistakes in the page
#
# It is idempotent, and several callers may run it at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
directory=$root/.cache/ui

"$root/hack/docker.sh" tools node:nodejs npm:npm
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 18 ] || { echo "npm.sh: Node.js $(node --version) is too old: install 18 or newer" >&2; exit 1; }

mkdir -p "$directory"
exec 9>>"$directory/lock"
flock -w 600 9
if ! cmp -s "$here/package-lock.json" "$directory/installed.json"; then
	cp "$here/package.json" "$here/package-lock.json" "$directory"
	rm -f "$directory/installed.json"
	(cd "$directory" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >&2)
	cp "$here/package-lock.json" "$directory/installed.json"
fi
cd "$here"
export PACKAGES=$directory/node_modules
PATH=$PACKAGES/.bin:$PATH "$@" 9>&-
