#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: lab/steps.sh VERSION
# Builds KVM after each patch of the series of VERSION, as make export writes it,
# with W=1 and sparse; fails at the first patch that does not build or that warns of
# something that the kernel without the series does not. VERSION is as for
# lab/kernel.sh. The logs are in build/steps.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
[[ $# -eq 1 ]] || help 1 >&2
version=$1
cd "$repo"
lab/deps.sh
command -v sparse >/dev/null ||
	die "sparse is missing: apt-get install sparse"
config=$(lab/kernel.sh "$version" stock)/config
orig=$(lab/kernel.sh "$version" source)
work=$cache/work/$version tree=$cache/work/$version/steps
lock "$work.lock"
out=$repo/build/steps/$version
# From nothing: an object of the last run may be newer than the source without a patch.
rm -rf "$tree" "$out" "$work/objsteps"
mkdir -p "$out"

# Hard links: patch does not write to a file in place.
cp -al "$orig" "$tree"
mkdir -p "$work/objsteps"
cp "$config" "$work/objsteps/.config"

kmake() {
	local log=$1
	shift
	run "steps $version: $(basename "$log" .log)" compiled "$log" \
		make -C "$tree" O="$work/objsteps" -j"$(nproc)" ARCH=arm64 \
		CROSS_COMPILE="$cross" "$@"
}
compiled() { echo "$(grep -cE '^  (CC|AS|CHECK) ' "$log") objects"; }

# warnings LOG: without the line numbers, which every patch moves
warnings() {
	sed -nE "s,^($tree/|\.\./steps/)?([^ :]+):[0-9]+(:[0-9]+)?: (warning|error): ,\2: ,p" \
		"$1" | sort -u
}

step() {
	log=$out/$1.log
	# sparse 0.6.4 does not know the former, and the kernel then goes without.
	kmake "$log" W=1 C=1 CHECK='sparse -D__typeof_unqual__=__typeof__' \
		arch/arm64/kvm/ && return
	tail -n 30 "$log" >&2
	say "steps $version: $1 does not build; the log is $log"
	echo "not ok $n - $1 builds"
	echo "$passed passed, $((failed + 1)) failed, 0 skipped"
	exit 1
}

lab/export.sh --out "$out" "$orig"
mails=("$out"/*/[0-9]*.patch)
mails=("${mails[@]:1}")
log=$out/prepare.log
kmake "$log" olddefconfig prepare || die "cannot prepare; the log is $log"
echo "1..${#mails[@]}"
n=0 passed=0 failed=0
step stock
# A file that has not changed is not looked at again, so the warnings add up.
warnings "$out/stock.log" >"$out/known"
for mail in "${mails[@]}"; do
	n=$((n + 1))
	name=$(basename "$mail" .patch)
	patch -s -p1 -F0 -d "$tree" <"$mail"
	step "$name"
	warnings "$out/$name.log" >"$out/now"
	if comm -13 "$out/known" "$out/now" | grep . >"$out/new"; then
		echo "not ok $n - $name warns"
		sed 's/^/# /' "$out/new"
		failed=$((failed + 1))
	else
		echo "ok $n - $name"
		passed=$((passed + 1))
	fi
done
rm -rf "$tree"
echo "$passed passed, $failed failed, 0 skipped"
[[ $failed -eq 0 ]]
