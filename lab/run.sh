#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make run
# Measures moving the VGIC state of VMs with 1 to 512 vCPUs, one register a
# call and batched, in the lab; writes build/results/transfer.json and prints
# the table. Fails if the two read differently, or a target is missed.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
version=6.12
cd "$repo"

lab/deps.sh
stock=$(lab/kernel.sh $version stock)
patched=$(lab/kernel.sh $version patched)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
start=$SECONDS done=0 failed=''

finished() { measured "$@"; }

# measure NAME KERNEL OPTIONS...: the clock counts instructions, so that two at
# once do not disturb each other.
measure() {
	job "$1" "$tmp/$1.out" "$tmp/$1.err" \
		lab/boot.sh --kernel "$2" --icount --timeout 300 \
		--results "$tmp/$1.json" \
		--file build/arm64/swiftgic -- /bin/swiftgic bench \
		--clock instructions --json /dev/virtio-ports/results "${@:3}"
}

# The longest first.
total=6
measure 512-get "$patched" --vcpus 512 --direction get
measure 512-put "$patched" --vcpus 512 --direction put
measure 256 "$patched" --vcpus 256
measure 1-to-160 "$patched" --vcpus 1,16,64,160
measure one-register-patched "$patched" --one-register
measure one-register-stock "$stock" --one-register
jobs_end
[[ ! $failed ]] || exit 1

mkdir -p build/results
rc=0
build/host/swiftgic bench --table --complete --json "$tmp/transfer.json" \
	"$tmp"/{1-to-160,256,512-get,512-put,one-register-{patched,stock}}.json \
	|| rc=$?
if [[ -s $tmp/transfer.json ]]; then
	mv "$tmp/transfer.json" build/results/.transfer.$$
	mv build/results/.transfer.$$ build/results/transfer.json
	echo "results: build/results/transfer.json ($SECONDS s)"
fi
exit $rc
