#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/coverage.sh [FOLDER]
# Which lines of lib/ the unit tests do not reach, and whether enough are:
# TAP. Runs them, or takes what they have left in FOLDER, where GCOV_PREFIX
# pointed.

set -euo pipefail
repo=$(cd "${0%/*}/.." && pwd)
cd "$repo"
must=95
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
data=${1:-$tmp/data}

if [[ $# -eq 0 ]]; then
	for test in build/tests/unit/*; do
		GCOV_PREFIX=$data "$test" >"$tmp/log" 2>&1 || {
			cat "$tmp/log" >&2
			exit 1
		}
	done
fi

# gcov wants the notes of the compiler beside the counts.
mkdir "$tmp/gcov"
for source in lib/*.c; do
	[[ -e build/unit/${source%.c}.gcno ]] && continue
	echo "Bail out! $source was built without --coverage: make clean"
	exit 1
done
cp build/unit/lib/*.gcno "$data$repo"/build/unit/lib/*.gcda "$tmp/gcov"
gcov --stdout --source-prefix "$repo" "$tmp"/gcov/*.gcno >"$tmp/report"

echo 1..1
awk -v must=$must '
	/^ +-: +0:Source:/ { sub(/.*Source:/, ""); file = $0; next }
	file !~ /^lib\// { next }
	/^ +#####: / || /^ +=====: / {
		total++
		split($0, part, ":")
		missed[++n] = file ":" part[2] + 0 ":" part[3]
		next
	}
	/^ +[0-9]+\*?: / { total++ }
	END {
		covered = total ? 100 * (total - n) / total : 0
		printf "%sok 1 - the unit tests reach %d %% of the lines of lib/\n", \
			covered < must ? "not " : "", must
		printf "# %.1f %% of %d lines%s\n", covered, total, \
			n ? "; not reached:" : ""
		for (i = 1; i <= n; i++)
			print "# " missed[i]
		exit covered < must
	}' "$tmp/report"
