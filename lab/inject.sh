#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make inject
# Measures what injecting an LPI costs on 6.1 and 6.12, stock and patched, in
# the lab; writes build/results/inject.json and prints the table. Fails if a
# target is missed.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

lab/deps.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
done=0 total=0 failed=''

declare -A kernels
for version in 6.1 6.12; do
	for variant in stock patched; do
		kernels[$version-$variant]=$(lab/kernel.sh $version $variant)
		total=$((total + 1))
	done
done
start=$SECONDS

finished() { measured "$@"; }

# The longest first: the clock counts instructions, so that two at once do not
# disturb each other.
runs=(6.1-stock 6.12-stock 6.1-patched 6.12-patched)
for run in "${runs[@]}"; do
	job "$run" "$tmp/$run.out" "$tmp/$run.err" \
		lab/boot.sh --kernel "${kernels[$run]}" --icount \
		--results "$tmp/$run.json" \
		--file build/arm64/swiftgic -- /bin/swiftgic inject \
		--variant "${run#*-}" --json /dev/virtio-ports/results
done
jobs_end
[[ ! $failed ]] || exit 1

mkdir -p build/results
rc=0
build/host/swiftgic inject --table --json "$tmp/inject.json" \
	"$tmp"/{6.1,6.12}-{stock,patched}.json || rc=$?
if [[ -s $tmp/inject.json ]]; then
	mv "$tmp/inject.json" build/results/.inject.$$
	mv build/results/.inject.$$ build/results/inject.json
	echo "results: build/results/inject.json ($SECONDS s)"
fi
exit $rc
