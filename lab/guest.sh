#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: lab/guest.sh [--redis]
# Prints the folder of the guest that is migrated: Image, the distribution's own
# kernel, and initrd, with tests/migrate/guest.c as its init, the kernel's virtio
# modules and, if asked for, redis. The newest packages are fetched once, and
# again after `make update`.

set -euo pipefail
. "${0%/*}/lib.sh"
. "${0%/*}/apt.sh"

redis=()
case ${1:-} in
--help) help ;;
--redis)
	redis=(redis-tools libatomic1 libc6 libgcc-s1 libstdc++6 libjemalloc2
		liblzf1 libssl3 libsystemd0 libcap2 libgcrypt20 libgpg-error0
		liblz4-1 liblzma5 libzstd1)
	;;
'') ;;
*) help 1 >&2 ;;
esac
init=$repo/build/arm64/tests/migrate/guest
[[ -x $init ]] || die "no $init; make tools builds it"

# The kernel's package has its version in its name: this one depends on it.
meta=$(fetch linux-image-cloud-arm64)
image=$(dpkg-deb -f "$meta" Depends | sed 's/[ ,].*//')
debs=("$(fetch "$image")")
for p in ${redis[@]+"${redis[@]}"}; do debs+=("$(fetch "$p")"); done

key=$({
	sha256sum "$0" "$init" | sed 's/ .*//'
	echo "${debs[@]##*/}"
} | sha256sum)
entry=$cache/guest/${key::12}
name="guest ${image#linux-image-}"

from_cache "$cache/guest.lock"

tmp=$cache/guest/tmp
rm -rf "$tmp"
mkdir -p "$tmp/kernel" "$tmp/root/lib"
dpkg-deb --fsys-tarfile "${debs[0]}" | tar -x -C "$tmp/kernel" --wildcards \
	'./boot/vmlinuz-*' '*/virtio/*.ko' '*/virtio_blk.ko'
mv "$tmp"/kernel/boot/vmlinuz-* "$tmp/Image"
find "$tmp/kernel" -name 'virtio*.ko' -exec mv -t "$tmp/root/lib" {} +
install -m 755 "$init" "$tmp/root/init"
for deb in "${debs[@]:1}"; do
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tmp/root" --wildcards \
		--no-wildcards-match-slash './lib/*/*.so*' \
		'./usr/lib/*/*.so*' './usr/bin/redis-*' 2>/dev/null || true
done
if [[ ${redis[*]} ]]; then
	# One program, which goes by its name
	(cd "$tmp/root/usr/bin" && mv redis-check-rdb redis-server &&
		rm -f redis-check-* redis-cli)
	ln -s "$(cd "$tmp/root/lib" && echo aarch64-linux-gnu/ld-linux-*.so.1)" \
		"$tmp/root/lib/ld-linux-aarch64.so.1"
fi
(cd "$tmp/root" && find . | sort | cpio -o -H newc -R 0:0 --reproducible \
	--quiet) >"$tmp/initrd"
rm -rf "$tmp/kernel" "$tmp/root"
place "$tmp" "$entry"
keep_newest "$cache/guest" '*'
answer "made in $SECONDS s"
