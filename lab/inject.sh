#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make inject
# Measures what injecting an LPI costs on 6.1, 6.12 and 7.x, stock and patched,
# in the lab: instructions; locks of the whole VM that it takes, on kernels built
# with lock statistics; and LPIs a second of one and of two threads. Writes
# build/results/inject.json and prints the tables. Fails if a target is missed.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

versions=(6.1 6.12 7.x)
rounds=3

lab/deps.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
done=0 total=$((${#versions[@]} * 2 * (2 + rounds))) failed=''

declare -A kernels
for version in "${versions[@]}"; do
	for variant in stock patched; do
		kernels[$version-$variant]=$(lab/kernel.sh "$version" $variant)
		kernels[$version-$variant-locks]=$(CONFIG=debug \
			lab/kernel.sh "$version" $variant)
	done
done
start=$SECONDS

finished() { measured "$@"; }

# measure NAME KERNEL BOOT-OPTIONS -- OPTIONS...: NAME has the variant in it
measure() {
	local name=$1 kernel=$2 boot=() variant=stock
	shift 2
	[[ $name != *-patched* ]] || variant=patched
	while [[ $1 != -- ]]; do boot+=("$1") && shift; done
	job "$name" "$tmp/$name.out" "$tmp/$name.err" \
		lab/boot.sh --kernel "$kernel" "${boot[@]}" \
		--results "$tmp/$name.json" \
		--file build/arm64/swiftgic -- /bin/swiftgic inject \
		--variant $variant --json /dev/virtio-ports/results "${@:2}"
}

# The longest first: the clock counts instructions, so that two at once do not
# disturb each other.
for run in 6.1-stock {6.12,7.x}-stock {6.1,6.12,7.x}-patched; do
	measure "$run" "${kernels[$run]}" --icount --
done
# The lockdep of 6.1 and 6.12 has no room for the locks of 60 vCPUs.
for run in {6.1,6.12,7.x}-{stock,patched}-locks; do
	measure "$run" "${kernels[$run]}" --icount --timeout 900 -- \
		--locks --vcpus 32 --lpis 1024
done
jobs_end

# In real time, so one after the other; stock and patched take turns.
for ((round = 1; round <= rounds; round++)); do
	for run in {6.1,6.12,7.x}-{stock,patched}; do
		measure "$run-rate$round" "${kernels[$run]}" --smp 2 -- \
			--threads 1,2 --vcpus 60 --lpis 1024
		jobs_end
	done
done
[[ ! $failed ]] || exit 1

mkdir -p build/results
rc=0
build/host/swiftgic inject --table --json "$tmp/inject.json" \
	"$tmp"/{6.1,6.12,7.x}-{stock,patched}.json "$tmp"/*-locks.json \
	"$tmp"/*-rate*.json || rc=$?
if [[ -s $tmp/inject.json ]]; then
	mv "$tmp/inject.json" build/results/.inject.$$
	mv build/results/.inject.$$ build/results/inject.json
	echo "results: build/results/inject.json ($SECONDS s)"
fi
exit $rc
