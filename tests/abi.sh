#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/abi.sh [--accept]
# Compares the ABI of the shared library with tests/abi/swiftgic.abi: TAP; with
# --accept, which `make abi` runs, takes it as it is now.

set -euo pipefail
repo=$(cd "${0%/*}/.." && pwd)
cd "$repo"
abi=tests/abi/swiftgic.abi
shared=$(echo build/host/libswiftgic.so.*)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# What the public header does not show is not ABI.
dump() {
	abidw --headers-dir include --drop-private-types --no-show-locs \
		--exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-architecture "$1" |
		sed '1a <!-- SPDX-License-Identifier: MIT -->' >"$2"
}

# same SHARED: has it the ABI that was accepted?
same() {
	dump "$1" "$tmp/abi"
	abidiff $abi "$tmp/abi" >"$tmp/diff"
}

if [[ ${1:-} == --accept ]]; then
	mkdir -p "${abi%/*}"
	dump "$shared" $abi
	echo "$abi is the ABI of $shared now; git diff shows what changed"
	exit
fi

echo 1..2
bad=0
if same "$shared"; then
	echo "ok 1 - the ABI is that of $abi"
else
	echo "not ok 1 - the ABI is that of $abi"
	sed 's/^/# /' "$tmp/diff"
	echo '# If it was meant: raise the version in lib/internal.h if callers have to'
	echo '# be built again, run make abi, and commit the file with the change.'
	bad=1
fi

# A check that sees nothing would pass as well.
sed 's/uint32_t nr_irqs;/uint64_t nr_irqs;/' include/swiftgic.h >"$tmp/swiftgic.h"
gcc -g -shared -fPIC -I"$tmp" -Ilib -Ilib/uapi lib/*.c -lz \
	-Wl,--version-script=lib/swiftgic.map -Wl,-soname,libswiftgic.so.0 \
	-o "$tmp/changed.so"
if same "$tmp/changed.so"; then
	echo 'not ok 2 - a changed field would have been seen'
	bad=1
else
	echo 'ok 2 - a changed field would have been seen'
	sed 's/^/# /' "$tmp/diff"
fi
exit $bad
