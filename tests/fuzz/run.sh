#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/fuzz/run.sh [--seconds N]
# Fuzzes the reader of snapshots for N seconds (15), from the corpus in the tree:
# TAP. What it finds new is in build/fuzz/corpus, an input that fails in
# build/fuzz; build/tests/fuzz/snapshot FILE runs it alone. The corpus is the
# least that reaches every edge which has been: in an empty folder NEW,
#   build/tests/fuzz/snapshot -merge=1 -use_counters=0 NEW CORPUS...

set -euo pipefail
. "${0%/*}/../../lab/lib.sh"
seconds=15
case ${1:-} in
--help) help ;;
--seconds) seconds=$2 ;;
'') ;;
*) help 2 >&2 ;;
esac
cd "$repo"

out=build/fuzz
mkdir -p $out/corpus
progress() { grep -a '^#' build/fuzz/log | tail -n 1; }
echo 1..2

# verdict N TEXT STATUS
bad=0
verdict() {
	if [[ $3 -eq 0 ]]; then
		echo "ok $1 - $2"
	else
		echo "not ok $1 - $2"
		grep -av '^#' $out/log | tail -n 60 | sed 's/^/# /'
		bad=1
	fi
}

rc=0
build/tests/fuzz/snapshot -runs=0 tests/fuzz/corpus >$out/log 2>&1 || rc=$?
verdict 1 "every input of the corpus" $rc

rc=0
run "fuzzing, $seconds s" progress $out/log build/tests/fuzz/snapshot \
	-max_total_time="$seconds" -max_len=4096 -timeout=20 \
	-print_final_stats=1 -artifact_prefix=$out/ $out/corpus \
	tests/fuzz/corpus || rc=$?
runs=$(sed -n 's/^stat::number_of_executed_units: *//p' $out/log)
verdict 2 "${runs:-no} inputs in $seconds s" $rc
exit $bad
