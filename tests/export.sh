#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/export.sh TREE
# make export, on a pristine kernel or QEMU tree: TAP. What `git am` makes of the
# mails has to be what the folder's own apply makes of the tree.

set -euo pipefail
. "${0%/*}/tap.sh"
repo=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
tree=${1:-}
if [[ -e $tree/Makefile && -d $tree/arch/arm64 ]]; then
	apply=$repo/kernel/apply
elif [[ -d $tree/hw/intc ]]; then
	apply=$repo/qemu/apply
else
	echo "1..0 # SKIP no tree $tree"
	exit
fi

export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com
export GIT_CONFIG_GLOBAL=/dev/null
plan 4

# copy DIR: what the series touches, and what tells the version
copy() {
	mkdir "$1"
	(cd "$tree" && { "$apply" --list . |
		xargs ls -d Makefile VERSION hw/intc/Kconfig \
		tools/testing/selftests/kvm/Makefile.kvm || true; } \
		2>/dev/null | xargs cp --parents -t "$1")
}

# found: sets mails
found() {
	mails=("$tmp"/export/*/[0-9]*.patch)
	[[ ${#mails[@]} -gt 3 ]]
}

exported() {
	"$repo/lab/export.sh" --out "$tmp/export" "$tree"
	found
}

# git am of all but the cover letter
taken() {
	found
	copy "$tmp/am"
	git init -q "$tmp/am"
	git -C "$tmp/am" add -Af
	git -C "$tmp/am" commit -qm pristine
	git -C "$tmp/am" am -q "${mails[@]:1}"
}

same() {
	copy "$tmp/apply"
	"$apply" "$tmp/apply"
	diff -r -x .git -x tools "$tmp/am" "$tmp/apply"
}

signed() {
	local mail
	found
	for mail in "${mails[@]:1}"; do
		grep -q '^Signed-off-by: A <a@example.com>' "$mail" || return 1
	done
	grep -q '^Subject: \[PATCH.* 00*/' "${mails[0]}" &&
		! grep -n '@[a-z]*@\|SUBJECT HERE\|BLURB HERE' "${mails[0]}"
}

rule "the series is exported" exported
rule "git am takes every mail" taken
rule "the tree is the one that apply makes, and selftests" same
rule "every mail is signed off, and the cover letter is filled in" signed
exit $bad
