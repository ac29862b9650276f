#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make migrate [ONLINE=N]
# Measures live migration of a guest with 160 vCPUs, N of them online (16), under
# redis-benchmark SET load, on the stock and the patched kernel, between stock and
# patched QEMUs, in the lab; writes build/results/migrate.json and prints the
# table. Fails if a target is missed.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
version=6.12 qemu=10.0 online=${ONLINE:-16}
[[ $online =~ ^[1-9][0-9]*$ && $online -le 160 ]] ||
	die "ONLINE=$online is no number from 1 to 160"
cd "$repo"

lab/deps.sh
declare -A kernels qemus
for variant in stock patched; do
	kernels[$variant]=$(lab/kernel.sh $version $variant)
	qemus[$variant]=$(lab/qemu.sh $qemu $variant)
done
guest=$(lab/guest.sh --redis)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
start=$SECONDS done=0 total=2 failed=''

reported() { tail -n 1 "$tmp/$variant.out"; }

# One after the other: what is measured is time, and a lab takes two processors.
for variant in stock patched; do
	watch "migrating, $variant kernel" reported &
	watcher=$!
	rc=0
	setpriv --pdeathsig TERM \
		lab/boot.sh --kernel "${kernels[$variant]}" --smp 2 \
		--timeout 7200 --results "$tmp/$variant.json" \
		--out "$tmp/$variant.out" \
		--file build/arm64/swiftgic \
		--file build/arm64/tests/migrate/relay:/bin/sh \
		--file "${qemus[stock]}/qemu-system-aarch64:/bin/qemu-stock" \
		--file "${qemus[patched]}/qemu-system-aarch64:/bin/qemu-patched" \
		--file "$guest/Image:/guest/Image" \
		--file "$guest/initrd:/guest/initrd" -- \
		/bin/swiftgic migrate --kernel $variant --online "$online" \
		--version "$(cat "${qemus[$variant]}/version")" \
		--json /dev/virtio-ports/results \
		>"$tmp/$variant.err" 2>&1 || rc=$?
	kill "$watcher" 2>/dev/null || true
	measured $variant $rc
	grep ' QEMU: ' "$tmp/$variant.out" >&2
	[[ ! $failed ]] || exit 1
done

mkdir -p build/results
rc=0
build/host/swiftgic migrate --table --json "$tmp/migrate.json" \
	"$tmp"/{stock,patched}.json || rc=$?
if [[ -s $tmp/migrate.json ]]; then
	mv "$tmp/migrate.json" build/results/.migrate.$$
	mv build/results/.migrate.$$ build/results/migrate.json
	echo "results: build/results/migrate.json ($SECONDS s)"
fi
exit $rc
