#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make report
# Draws build/results/transfer.json into docs/transfer.svg, and writes the tables of
# it and of build/results/inject.json, if that is there, into docs/results.md and
# README.md, between the marks that stand there.

set -euo pipefail
. "${0%/*}/../lab/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

results=build/results/transfer.json
[[ -e $results ]] || die "no $results; make run writes it"
command -v gnuplot >/dev/null ||
	die "gnuplot is missing: apt-get install gnuplot-nox"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# vcpus, then one by one, batch and handlers alone, in instructions
for direction in get put; do
	jq -r --arg d $direction '.rows[] | select(.direction == $d) |
		[.vcpus, .one_by_one_insns, .batch_insns, .handlers_insns] |
		map(. // "NaN") | @tsv' $results >"$tmp/$direction"
done
gnuplot -e "get='$tmp/get'; put='$tmp/put'; out='$tmp/svg'" bench/transfer.gp
sed '1a <!-- SPDX-License-Identifier: MIT -->' "$tmp/svg" >docs/transfer.svg

{
	echo "Linux $(jq -r .kernel $results), instructions, 288 interrupts:"
	echo
	echo '| vCPUs | direction | registers | calls | one by one, M | batch, M | handlers alone, M | one by one ÷ batch | batch ÷ handlers |'
	echo '| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
	jq -r 'def m: if . == null then "" else . / 1e6 * 1000 | round / 1000 end;
		def x(a; b): if a == null or b == null then "" else
			a / b * 100 | round / 100 end;
		.rows[] | "| \(.vcpus) | \(.direction) | \(.registers) | \(.calls_batch) | \(.one_by_one_insns | m) | \(.batch_insns | m) | \(.handlers_insns | m) | \(x(.one_by_one_insns; .batch_insns)) | \(x(.batch_insns; .handlers_insns)) |"' \
		$results
	echo
	jq -r '.one_register | select(.stock and .patched) |
		"One register a call, 160 vCPUs, patched ÷ stock kernel: " +
		"get \(.patched.get_insns / .stock.get_insns * 1000 | round / 1000), " +
		"put \(.patched.put_insns / .stock.put_insns * 1000 | round / 1000)."' \
		$results
} >"$tmp/transfer"

# An injection of an LPI that is cached and pending, 60 vCPUs
inject=build/results/inject.json
if [[ -e $inject ]]; then
	{
		echo '| kernel | path | mapped LPIs | stock | patched |'
		echo '| --- | --- | ---: | ---: | ---: |'
		jq -r '[.rows[] | select(.vcpus == 60 and .state == "pending")] |
			group_by(.kernel, .path, .lpis)[] |
			(map({(.variant): .insns}) | add) as $insns |
			"| \(.[0].kernel) | \(.[0].path) | \(.[0].lpis) | \($insns.stock | round) | \($insns.patched | round) |"' \
			$inject
	} >"$tmp/inject"
fi

# between NAME FILE: puts the table NAME between its marks in FILE
between() {
	[[ -e $tmp/$1 ]] || return 0
	awk -v name="$1" -v table="$tmp/$1" '
		$0 == "<!-- " name ": end -->" { inside = 0 }
		!inside
		$0 == "<!-- " name ": begin -->" {
			inside = 1
			while ((getline line <table) > 0) print line
		}' "$2" >"$tmp/new"
	cp "$tmp/new" "$2"
}
for file in README.md docs/results.md; do
	between transfer $file
	between inject $file
done
echo "written: docs/transfer.svg, and the tables in README.md and docs/results.md"
