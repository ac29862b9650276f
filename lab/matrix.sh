#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make matrix
# Prints which kernels and QEMUs work, with what, from what make test-all has run so
# far (build/test-all) and the versions in the cache, and writes it into README.md,
# between the marks that stand there, and how each stage ended into docs/results.md.
# What has not run says so.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

kernels=(7.x 6.12 6.1) qemus=(10.2 10.0 7.2)
state=build/test-all
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# row CELL...: of a table
row() {
	printf '|'
	printf ' %s |' "$@"
	echo
}

# cell: what all lines "... N passed, N failed, N skipped" add up to
cell() {
	awk 'match($0, /[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/) {
			split(substr($0, RSTART), n, /[^0-9]+/)
			pass += n[1]; fail += n[2]; skip += n[3]; ran = 1
		}
		END {
			if (!ran) { print "not run"; exit }
			printf "%d passed", pass
			if (fail) printf ", **%d failed**", fail
			if (skip) printf ", %d skipped", skip
			print ""
		}'
}

# stage NAME: how it ended
stage() {
	if [[ ! -e $state/$1.log ]]; then
		echo 'not run'
	else
		cell < <(tail -n 1 "$state/$1.log") |
			sed 's/^not run$/**did not end**/'
	fi
}

# tests REGEX [NOT]: of those in the stages that run lab/test.sh on usual kernels
tests() {
	cat $state/test.log $state/qemus.log 2>/dev/null |
		grep -E "^($1) " | sort -u | grep -vE "^(${2:-$}) " | cell || true
}

# newest KIND PATTERN: the version of the patched one that was used last
newest() {
	local dir
	dir=$(find "$cache/$1" -maxdepth 1 -name "$2-patched-*" \
		! -name '*-debug-*' -printf '%T@ %p\n' 2>/dev/null |
		sort -rn | sed -n '1s/^[^ ]* //p')
	sed 's/~/-/' "${dir:-/none}/version" 2>/dev/null || echo 'not built'
}

# neighbours QEMU: the rules that have it on either side
neighbours() {
	local tap=$state/qemus/6.12-neighbours.tap
	[[ -e $tap ]] || { echo 'not run' && return; }
	awk -v q="${1//./[.]}" '
		$0 !~ "- (.* to )?" q "-" { next }
		/^not ok/ { fail++; next }
		/# SKIP/ { skip++; next }
		{ pass++ }
		END { printf "%d passed, %d failed, %d skipped\n",
			pass, fail, skip }' "$tap" | cell
}

matrix() {
	local v re k cells
	row '' version applies 'each patch builds' tests selftests \
		"tests, kernel's own checks"
	row --- --- --- --- --- --- ---
	for v in "${kernels[@]}"; do
		re=${v//./[.]}
		row "Linux $v" "$(newest kernel "${v%.x}.*")" \
			"$(tests "$re-(apply|export)")" "$(stage "steps-$v")" \
			"$(tests "$re-[a-z_0-9]*" "$re-(apply|export|neighbours)")" \
			"$(stage "selftests-$v")" "$(stage "debug-$v")"
	done
	echo
	row '' version applies "${kernels[@]/#/migrates on }" \
		'with its neighbours'
	row --- --- --- "${kernels[@]/*/---}" ---
	for v in "${qemus[@]}"; do
		re=${v//./[.]} cells=()
		for k in "${kernels[@]}"; do
			cells+=("$(tests "${k//./[.]}(_stock)?-qemu_$re-migration")")
		done
		row "QEMU $v" "$(newest qemu "$v*")" \
			"$(tests "qemu_$re-export")" "${cells[@]}" \
			"$(neighbours "$v")"
	done
}

stages() {
	local name
	row stage 'how it ended'
	row --- ---
	for name in test fuzz qemus {steps,selftests,debug}-{7.x,6.12,6.1} fault kcsan; do
		row "$name" "$(stage "$name")"
	done
}

matrix >"$tmp/matrix"
stages >"$tmp/test-all"
between matrix README.md
between test-all docs/results.md
cat "$tmp/matrix"
