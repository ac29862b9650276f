#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: lab/deps.sh [--sysroot | --update]
# Makes sure that the packages below are there: silent if they are, installs
# them as root, else prints the line to run. --sysroot also prints the folder of
# the arm64 libraries; --update lets go of the fetched packages' versions.

set -euo pipefail
. "${0%/*}/lib.sh"
. "${0%/*}/apt.sh"

packages=(
	# build: the kernel, our tools
	make gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross
	flex bison bc xz-utils rsync patch dpkg-dev
	# lab: the machine and what it boots
	qemu-system-arm cpio jq
	# the lab's own QEMU, which runs in it
	ninja-build pkgconf python3-venv python3-distlib
	# checks and unit tests
	libcmocka-dev libcjson-dev zlib1g-dev shellcheck clang-format spin
	sparse git clang libclang-rt-dev
	# the library's: manual, ABI, a program in C++
	scdoc mandoc abigail-tools g++ pkg-config
)

sysroot=$cache/sysroot

# zlib for arm64, and cJSON, whose package has no static library, so it is made
# from its source package.
make_sysroot() {
	local dsc deb tmp=$sysroot.tmp
	dsc=$(fetch cjson "$codename" source)
	deb=$(fetch zlib1g-dev)
	rm -rf "$tmp"
	mkdir -p "$tmp/lib" "$tmp/include/cjson"
	dpkg-source --no-check -x "$dsc" "$tmp/src" >"$tmp.log" 2>&1 ||
		die "cannot unpack $dsc; the log is $tmp.log"
	"${cross}gcc" -O2 -c "$tmp/src/cJSON.c" -o "$tmp/cJSON.o"
	"${cross}ar" rcs "$tmp/lib/libcjson.a" "$tmp/cJSON.o"
	mv "$tmp/src/cJSON.h" "$tmp/include/cjson/"
	dpkg-deb -x "$deb" "$tmp/zlib"
	mv "$tmp/zlib/usr/include/"z*.h "$tmp/include/"
	mv "$tmp/zlib/usr/lib/"*/libz.a "$tmp/lib/"
	rm -rf "$tmp/src" "$tmp/zlib" "$tmp/cJSON.o" "$tmp"/cjson_*
	place "$tmp" "$sysroot"
}

case ${1:-} in
--help) help ;;
--update)
	# The lists first: without a network, all stays as it is.
	for lists in "$cache"/apt/*/; do
		[[ -d $lists ]] || continue
		lists=$(basename "$lists")
		apt_update "${lists%-*}" "${lists##*-}" ||
			die "cannot fetch the package lists of ${lists%-*}"
	done
	find "$cache/deb" -type l -delete 2>/dev/null || true
	rm -rf "$sysroot"
	exit
	;;
esac

# dpkg-query fails if one is unknown, which is an answer, too. A machine may have
# a package of another architecture, which is not the one.
have=$(dpkg-query -W -f '${db:Status-Status} ${Package} ${Architecture}\n' \
	"${packages[@]}" 2>/dev/null |
	sed -n "s/ \(all\|$(dpkg --print-architecture)\)\$//p" || true)
missing=()
for p in "${packages[@]}"; do
	[[ $'\n'$have$'\n' == *$'\n'"installed $p"$'\n'* ]] || missing+=("$p")
done

if [[ ${#missing[@]} -gt 0 ]]; then
	install=(apt-get install -y --no-install-recommends "${missing[@]}")
	if [[ $(id -u) -ne 0 ]]; then
		say "missing packages; run as root: ${install[*]}"
		exit 1
	fi
	lock "$cache/deps.lock"
	log=$cache/deps.log
	export DEBIAN_FRONTEND=noninteractive
	step() { tail -n 1 "$log" | cut -c -60; }
	# Lists may be missing or older than the mirror; then update, once.
	run "installing ${#missing[@]} packages" step "$log" "${install[@]}" || {
		run "apt-get update" step "$log" apt-get update || true
		run "installing ${#missing[@]} packages" step "$log" \
			"${install[@]}" || {
			tail -n 5 "$log" >&2
			die "cannot install: ${missing[*]}"
		}
	}
	say "installed in $SECONDS s: ${missing[*]}"
fi

# An earlier one has no zlib.
have_sysroot() {
	[[ -e $sysroot/lib/libz.a ]] && whole "$sysroot"
}

if ! have_sysroot; then
	lock "$cache/sysroot.lock"
	have_sysroot 2>/dev/null || make_sysroot
fi
[[ ${1:-} != --sysroot ]] || echo "$sysroot"
