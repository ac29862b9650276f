#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: lab/check.sh [--format]
# Checks every script, the C style (kernel/ by checkpatch) and the licence lines;
# with --format, puts the C style right instead.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

mapfile -t files < <(git ls-files -co --exclude-standard | while read -r f; do
	[[ ! -f $f ]] || echo "$f"
done)
c=() scripts=() bad=0
for f in "${files[@]}"; do
	read -r first <"$f" || true
	case $f in
	kernel/*) ;; # checkpatch's
	*.c | *.h) c+=("$f") ;;
	*.sh) scripts+=("$f") ;;
	*) [[ ${first:-} != '#!'*sh ]] || scripts+=("$f") ;;
	esac
	case $f in
	*.md | *.patch | *.sgic | tests/fuzz/corpus/* | LICENSES/*) continue ;;
	esac
	head -n 3 "$f" | grep -q 'SPDX-License-Identifier: ' || {
		say "$f: no SPDX-License-Identifier"
		bad=1
	}
done

if [[ ${1:-} == --format ]]; then
	exec clang-format -i "${c[@]}"
fi
clang-format --dry-run -Werror "${c[@]}" || bad=1
shellcheck -x -P SCRIPTDIR "${scripts[@]}" || bad=1

# The kernel's own checker, if a kernel tree is in the cache.
for tree in "$cache/work/"*/orig; do
	[[ -e $tree/scripts/checkpatch.pl ]] || continue
	checkpatch=("$tree/scripts/checkpatch.pl" --no-tree --no-signoff
		--quiet --ignore FILE_PATH_CHANGES)
	"${checkpatch[@]}" --file kernel/src/*/*/*/*/*.c || bad=1
	for f in kernel/series/*/*.patch; do
		"${checkpatch[@]}" - <"$f" || bad=1
	done
	break
done
[[ $bad -eq 0 ]] || die "see above"
say "check: ${#c[@]} C files, ${#scripts[@]} scripts, ${#files[@]} files: good"
