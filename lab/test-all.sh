#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make test-all, or lab/test-all.sh [STAGE]...
# Everything that make test runs, on every kernel; migrations of every QEMU, and
# between them; the same tests on kernels with the kernel's own checks, the races ten
# times as long; the kernel's selftests; the tests on a kernel whose allocations and
# user copies can be made to fail, and that finds memory that is lost; and on one that
# finds data races.
# Takes hours; only the stages whose name is given, if any is: test, fuzz, qemus,
# fault, kcsan, and steps, selftests and debug with a kernel's version (debug-6.12).
# LONG=N makes the races take N times as long, and not ten. A stage that has passed
# is not run again until a file of the project changes: stop it, and call it again.
# The output is in build/test-all.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

kernels=(6.12 6.1 7.x)
lab/deps.sh
state=build/test-all
mkdir -p $state
# project FIND-TEST...: such files of it
project() {
	find . \( -path ./build -o -path ./.git \) -prune -o -type f "$@" \
		-print0 | sort -z
}
# But not the tables, which make report and make matrix write
key=$({
	project ! -name '*.md' ! -name '*.svg' | xargs -0 sha256sum
	project -name '*.md' | xargs -0 sed '/: begin -->$/,/: end -->$/d'
} | sha256sum)
key=${key::12}

passed=0 failed=0 skipped=0 broken=0
only=" $* "
# stage NAME COMMAND...: its last line counts, "N passed, N failed, N skipped"
stage() {
	local name=$1 start=$SECONDS log=$state/$1.log rc=0 p f s
	local counts='s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p'
	shift
	[[ $only == "  " || $only == *" $name "* ]] || return 0
	if [[ $(cat "$state/$name.passed" 2>/dev/null) == "$key" ]]; then
		say "$name: has passed"
	else
		say "$name: $log"
		OUT=$state/$name "$@" >"$log" || rc=$?
		say "$name: status $rc, $((SECONDS - start)) s"
		[[ $rc -ne 0 ]] || echo "$key" >"$state/$name.passed"
	fi
	if ! read -r p f s < <(tail -n 1 "$log" | sed -n "$counts"); then
		say "$name: did not come to its end"
		p=0 f=1 s=0
	fi
	[[ $rc -eq 0 ]] || broken=1
	printf '%-24s %4d passed, %d failed, %d skipped\n' \
		"$name" "$p" "$f" "$s"
	passed=$((passed + p)) failed=$((failed + f))
	skipped=$((skipped + s))
}

stage test env KERNELS="${kernels[*]}" lab/test.sh
# Ten minutes of it
stage fuzz env LONG=2 lab/test.sh snapshot
stage qemus env KERNELS="${kernels[*]}" QEMU="10.2 7.2" \
	lab/test.sh migration neighbours export
for kernel in "${kernels[@]}"; do
	stage "steps-$kernel" lab/steps.sh "$kernel"
done
for kernel in "${kernels[@]}"; do
	stage "selftests-$kernel" lab/selftests.sh "$kernel"
done
for kernel in "${kernels[@]}"; do
	stage "debug-$kernel" env KERNELS="$kernel" CONFIG=debug \
		LONG="${LONG:-10}" lab/test.sh
done
for config in fault kcsan; do
	stage "$config" env KERNELS=6.12 CONFIG="$config" lab/test.sh
done

[[ $((passed + failed + skipped)) -gt 0 ]] || die "no stage has that name"
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 && $broken -eq 0 ]]
