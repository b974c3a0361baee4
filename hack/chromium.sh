#!/usr/bin/env bash
# Finds Chromium for the tests of the page, or installs Debian's, and prints its path.
#
# It is idempotent, and several callers may run it at once.
# Environment: CHROMIUM (a program that is used instead).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

for program in ${CHROMIUM:-} chromium chromium-browser google-chrome; do
	command -v "$program" && exit 0
done
"$here/docker.sh" tools chromium:chromium >&2
command -v chromium
