#!/usr/bin/env bash
# Prints the lines of Go of each package, tests apart. What exists for tests only, runtime/fake,
# runtime/conform and hack, stands below the sum.
#
#   hack/lines.sh [COMMIT]     the working tree, or COMMIT
set -euo pipefail
cd "$(dirname "$0")/.."
commit=${1:-}
files() { if [ -n "$commit" ]; then git ls-tree -r --name-only "$commit"; else git ls-files --cached --others --exclude-standard; fi | grep '\.go$'; }
text() { if [ -n "$commit" ]; then git show "$commit:$1"; else cat "$1" 2>/dev/null || true; fi; }
files | while read -r file; do echo "$(dirname "$file") $(case $file in *_test.go) echo test ;; *) echo code ;; esac) $(text "$file" | wc -l)"; done | awk '
	{ lines[$1, $2] += $3; n[$1, $2]++; seen[$1] = 1 }
	function row(p) { printf "%-32s %7d %5d %8d\n", p, lines[p, "code"], n[p, "code"], lines[p, "test"] }
	END {
		printf "%-32s %7s %5s %8s\n", "package", "lines", "files", "tests"
		count = 0; for (p in seen) names[++count] = p
		for (i = 2; i <= count; i++) for (j = i; j > 1 && names[j] < names[j-1]; j--) { t = names[j]; names[j] = names[j-1]; names[j-1] = t }
		for (i = 1; i <= count; i++) if (names[i] !~ /^hack|^runtime\/(fake|conform)/) { row(names[i]); code += lines[names[i], "code"]; f += n[names[i], "code"]; test += lines[names[i], "test"] }
		printf "%-32s %7d %5d %8d\n", "sum", code, f, test
		for (i = 1; i <= count; i++) if (names[i] ~ /^hack|^runtime\/(fake|conform)/) row(names[i])
	}'
