#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make report
# Draws build/results/transfer.json into docs/transfer.svg, writes its table into
# docs/results.md and README.md, between the marks that stand there.

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
} >"$tmp/table"

for file in README.md docs/results.md; do
	awk -v table="$tmp/table" '
		/<!-- transfer: end -->/ { inside = 0 }
		!inside
		/<!-- transfer: begin -->/ {
			inside = 1
			while ((getline line <table) > 0) print line
		}' $file >"$tmp/new"
	cp "$tmp/new" $file
done
echo "written: docs/transfer.svg, and the tables in README.md and docs/results.md"
