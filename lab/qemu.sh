#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: lab/qemu.sh VERSION stock|patched
# Prints the folder of a QEMU for arm64 hosts with KVM, static: the program
# qemu-system-aarch64 and version. VERSION is 10.2, 10.0 or 7.2, from the source
# package of the Debian release that has it. Builds what the cache does not have;
# the newest source is fetched once, and again after `make update`.

set -euo pipefail
. "${0%/*}/lib.sh"
. "${0%/*}/apt.sh"
. "${0%/*}/tree.sh"

[[ ${1:-} == --help ]] && help
[[ $# -eq 2 && ($2 == stock || $2 == patched) ]] || help 1 >&2
version=$1 variant=$2
start=$SECONDS
# 7.2 does not build for arm without TCG, and --python is only for its own meson.
own=(ioctl) python=(--python=/usr/bin/python3)
case $version in
10.2)
	suite=sid options=(--disable-tcg --disable-download)
	own=(ioctl cxl)
	;;
10.0) suite=trixie options=(--disable-tcg --disable-download) ;;
7.2)
	suite=bookworm options=(--enable-tcg "--meson=meson")
	python=()
	;;
*) die "no QEMU $version; there is: 10.2 10.0 7.2" ;;
esac

# The libraries' static halves and headers; a meson that is new enough.
libraries=(libglib2.0-dev libpcre2-dev libffi-dev zlib1g-dev libfdt-dev)
[[ $version != 7.2 ]] || libraries+=(libpixman-1-dev)
meson_suite=trixie

configs=("$repo/lab/qemu.config")
f=$repo/lab/qemu-$version.config
[[ ! -e $f ]] || configs+=("$f")

# What decides the result is in the entry's name. Raise recipe when a change
# here makes for another QEMU.
recipe=2
# sid has newer ones, too.
of=()
[[ $suite != sid ]] || of=("$version")
dsc=$(fetch qemu $suite source ${of[@]+"${of[@]}"})
release=${dsc##*/} release=${release#*_} release=${release%.dsc}
point=${release%%[+-]*}
debs=()
for p in "${libraries[@]}"; do debs+=("$(fetch "$p")"); done
meson=$(fetch meson $meson_suite)
key=$({
	echo "$recipe" "$release" "$("${cross}gcc" --version | head -n 1)"
	echo "${options[@]}" "${debs[@]##*/}"
	cat "${configs[@]}"
	for f in "${own[@]}"; do cat "$repo/lab/qemu-$f.c"; done
	if [[ $variant == patched ]]; then
		cd "$repo"
		find "qemu/series/$version" -type f -print0 | sort -z |
			xargs -0 sha256sum
	fi
} | sha256sum)
entry=$cache/qemu/$point-$variant-${key::12}
name="QEMU $point $variant ($release)"

work=$cache/work/qemu-$version
from_cache "$work.lock"

src=$work/src obj=$work/obj$recipe log=$work.log tools=$work/tools
tmp=$cache/qemu/tmp.$version
rm -rf "$tmp" "$work.tmp"
mkdir -p "$tmp" "$cache/work"

failed() {
	tail -n 30 "$log" >&2
	die "$name: $1 failed; the log is $log"
}

# unpack DSC DIR: the source, with the distribution's patches. As dpkg-source -x
# does it, but without the firmware, which is most of the files.
unpack() {
	local base=${1%-*} patch
	mkdir "$2"
	tar -xf "$base".orig.tar.xz -C "$2" --strip-components=1 \
		--exclude='*/roms/*'
	tar -xf "${1%.dsc}".debian.tar.xz -C "$2" debian/patches
	while read -r patch; do
		[[ ! $patch || $patch == '#'* ]] && continue
		! grep -q '^+++ [^/]*/roms/' "$2/debian/patches/$patch" ||
			continue
		patch -d "$2" -p1 -s -f <"$2/debian/patches/$patch"
	done <"$2/debian/patches/series"
}
export -f unpack

# extract: the source, the libraries, meson
extract() {
	local deb
	[[ -e $work/$release ]] && return
	rm -rf "$work"
	mkdir -p "$work.tmp/tools/bin"
	extracted() { du -sm "$work.tmp" | awk '{ print $1 " MB" }'; }
	run "$name: unpacking" extracted "$log" bash -euo pipefail -c \
		'unpack "$@"' - "$dsc" "$work.tmp/orig" || failed unpacking
	for deb in "${debs[@]}" "$meson"; do
		dpkg-deb -x "$deb" "$work.tmp/tools"
	done
	cp -al "$work.tmp/orig" "$work.tmp/src"
	# A compiler that says of itself where the libraries are: meson asks it.
	cat >"$work.tmp/tools/bin/cc" <<-EOF
	#!/bin/sh
	exec ${cross}gcc -B$tools/usr/lib/aarch64-linux-gnu/ \
		-L$tools/usr/lib/aarch64-linux-gnu "\$@" \
		-isystem $tools/usr/include \
		-isystem $tools/usr/include/aarch64-linux-gnu
	EOF
	chmod +x "$work.tmp/tools/bin/cc"
	touch "$work.tmp/$release"
	mv "$work.tmp" "$work"
}

configure() {
	[[ -e $obj/build.ninja ]] && return
	mkdir -p "$obj"
	cd "$obj"
	configured() { grep -c 'found:\|Checking' "$log"; }
	run "$name: configuring" configured "$log" "$src/configure" \
		${python[@]+"${python[@]}"} --cross-prefix="$cross" \
		--cc="$tools/bin/cc" \
		--target-list=aarch64-softmmu --with-devices-aarch64=lab \
		--without-default-features --without-default-devices \
		--extra-ldflags="-Wl,--wrap=ioctl ${objects[*]}" \
		--enable-kvm --static --enable-fdt=system \
		--enable-trace-backends=log --disable-debug-info \
		--disable-install-blobs --disable-werror "${options[@]}" ||
		failed configuring
	cd "$repo"
}

export PATH=$tools/usr/bin:$PATH
export PYTHONPATH=$tools/usr/lib/python3/dist-packages
export PKG_CONFIG=pkg-config PKG_CONFIG_SYSROOT_DIR=$tools
export PKG_CONFIG_LIBDIR=$tools/usr/lib/aarch64-linux-gnu/pkgconfig:$tools/usr/share/pkgconfig

extract
patch_tree "$repo/qemu/apply" VERSION
cat "${configs[@]}" >"$work/lab.mak"
install -C -m 644 "$work/lab.mak" "$src/configs/devices/aarch64-softmmu/"
objects=()
for f in "${own[@]}"; do
	objects+=("$work/$f.o")
	"${cross}gcc" -Wall -Werror -O2 -fPIE -c "$repo/lab/qemu-$f.c" \
		-o "$work/$f.o"
done
rm -f "$obj/qemu-system-aarch64"
configure
compiled() { grep -o '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 1; }
run "$name: building" compiled "$log" ninja -C "$obj" -j"$(nproc)" \
	qemu-system-aarch64 || failed building

"${cross}strip" -o "$tmp/qemu-system-aarch64" "$obj/qemu-system-aarch64"
# The distribution's patches can be those of a later point release.
cp "$src/VERSION" "$tmp/version"
place "$tmp" "$entry"

keep_newest "$cache/qemu" "${version}[.-]*"
answer "built in $((SECONDS - start)) s"
