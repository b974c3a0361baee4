#!/usr/bin/env bash
# Looks for mistakes in the page and in its tools, and checks their format.
# With --fix it formats them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
assets=$here/../../api/ui/assets
files=("$assets/main.js" "$assets/page.css" "$assets/core" "$assets/views" "$here/unit" "$here/vendor.mjs" "$here/eslint.config.js")
mode=--check
[ "${1:-}" = --fix ] && mode=--write
"$here/npm.sh" prettier --log-level warn --config "$here/.prettierrc.json" $mode "${files[@]}" >&2
export here root=$here/../..
"$here/npm.sh" bash -c 'cd "$root" && eslint --no-config-lookup -c "$here/eslint.config.js" --max-warnings 0 api/ui/assets/main.js api/ui/assets/core api/ui/assets/views hack/ui'
