#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/cross.sh KERNEL KERNEL
# Snapshots saved under one kernel and restored under another, batched and one
# by one: TAP. A KERNEL is a folder that lab/kernel.sh has printed.

set -euo pipefail
. "${0%/*}/tap.sh"
repo=$(cd "${0%/*}/.." && pwd)
[[ $# -eq 2 ]] || { sed -n 3p "$0" >&2 && exit 2; }
old=$1 new=$2

# lab KERNEL [OPTION...] -- COMMAND...
lab() {
	"$repo/lab/boot.sh" --kernel "$1" --smp 2 \
		--file "$repo/build/arm64/swiftgic" "${@:2}"
}

# save KERNEL FILE [OPTION...]
save() {
	lab "$1" --results "$2" -- /bin/swiftgic save --vcpus 160 --seed 3 \
		"${@:3}" /dev/virtio-ports/results
}

# restore KERNEL FILE [OPTION...]
restore() {
	lab "$1" --file "$2:/snapshot" -- /bin/swiftgic restore "${@:3}" \
		/snapshot
}

version() {
	cat "$1/version"
}

plan 6
rule "saved on $(version "$old") without the batch call" \
	save "$old" "$tmp/old" --no-batch
rule "saved on $(version "$new") with it" save "$new" "$tmp/new"
rule 'the two are the same, byte for byte' cmp "$tmp/old" "$tmp/new"
rule "the older's is restored on $(version "$new")" restore "$new" "$tmp/old"
rule "the newer's is restored on $(version "$old")" \
	restore "$old" "$tmp/new" --no-batch
rule "and batched" restore "$old" "$tmp/new"
exit $bad
