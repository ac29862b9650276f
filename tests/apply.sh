#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/apply.sh TREE
# kernel/apply, on copies of what it touches in a pristine kernel tree: TAP.

set -euo pipefail
. "${0%/*}/tap.sh"
apply=$(cd "${BASH_SOURCE[0]%/*}/../kernel" && pwd)/apply
if [[ ! -e ${1:-}/Makefile ]]; then
	echo "1..0 # SKIP no kernel tree ${1:-}"
	exit
fi
pristine=$1

plan 7

fresh() {
	rm -rf "$tmp/tree"
	mkdir "$tmp/tree"
	(cd "$pristine" && { "$apply" --list . | xargs ls -d Makefile || true; } \
		2>/dev/null | xargs cp --parents -t "$tmp/tree")
}

sum() {
	(cd "$tmp/tree" && find . -type f -print0 | sort -z |
		xargs -0 sha256sum)
}

applies() {
	fresh
	"$apply" "$tmp/tree" &&
		grep -q KVM_DEV_ARM_VGIC_GRP_BATCH_REGS \
			"$tmp/tree/arch/arm64/include/uapi/asm/kvm.h" &&
		cmp "$tmp/tree/arch/arm64/kvm/vgic/vgic-batch.c" \
			"${apply%/*}/src/arch/arm64/kvm/vgic/vgic-batch.c"
}

# refuses PATTERN: says so, exits with 1, and changes nothing
refuses() {
	local before rc=0
	before=$(sum)
	"$apply" "$tmp/tree" >"$tmp/said" 2>&1 || rc=$?
	cat "$tmp/said"
	[[ $rc -eq 1 ]] && grep -q "$1" "$tmp/said" && [[ $(sum) == "$before" ]]
}

# What later point releases do to a file: all hunks further down. A hunk that
# also fits elsewhere would land there.
drifted() {
	local lines file
	fresh
	"$apply" "$tmp/tree"
	mv "$tmp/tree" "$tmp/straight"
	for lines in 2 12 13 58 250; do
		fresh
		for file in $(cd "$pristine" && "$apply" --list . |
				grep '\.c$'); do
			[[ ! -e $tmp/tree/$file ]] || drift "$tmp/tree/$file"
		done
		"$apply" "$tmp/tree"
		for file in $(cd "$tmp/tree" && find . -name '*.c'); do
			grep -v '^// drift$' "$tmp/tree/$file" |
				cmp - "$tmp/straight/$file" || return 1
		done
	done
}

drift() {
	{
		head -n 12 "$1"
		for ((i = 0; i < lines; i++)); do echo '// drift'; done
		tail -n +13 "$1"
	} >"$1.drift"
	mv "$1.drift" "$1"
}

unknown() {
	fresh
	sed -i 's/^VERSION = .*/VERSION = 5/' "$tmp/tree/Makefile"
	refuses 'no series for Linux 5'
}

moved() {
	fresh
	sed -i 's/vgic_v3_attr_regs_access/moved/' \
		"$tmp/tree/arch/arm64/kvm/vgic/vgic-kvm-device.c"
	refuses 'Add-batch-register-access.patch does not apply' &&
		grep -q '^@@' "$tmp/said"
}

missing() {
	fresh
	rm "$tmp/tree/arch/arm64/kvm/vgic/trace.h"
	refuses 'without arch/arm64/kvm/vgic/trace.h'
}

no_tree() {
	rm -rf "$tmp/tree"
	mkdir "$tmp/tree"
	refuses 'not a kernel tree'
}

rule 'the series applies, with the new files' applies
rule 'the same in files whose lines have moved' drifted
fresh
"$apply" "$tmp/tree" >/dev/null
rule 'a tree that has it is refused' refuses 'has it already'
rule 'a tree of another version is refused' unknown
rule 'a hunk that fails is shown, and nothing is changed' moved
rule 'a missing file is named' missing
rule 'a folder without a kernel is refused' no_tree
exit $bad
