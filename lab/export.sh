#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make export [TREE=DIR], or lab/export.sh [--out DIR] [TREE]...
# Writes the series of each TREE, pristine kernel or QEMU sources, as mails that
# `git am` takes, with a cover letter; without TREE, of each source in the cache.
# They are written to build/export/PRODUCT-VERSION. The cover letter's tables come
# from build/results, the author is git's user.name and user.email.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
out=$repo/build/export
if [[ ${1:-} == --out ]]; then
	[[ $# -ge 2 ]] || help 2 >&2
	out=$(realpath -m "$2")
	shift 2
fi
trees=()
for tree; do
	[[ -d $tree ]] || die "no folder $tree"
	trees+=("$(realpath "$tree")")
done
cd "$repo"
git var GIT_AUTHOR_IDENT >/dev/null 2>&1 ||
	die "git does not know who writes: set user.name and user.email"
if [[ ${#trees[@]} -eq 0 ]]; then
	for series in kernel/series/* qemu/series/*; do
		version=${series##*/}
		[[ $series != qemu/* ]] || version=qemu-$version
		tree=$cache/work/$version/orig
		[[ ! -d $tree ]] || trees+=("$tree")
	done
	[[ ${#trees[@]} -gt 0 ]] || die "no source in the cache; make run fetches it"
fi

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# product TREE: sets product (the folder here), list and version (the mail's)
product() {
	if [[ -d $1/hw/intc ]]; then
		product=qemu list='qemu-devel, qemu-arm'
		version=$(cut -d. -f1,2 "$1/VERSION")
	elif [[ -d $1/arch/arm64/kvm ]]; then
		product=kernel list='kvmarm, linux-arm-kernel'
		version=$(awk '$2 == "=" { n[$1] = $3 }
			END { print n["VERSION"] "." n["PATCHLEVEL"] }' "$1/Makefile")
	else
		die "$1 is neither a kernel nor a QEMU tree"
	fi
	series=$product/series/$version
	[[ -d $series ]] || series=$product/series/${version%%.*}.x
	[[ -d $series ]] || die "no series for $product $version"
}

# message PATCH: its subject and text, as a commit has them
message() {
	awk '/^Subject: / { sub(/^Subject: (\[[^]]*\] )?/, ""); subject = $0; next }
	     subject && !body && /^ / { subject = subject $0; next }
	     subject && !body { print subject; body = 1 }
	     /^diff --git / || /^---$/ { exit }
	     body' "$1"
}

# commits TREE: a repository of what the series edits, a commit for each patch.
# The new files belong to the patch that has them built.
commits() {
	local git=$tmp/git patches patch file
	rm -rf "$git"
	git init -q "$git"
	# The selftests, if the tree has any, come with what they test.
	patches=("$series"/*.patch)
	for patch in "$product/selftests/${series##*/}"/*.patch; do
		[[ ! -e $patch || ! -e $1/tools/testing/selftests/kvm ]] ||
			patches+=("$patch")
	done
	(cd "$1" && { "$repo/$product/apply" --list .
		sed -n 's,^--- a/,,p' "${patches[@]/#/$repo/}"; } | sort -u |
		xargs ls -d 2>/dev/null | xargs cp --parents -t "$git") || true
	git -C "$git" add -Af
	git -C "$git" commit -qm "$product $version"
	base=$(git -C "$git" rev-parse HEAD)
	for patch in "${patches[@]}"; do
		git -C "$git" apply --index "$repo/$patch" ||
			die "$patch does not apply to $1"
		if [[ -d $product/src ]]; then
			while read -r file; do
				grep -q "^+.*\<$(basename "$file" .c)\.o\>" "$patch" ||
					continue
				(cd $product/src && cp --parents "$file" "$git")
				git -C "$git" add -f "$file"
			done < <(cd $product/src && find . -name '*.c' -printf '%P\n')
		fi
		message "$patch" | git -C "$git" commit -qsF -
	done
}

# table NAME: of a results file, as a mail has it; or that there is none
table() {
	local file=build/results/$1.json
	[[ -e $file ]] || {
		echo "(no figures: make $2 has not been run here)"
		return
	}
	jq -r -f "bench/$1.jq" "$file" | column -t -s $'\t' -R "$3" |
		sed 's/^/  /'
}

cover() {
	local line
	while IFS= read -r line; do
		case $line in
		'@transfer@') table transfer run 1,3,4,5,6 ;;
		'@inject@') table inject inject 3,4,5 ;;
		'@migrate@') table migrate migrate 2,3,4 ;;
		*) printf '%s\n' "$line" ;;
		esac
	done < <(tail -n +2 "$product/cover.txt")
}

for tree in "${trees[@]}"; do
	product "$tree"
	commits "$tree"
	dir=$out/$product-$version
	rm -rf "$dir"
	mkdir -p "$dir"
	cover >"$tmp/cover"
	# A series for a stable tree says which; x is for the newest.
	[[ $series == *.x ]] && prefix=PATCH || prefix="PATCH $version"
	git -C "$tmp/git" checkout -qB series
	git -C "$tmp/git" config branch.series.description "$(cat "$tmp/cover")"
	git -C "$tmp/git" format-patch -q -o "$dir" --cover-letter \
		--cover-from-description=subject --subject-prefix="$prefix" \
		"$base"
	say "$dir: $(find "$dir" -name '*.patch' | wc -l) mails, for $list"
done
