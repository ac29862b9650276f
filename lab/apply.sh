# SPDX-License-Identifier: MIT
# Sourced by kernel/apply and qemu/apply, which set:
#   here	their folder, with series/VERSION/*.patch and, if any, src/
#   product	what a tree is of: Linux, QEMU
#   adds	what the series adds, for the usage
#   tree_version TREE	prints the version, as the series are named, or dies
# shellcheck shell=bash disable=SC2154

name=${0##*/}

usage()
{
	cat <<-EOF
	usage: $name [--list] TREE
	Adds $adds to the $product source in TREE.
	  --list  print the files that it would change or add, change nothing
	A tree of a version without a series, or one that has it already, is
	refused. All of it applies, or nothing is changed.
	EOF
}

die()
{
	echo "$name: $*" >&2
	exit 1
}

# write_all: all copies first, then the names, so that a full disk leaves the
# tree as it was
write_all()
{
	local file
	for file in "${edited[@]}" "${added[@]}"; do
		cp -p "$scratch/$file" "$tree/$file.new" && continue
		(cd "$tree" && rm -f "${edited[@]/%/.new}" "${added[@]/%/.new}")
		die "cannot write to $tree, it is unchanged"
	done
	for file in "${edited[@]}" "${added[@]}"; do
		mv "$tree/$file.new" "$tree/$file"
	done
}

apply_main()
{
	local list='' version series patches patch file

	case ${1-} in
	--help | -h)
		usage
		exit 0
		;;
	--list)
		list=1
		shift
		;;
	esac
	if [ $# -ne 1 ]; then
		usage >&2
		exit 2
	fi
	tree=$1
	version=$(tree_version "$tree") || exit
	series=$here/series/$version
	[ -d "$series" ] || series=$here/series/${version%%.*}.x
	[ -d "$series" ] || die "no series for $product $version; there is:" \
		"$(cd "$here/series" && printf '%s ' *)"

	# What the series edits, and what is new. A patch that creates a file
	# has /dev/null as the old one.
	patches=("$series"/*.patch)
	mapfile -t edited < <(sed -n 's,^--- a/,,p' "${patches[@]}" | sort -u)
	mapfile -t added < <({
		sed -n '/^--- \/dev\/null/{n;s,^+++ b/,,p}' "${patches[@]}"
		[ ! -d "$here/src" ] ||
			find "$here/src" -type f -printf '%P\n'
	} | sort -u)

	if [ -n "$list" ]; then
		printf '%s\n' "${edited[@]}" "${added[@]}"
		exit 0
	fi

	for file in "${added[@]}"; do
		[ ! -e "$tree/$file" ] ||
			die "$tree has it already: $file is there"
	done
	for file in "${edited[@]}"; do
		[ -f "$tree/$file" ] ||
			die "$product $version without $file?"
		! grep -q KVM_DEV_ARM_VGIC_GRP_BATCH_REGS "$tree/$file" ||
			die "$tree has it already: see $file"
	done

	# Patch copies, and move them over once all of it has applied.
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
	(cd "$tree" && cp --parents -p "${edited[@]}" "$scratch")
	for patch in "${patches[@]}"; do
		patch -d "$scratch" -p1 -F0 -s -f --no-backup-if-mismatch \
			<"$patch" >"$scratch/.log" 2>&1 && continue
		cat "$scratch/.log" >&2
		find "$scratch" -name '*.rej' -exec cat {} + >&2
		die "${patch##*/} does not apply to $product $version;" \
			"the hunks above failed, $tree is unchanged"
	done
	[ ! -d "$here/src" ] || cp -R "$here/src/." "$scratch"
	write_all

	echo "$tree: $product $version," \
		"${#patches[@]} patches from ${series#"$here"/} applied:" \
		"${#edited[@]} files changed, ${#added[@]} added"
}
