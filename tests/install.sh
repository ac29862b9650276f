#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/install.sh [KERNEL]
# Installs to an empty folder and builds the README's programs against it, as
# somebody who has nothing else; with KERNEL, a folder that lab/kernel.sh has
# printed, runs one in the lab, too: TAP.

set -euo pipefail
. "${0%/*}/tap.sh"
repo=$(cd "${0%/*}/.." && pwd)
kernel=${1:-}
snapshot=$(echo "$repo"/tests/data/*.sgic) snapshot=${snapshot%% *}
cross=aarch64-linux-gnu-
unset MAKEFLAGS MAKELEVEL

plan 15
# installs DESTDIR [VARIABLE=VALUE...]
installs() {
	make -C "$repo" install DESTDIR="$1" "${@:2}"
}

installed() {
	local file
	cd "$tmp/host/usr/local"
	for file in bin/swiftgic include/swiftgic.h lib/libswiftgic.a \
			lib/libswiftgic.so lib/pkgconfig/swiftgic.pc \
			share/man/man1/swiftgic.1 share/man/man3/sgic_version.3 \
			share/bash-completion/completions/swiftgic; do
		[[ -s $file ]] || { echo "no $file" && return 1; }
	done
}

no_lab() {
	# What a machine without the lab's packages would run
	make -C "$repo" -n install DESTDIR="$tmp/none" >"$tmp/recipe"
	! grep -n 'deps\.sh\|aarch64' "$tmp/recipe"
}

# block N: the N-th C program of the README
block() {
	awk -v want="$1" '
		/^```$/ { inside = 0 }
		inside && n == want
		/^```c$/ && ++n { inside = 1 }' \
		<(sed -n '/^## The library/,/^## The command/p' "$repo/README.md")
}

# pc ROOT ARGS...: pkg-config, with what is installed in ROOT
pc() {
	PKG_CONFIG_PATH=$1/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$1 \
		pkg-config "${@:2}" swiftgic
}

# builds ROOT OUTPUT COMPILER... : the README's program, in an empty folder
builds() {
	local flags
	read -ra flags < <(pc "$1" --cflags --libs)
	mkdir -p "$2.d"
	cd "$2.d"
	block 2 >describe.c
	"${@:3}" describe.c "${flags[@]}" -o "$2"
}

builds_static() {
	local flags
	read -ra flags < <(pc "$tmp/host" --static --cflags --libs)
	mkdir -p "$tmp/static.d"
	cd "$tmp/static.d"
	block 2 >describe.c
	gcc -static describe.c "${flags[@]}" -o "$tmp/static"
}

save_function() {
	local flags
	read -ra flags < <(pc "$tmp/host" --cflags)
	block 1 >"$tmp/save.c"
	gcc -Wall -Wextra -Wno-missing-field-initializers -Werror -c \
		"$tmp/save.c" "${flags[@]}" -o "$tmp/save.o"
	nm -u "$tmp/save.o" | grep sgic_device_save
}

describes() {
	"$@" "$snapshot" | tee "$tmp/said"
	grep -E '^[0-9]+ vCPUs, [0-9]+ interrupts, [0-9]+ ITSs, [0-9]+ registers$' \
		"$tmp/said"
}

plain_plus() {
	g++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only \
		"$tmp/host/usr/local/include/swiftgic.h"
	printf '#include <swiftgic.h>\nint main() { return !sgic_version(); }\n' \
		>"$tmp/plus.cc"
	g++ -I"$tmp/host/usr/local/include" "$tmp/plus.cc" \
		-L"$tmp/host/usr/local/lib" -lswiftgic -o "$tmp/plus"
	LD_LIBRARY_PATH=$tmp/host/usr/local/lib "$tmp/plus"
}

strict_c() {
	gcc -std=c99 -Wall -Wextra -Wpedantic -Werror -x c -fsyntax-only \
		"$tmp/host/usr/local/include/swiftgic.h"
}

# Only what the header declares, all of it, and with a version
exports() {
	local so=$tmp/$1/usr/local/lib/libswiftgic.so
	nm -D --defined-only "$so" | awk '$2 != "A" { print $3 }' | sort >"$tmp/has"
	sed -n 's/^[a-z].*\<\(sgic_[a-z_]*\)(.*/\1@@SWIFTGIC_0.1/p' \
		"$repo/include/swiftgic.h" | sort >"$tmp/wants"
	diff "$tmp/wants" "$tmp/has"
}

versions_agree() {
	local version
	version=$(pc "$tmp/host" --modversion)
	[[ $("$tmp/host/usr/local/bin/swiftgic" --version) == \
		"swiftgic $version" ]]
	[[ -e $tmp/host/usr/local/lib/libswiftgic.so.$version ]]
}

in_lab() {
	local lib=/usr/aarch64-linux-gnu/lib
	"$repo/lab/boot.sh" --kernel "$kernel" --file "$tmp/arm64-program" \
		--file "$snapshot:/snapshot" \
		--file "$lib/ld-linux-aarch64.so.1:/lib/ld-linux-aarch64.so.1" \
		--file "$lib/libc.so.6:/lib/libc.so.6" \
		--file "$(realpath "$tmp/arm64/usr/local/lib/libswiftgic.so"):/lib/libswiftgic.so.0" \
		-- /bin/arm64-program /snapshot
}

rule 'installs to a folder' installs "$tmp/host"
rule 'all of it is there' installed
rule 'and nothing of the lab was needed' no_lab
rule 'the versions agree' versions_agree
rule 'the header is C99' strict_c
rule 'the header is C++' plain_plus
rule 'the shared library exports the public calls only' exports host
rule "the README's function is C without a warning" save_function
rule "the README's program is built by one line" \
	builds "$tmp/host" "$tmp/program" gcc
rule 'and runs' env LD_LIBRARY_PATH="$tmp/host/usr/local/lib" \
	"$tmp/program" "$snapshot"
rule 'the same, static' builds_static
rule 'and runs, with the output that it should have' describes "$tmp/static"
rule 'installs for arm64' installs "$tmp/arm64" ARCH=arm64
rule "the README's program is built for arm64" \
	builds "$tmp/arm64" "$tmp/arm64-program" "${cross}gcc"
if [[ $kernel ]]; then
	rule 'and runs in the lab' in_lab
else
	echo 'ok 15 - and runs in the lab # SKIP no kernel given'
fi
exit $bad
