#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: docs/man/install.sh FOLDER PAGE...
# Installs the built pages in FOLDER/man1, man3 and so on; a page that is about
# several calls is found by the name of each.
set -eu

folder=$1
shift
for page; do
	name=${page##*/} section=${page##*.}
	dir=$folder/man$section
	install -d "$dir"
	install -m 644 "$page" "$dir"
	# shellcheck disable=SC2013 # words
	for alias in $(sed -n '/^\.SH NAME/{n;n;s/ - .*//;s/,//g;p;}' "$page"); do
		[ "$alias.$section" = "$name" ] ||
			echo ".so man$section/$name" >"$dir/$alias.$section"
	done
done
