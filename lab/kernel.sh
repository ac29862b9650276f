#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: [CONFIG=debug|fault|kcsan] lab/kernel.sh VERSION stock|patched
#        lab/kernel.sh VERSION source
# Prints the folder of a built arm64 kernel: Image, config, version and, if
# patched, the modules of lab/limit; or that of the stock source. VERSION is that
# of a linux-source-VERSION package of this release (6.12, 6.1), or 7.x: the newest
# that experimental has. Builds what the cache does not have; the newest source is
# fetched once, and again after `make update`.

set -euo pipefail
. "${0%/*}/lib.sh"
. "${0%/*}/apt.sh"
. "${0%/*}/tree.sh"

[[ ${1:-} == --help ]] && help
[[ $# -eq 2 && $2 =~ ^(stock|patched|source)$ ]] || help 1 >&2
version=$1 variant=$2 config=${CONFIG:-}
start=$SECONDS

# What decides the result is in the entry's name. Raise recipe when a change
# here makes for another kernel.
recipe=1
deb=$(fetch_kernel "$version")
package=${deb##*/} package=${package%%_*}
release=${deb##*/} release=${release#*_} release=${release%_all.deb}
point=${release%%-*}
fragments=("$repo/lab/kernel.config")
for f in "$version" "$config" "$version-$config"; do
	f=$repo/lab/kernel-$f.config
	[[ -e $f ]] && fragments+=("$f")
done
key=$({
	echo "$recipe" "$release" "$("${cross}gcc" --version | head -n 1)"
	cat "${fragments[@]}"
	if [[ $variant == patched ]]; then
		cd "$repo"
		find kernel/apply lab/apply.sh kernel/src lab/limit \
			"kernel/series/$version" -type f ! -name '*.md' -print0 |
			sort -z | xargs -0 sha256sum
	fi
} | sha256sum)
entry=$cache/kernel/$point-$variant${config:+-$config}-${key::12}
name="kernel $point $variant${config:+ $config} ($release)"

work=$cache/work/$version
if [[ $variant == source ]]; then
	lock "$work.lock"
else
	from_cache "$work.lock"
fi

src=$work/src obj=$work/obj$config log=$cache/work/$version.log
tmp=$cache/kernel/tmp.$version
rm -rf "$tmp" "$work.tmp"
mkdir -p "$cache/work"

kmake() {
	local stage=$1
	shift
	run "$name: $stage" compiled "$log" make -C "$src" O="$obj" \
		-j"$(nproc)" ARCH=arm64 CROSS_COMPILE="$cross" \
		KBUILD_BUILD_USER=lab KBUILD_BUILD_HOST=lab \
		KBUILD_BUILD_VERSION=1 KBUILD_BUILD_TIMESTAMP=@0 "$@"
}

compiled() {
	echo "$(grep -cE '^  (CC|AS) ' "$log")$total objects"
}

failed() {
	tail -n 30 "$log" >&2
	die "$name: $1 failed; the log is $log"
}

# extract: a tree of the source
extract() {
	local stamp
	stamp=$release-$(sha256sum "$repo/lab/kernel.exclude" | cut -c -8)
	[[ -e $work/$stamp ]] && return
	rm -rf "$work"
	mkdir -p "$work.tmp/orig"
	sed -n "s,^/,$package/,p" "$repo/lab/kernel.exclude" \
		>"$work.tmp/exclude"
	extracted() { du -sm "$work.tmp/orig" | awk '{ print $1 " MB" }'; }
	# shellcheck disable=SC2016
	run "$name: unpacking" extracted "$log" bash -euo pipefail -c '
		dpkg-deb --fsys-tarfile "$1" |
		tar -xO "./usr/src/$2.tar.xz" | xz -dT0 |
		tar -x --strip-components=1 -C "$3/orig" --anchored \
			-X "$3/exclude"
		cp -al "$3/orig" "$3/src"
	' - "$deb" "$package" "$work.tmp" || {
		rm -f "$deb"
		failed "unpacking $deb, now removed,"
	}
	touch "$work.tmp/$stamp"
	mv "$work.tmp" "$work"
}

if [[ $variant == source ]]; then
	extract
	echo "$work/orig"
	exit
fi

# configure: nothing but the fragments, and everything in them
configure() {
	local line missing=()
	cat "${fragments[@]}" >"$work/fragment"
	kmake configuring KCONFIG_ALLCONFIG="$work/fragment" allnoconfig ||
		failed configuring
	while read -r line; do
		case $line in
		CONFIG_*=*)
			grep -qxF "$line" "$obj/.config" || missing+=("$line") ;;
		'# CONFIG_'*' is not set')
			line=${line#\# } line=${line%% *}
			! grep -q "^$line=" "$obj/.config" || missing+=("no $line") ;;
		esac
	done <"$work/fragment"
	[[ ${#missing[@]} -eq 0 ]] ||
		die "$name: configuration not possible: ${missing[*]}"
}

# build: sets built; not called as a condition, so that errors within it count
build() {
	extract
	mkdir -p "$obj"
	[[ -e $obj/vmlinux ]] || total=" of $(cat "$work.objects" 2>/dev/null ||
		echo about 690)"
	patch_tree "$repo/kernel/apply" Makefile
	configure
	if kmake building Image modules; then
		[[ ! $total ]] || grep -cE '^  (CC|AS) ' "$log" >"$work.objects"
		built=1
	fi
}

total='' built=''
build
if [[ ! $built ]]; then
	# An error in a file of ours, or in a new tree, would only come again.
	if [[ $total ]] || grep ': error: ' "$log" |
			grep -qFf <(cut -c 2- "$work/touched"); then
		failed building
	fi
	say "$name: building again, from scratch"
	rm -rf "$work"
	build
	[[ $built ]] || failed building
fi

mkdir -p "$tmp"
cp "$obj/arch/arm64/boot/Image" "$tmp/"
cp "$obj/.config" "$tmp/config"
echo "$point" >"$tmp/version"
if [[ $variant == patched ]]; then
	# Anew: an object there may be of another configuration.
	rm -rf "$work/limit"
	cp -R "$repo/lab/limit" "$work/limit"
	kmake "lab/limit" M="$work/limit" modules || failed "building lab/limit"
	cp "$work"/limit/*.ko "$tmp/"
fi
place "$tmp" "$entry"

keep_newest "$cache/kernel" "${package#linux-source-}[.~-]*"
answer "built in $((SECONDS - start)) s"
