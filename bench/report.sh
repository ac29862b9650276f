#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make report
# Draws build/results/transfer.json and inject.json into docs/transfer.svg and
# docs/inject.svg, and writes their tables and that of migrate.json into
# docs/results.md and README.md, between the marks that stand there. One of the files
# is enough.

set -euo pipefail
. "${0%/*}/../lab/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

transfer=build/results/transfer.json inject=build/results/inject.json
migrate=build/results/migrate.json
[[ -e $transfer || -e $inject || -e $migrate ]] ||
	die 'no results; make run, make inject and make migrate write them'
command -v gnuplot >/dev/null ||
	die "gnuplot is missing: apt-get install gnuplot-nox"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
written=()

# licensed SVG FILE: with the licence in its second line
licensed() {
	sed '1a <!-- SPDX-License-Identifier: MIT -->' "$1" >"$2"
	written+=("$2")
}

report_transfer() {
	# vcpus, then one by one, batch and handlers alone, in instructions
	for direction in get put; do
		jq -r --arg d $direction '.rows[] | select(.direction == $d) |
			[.vcpus, .one_by_one_insns, .batch_insns, .handlers_insns] |
			map(. // "NaN") | @tsv' $transfer >"$tmp/$direction"
		# What the posted proposal's ratio makes of our one by one
		awk -v d=$direction 'NR == FNR { one[$1] = $2; next }
			$1 == d && $2 in one { print $2, one[$2] / $3 }' \
			"$tmp/$direction" bench/proposal.tsv >"$tmp/$direction.proposal"
	done
	gnuplot -e "get='$tmp/get'; put='$tmp/put'; out='$tmp/svg'" \
		bench/transfer.gp
	licensed "$tmp/svg" docs/transfer.svg

	{
		echo "Linux $(jq -r .kernel $transfer), instructions, 288 interrupts:"
		echo
		echo '| vCPUs | direction | registers | calls | one by one, M | batch, M | handlers alone, M | library, M | one by one ÷ batch | batch ÷ handlers | library ÷ batch |'
		echo '| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
		jq -r 'def m: if . == null then "" else . / 1e6 * 1000 | round / 1000 end;
			def x(a; b): if a == null or b == null then "" else
				a / b * 100 | round / 100 end;
			.rows[] | "| \(.vcpus) | \(.direction) | \(.registers) | \(.calls_batch) | \(.one_by_one_insns | m) | \(.batch_insns | m) | \(.handlers_insns | m) | \(.library_insns | m) | \(x(.one_by_one_insns; .batch_insns)) | \(x(.batch_insns; .handlers_insns)) | \(x(.library_insns; .batch_insns)) |"' \
			$transfer
		echo
		jq -r '.one_register | select(.stock and .patched) |
			"One register a call, 160 vCPUs, patched ÷ stock kernel: " +
			"get \(.patched.get_insns / .stock.get_insns * 1000 | round / 1000), " +
			"put \(.patched.put_insns / .stock.put_insns * 1000 | round / 1000)."' \
			$transfer
	} >"$tmp/transfer"
}

report_inject() {
	local kernel kernels

	# LPIs that are cached and pending, 60 vCPUs
	kernels=$(jq -r '[.rows[].kernel] | unique | join(" ")' $inject)
	mkdir "$tmp/lpis"
	for kernel in $kernels; do
		jq -r --arg k "$kernel" '[.rows[] | select(.kernel == $k and
				.path == "signal_msi" and .state == "pending" and
				.vcpus == 60)] | group_by(.lpis)[] |
			(map({(.variant): .insns}) | add) as $insns |
			[.[0].lpis, $insns.stock, $insns.patched] |
			map(. // "NaN") | @tsv' $inject >"$tmp/lpis/$kernel"
	done
	gnuplot -e "dir='$tmp/lpis'; kernels='$kernels'; out='$tmp/svg'" \
		bench/inject.gp
	licensed "$tmp/svg" docs/inject.svg

	{
		echo '| kernel | path | mapped LPIs | stock | patched |'
		echo '| --- | --- | ---: | ---: | ---: |'
		jq -r '[.rows[] | select(.vcpus == 60 and .state == "pending")] |
			group_by(.kernel, .path, .lpis)[] |
			(map({(.variant): .insns}) | add) as $insns |
			"| \(.[0].kernel) | \(.[0].path) | \(.[0].lpis) | \($insns.stock | round) | \($insns.patched | round) |"' \
			$inject
	} >"$tmp/inject"

	# What was counted on the kernels with lock statistics
	{
		echo '| kernel | path | LPI | stock | patched |'
		echo '| --- | --- | --- | ---: | ---: |'
		jq -r '[.rows[] | select(.vm_locks != null)] |
			group_by(.kernel, .path, .state)[] |
			(map({(.variant): .vm_locks}) | add) as $locks |
			"| \(.[0].kernel) | \(.[0].path) | \(.[0].state) | \($locks.stock * 100 | round / 100) | \($locks.patched * 100 | round / 100) |"' \
			$inject
	} >"$tmp/inject-locks"

	# The median of the rounds, and the least and most
	[[ $(jq '.rates | length' $inject) -eq 0 ]] || {
		echo '| kernel | threads | stock, LPIs/s | patched, LPIs/s | patched ÷ stock |'
		echo '| --- | ---: | ---: | ---: | ---: |'
		jq -r 'def median: sort | .[length / 2 | floor];
			def figures: map(.per_second) |
				"\(median | round) (\(min | round) to \(max | round))";
			[.rates[]] | group_by(.kernel, .threads)[] |
			map(select(.variant == "stock")) as $stock |
			map(select(.variant == "patched")) as $patched |
			"| \(.[0].kernel) | \(.[0].threads) | \($stock | figures) | \($patched | figures) | \(($patched | map(.per_second) | median) / ($stock | map(.per_second) | median) * 100 | round / 100) |"' \
			$inject
	} >"$tmp/inject-rates"
}

# Live migration, beside what was published
report_migrate() {
	# stock, then patched: what the source and the destination take, in ms
	jq -r '.summary as $s | ("stock", "patched") as $v |
		def of($key): $s[$key][$v] // 0;
		def rest($all; $a; $b): [of($all) - of($a) - of($b), 0] | max;
		[$v, of("source_get_ms"), of("source_cpus_ms"),
			rest("source_ms"; "source_get_ms"; "source_cpus_ms"),
			of("destination_put_ms"), of("destination_cpus_ms"),
			rest("destination_ms"; "destination_put_ms";
				"destination_cpus_ms")] | @tsv' $migrate >"$tmp/bars"
	gnuplot -e "data='$tmp/bars'; out='$tmp/svg'" bench/migrate.gp
	licensed "$tmp/svg" docs/migrate.svg

	[[ -x build/host/swiftgic ]] || die "no build/host/swiftgic; make tools"
	# Targets are not its business.
	build/host/swiftgic migrate --table $migrate |
		sed '/^  [-mM]/d; ${/^$/d}' >"$tmp/migrate" || true
}

[[ ! -e $transfer ]] || report_transfer
[[ ! -e $inject ]] || report_inject
[[ ! -e $migrate ]] || report_migrate
for file in README.md docs/results.md; do
	for table in transfer inject inject-locks inject-rates migrate; do
		between $table $file
	done
done
echo "written: ${written[*]}, and the tables in README.md and docs/results.md"
