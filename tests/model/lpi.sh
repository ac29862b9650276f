#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/model/lpi.sh
# Has spin check lpi.pml: the series, and what must not pass. TAP.

set -euo pipefail
here=$(cd "${0%/*}" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"

# NAME:what it is:errors expected
variants=(
	':as it is on 6.12:0'
	'LIST:as it is on 6.1:0'
	'PLAIN_GET:queueing what has no reference left:1'
	'NO_RCU:freeing without a grace period:1'
	'ERASE_ANY:erasing by INTID after the last reference:1'
	'LIST_LOCK:holding the list lock over the injection:1'
)

echo "1..${#variants[@]}"
n=0 bad=0
for variant in "${variants[@]}"; do
	IFS=: read -r name what errors <<<"$variant"
	n=$((n + 1))
	rm -f pan*
	spin -a ${name:+"-D$name"} "$here/lpi.pml" >spin.log
	gcc -O1 -w -DSAFETY -DCOLLAPSE -o pan pan.c
	./pan -m10000 -w22 >pan.log
	found=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' pan.log)
	if [[ $found == "$errors" ]] && ! grep -q 'max search depth' pan.log; then
		echo "ok $n - ${name:-series}: $what"
	else
		echo "not ok $n - ${name:-series}: $what"
		sed 's/^/# /' pan.log
		bad=1
	fi
	grep -E 'pan:1|states, stored' pan.log | sed 's/^/# /'
done
exit $bad
