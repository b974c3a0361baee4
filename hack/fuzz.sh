#!/bin/bash
# fuzz.sh: runs each fuzz test for a duration, such as 10s.
#
# At the end of the duration Go may fail a test with "context deadline exceeded" and without a
# failing input (https://go.dev/issue/75804, repaired in Go 1.27): such a test has passed.
set -euo pipefail
duration=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# run fuzzes test $1 of the folder $2.
run() {
	echo "$1 for $duration, in $2"
	"${GO:-go}" test -run '^$' -fuzz "^$1\$" -fuzztime "$duration" -fuzzminimizetime 100x "./$2" </dev/null | tee "$log" && return
	if [ "$(sed -n '/^--- FAIL/,/^FAIL/p' "$log" | sed '1d;$d' | tr -d ' ')" = contextdeadlineexceeded ]; then
		echo "fuzz.sh: passed, the end of the duration is no failure"
		return
	fi
	return 1
}

grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do
	for name in $(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$file"); do
		run "$name" "$(dirname "$file")"
	done
done
