#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: lab/selftests.sh VERSION
# Runs the kernel's own selftests of the VGIC, and those that kernel/selftests adds,
# on the stock and on the patched kernel, prints the verdicts side by side, and fails
# if two differ; what is added has to pass on the patched kernel and to skip on the
# other. Their output is kept in build/selftests. VERSION is as for lab/kernel.sh.
#
# 6.1 has no vgic_lpi_stress yet; there it is that of 6.12.

set -euo pipefail
. "${0%/*}/lib.sh"
. "${0%/*}/apt.sh"
[[ ${1:-} == --help ]] && help
[[ $# -eq 1 ]] || help 1 >&2
cd "$repo"
lab/deps.sh

# compile PROGRAM...: of the selftests in $kvm
compile() {
	run "selftests $version: building" unpacked "$log" \
		make -C "$kvm" ARCH=arm64 CROSS_COMPILE="$cross" \
		LDFLAGS="-static -pthread -no-pie" \
		KHDR_INCLUDES="-isystem $work/usr/include" "$@" ||
		failed building
}

# added VERSION: the patches that add selftests
added() {
	find "$repo/kernel/selftests" -path "*/$1/*.patch" | sort
}

# build VERSION: sets tests to a folder with the programs
recipe=1
build() {
	local version=$1 deb package key kernel work log kvm f
	deb=$(fetch_kernel "$version")
	package=${deb##*/} package=${package%%_*}
	key=$({
		echo "$recipe" "${deb##*/}" \
			"$("${cross}gcc" --version | head -n 1)"
		added "$version" | xargs -r cat
	} | sha256sum)
	tests=$cache/selftests/$version-${key::12}
	whole "$tests" && return
	# Its work folder has the headers' sources.
	kernel=$cache/work/$version
	lab/kernel.sh "$version" stock >/dev/null
	lock "$cache/selftests.lock"
	whole "$tests" 2>/dev/null && return

	work=$cache/selftests/work log=$cache/selftests/log
	rm -rf "$work"
	mkdir -p "$work/out"
	unpacked() { du -sm "$work" | awk '{ print $1 " MB" }'; }
	# shellcheck disable=SC2016
	run "selftests $version: unpacking" unpacked "$log" \
		bash -euo pipefail -c '
		dpkg-deb --fsys-tarfile "$1" |
		tar -xO "./usr/src/$2.tar.xz" | xz -dT0 |
		tar -x --strip-components=1 -C "$3" \
			"$2/scripts/subarch.include" \
			"$2/arch/arm64/tools" "$2/tools/arch" \
			"$2/tools/build" "$2/tools/include" "$2/tools/lib" \
			"$2/tools/scripts" "$2/tools/testing/selftests"
	' - "$deb" "$package" "$work" || failed unpacking
	run "selftests $version: headers" unpacked "$log" \
		make -C "$kernel/orig" O="$work/obj" ARCH=arm64 \
		CROSS_COMPILE="$cross" INSTALL_HDR_PATH="$work/usr" \
		headers_install || failed headers_install
	cp "$repo/lib/uapi/vgic_batch.h" "$work/usr/include/asm/"
	printf '#ifndef __ASSEMBLER__\n#include <asm/vgic_batch.h>\n#endif\n' \
		>>"$work/usr/include/asm/kvm.h"

	# What 6.1.192's vgic_init includes, and its tools do not have
	f=$work/tools/include/linux/bitfield.h
	[[ -e $f ]] || printf '%s\n' \
		'#define FIELD_PREP(mask, val) (((val) * ((mask) & -(mask))) & (mask))' \
		'#define FIELD_GET(mask, reg) (((reg) & (mask)) / ((mask) & -(mask)))' \
		>"$f"

	added "$version" | xargs -r cat | patch -s -p1 -F0 -d "$work" ||
		failed patching
	kvm=$work/tools/testing/selftests/kvm
	local programs=()
	for f in "$kvm"/a*64/vgic_*.c; do programs+=("${f%.c}"); done
	compile "${programs[@]}"
	cp "${programs[@]}" "$work/out/"

	# What 6.1 can run: its memory slots are set by the older call.
	f=$kvm/aarch64/vgic_lpi_stress
	if [[ -e $f ]]; then
		sed -i -e 's/KVM_SET_USER_MEMORY_REGION2, &/KVM_SET_USER_MEMORY_REGION, (struct kvm_userspace_memory_region *)\&/' \
			-e '/TEST_REQUIRE_SET_USER_MEMORY_REGION2();/d' \
			"$kvm/lib/kvm_util.c"
		rm "$f"
		compile "$f"
		cp "$f" "$work/out/vgic_lpi_stress.old"
	fi
	place "$work/out" "$tests"
	rm -rf "$work"
}

failed() {
	tail -n 30 "$cache/selftests/log" >&2
	die "selftests: $1 failed; the log is $cache/selftests/log"
}

version=$1
build "$version"
programs=()
for program in "$tests"/vgic_*; do
	[[ $program == *.old ]] || programs+=("$program")
done
if [[ $version == 6.1 ]]; then
	build 6.12
	programs+=("$tests/vgic_lpi_stress.old")
fi

out=${OUT:-build/selftests}/$version
rm -rf "$out"
mkdir -p "$out"

# The selftests' own exit statuses: 4 is "skipped". One that fails says where.
declare -A verdicts=()
finished() {
	local where
	case $2 in
	0) verdicts[$1]=pass ;;
	4) verdicts[$1]=skip ;;
	*)
		where=$(grep -hoE '[a-z0-9_/]+\.c:[0-9]+' "$out/${1/ /-}".{out,err} |
			head -n 1 || true)
		verdicts[$1]="fails ${where:-($2)}"
		;;
	esac
}

for variant in stock patched; do
	kernel=$(lab/kernel.sh "$version" "$variant")
	for program in "${programs[@]}"; do
		name=$(basename "$program" .old)
		arguments=()
		[[ $name != vgic_lpi_stress ]] || arguments=(-i 20 -v 8 -d 8 -e 16)
		job "$name $variant" "$out/$name-$variant.out" \
			"$out/$name-$variant.err" lab/boot.sh \
			--kernel "$kernel" --smp 2 --timeout 900 \
			--file "$program:/bin/$name" \
			--log "$out/$name-$variant.log" -- \
			"/bin/$name" ${arguments[@]+"${arguments[@]}"}
	done
done
jobs_end

passed=0 failed=0 skipped=0
printf '%-20s %-24s %s\n' "selftest, $version" stock patched
for program in "${programs[@]}"; do
	name=$(basename "$program" .old)
	stock=${verdicts["$name stock"]} patched=${verdicts["$name patched"]}
	printf '%-20s %-24s %s\n' "$name" "$stock" "$patched"
	if added "$version" | xargs -r grep -q "^+TEST_GEN_PROGS.*/$name\$"; then
		[[ $stock != skip ]] || stock=pass
	fi
	if [[ $stock != "$patched" ]]; then
		failed=$((failed + 1))
	elif [[ $stock == skip ]]; then
		skipped=$((skipped + 1))
	else
		passed=$((passed + 1))
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
