# SPDX-License-Identifier: MIT
# Sourced by the tests that are scripts: TAP. They begin with "plan N" and end
# with "exit $bad"; $tmp is a folder that goes with them.
# shellcheck shell=bash disable=SC2034

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

plan() {
	echo "1..$1"
}

# rule TEXT COMMAND...: in a shell of its own, and not as a condition, in which
# a failure in the middle of a function would not count
rule() {
	n=$((n + 1))
	"${@:2}" >"$tmp/out" 2>&1 &
	if wait $!; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		tail -n 30 "$tmp/out" | sed 's/^/# /'
		bad=1
	fi
}
