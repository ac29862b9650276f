# SPDX-License-Identifier: MIT
# Sourced after lib.sh by what builds a source that we patch. $work has orig,
# the tree as it came, and src, which is built from. They share their files
# (hard links), as nothing writes to one in place.
# shellcheck shell=bash disable=SC2154

# patch_tree APPLY FILE: brings src to the wanted variant. Only files that
# differ are written, so only they are compiled again. APPLY is the script that
# patches, FILE one that it knows a tree by. touched: every path that any series
# has ever written here.
patch_tree() {
	local want=$work/want f
	rm -rf "$want"
	mkdir -p "$want"
	if [[ $variant == patched ]]; then
		"$1" --list "$work/orig" |
			rsync -a --files-from=- --ignore-missing-args \
			"$work/orig/" "$want/"
		cp "$work/orig/$2" "$want/"
		"$1" "$want" >/dev/null || die "${1#"$repo/"} failed"
	fi
	touch "$work/touched"
	(cd "$want" && find . -type f) |
		sort -u - "$work/touched" -o "$work/touched"
	while read -r f; do
		[[ -e $want/$f ]] && continue
		if [[ -e $work/orig/$f ]]; then
			mkdir -p "$want/${f%/*}"
			cp "$work/orig/$f" "$want/$f"
		else
			rm -f "$src/$f"
		fi
	done <"$work/touched"
	rsync -rpc "$want/" "$src/"
}
