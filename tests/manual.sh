#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/manual.sh
# The man pages and the completion against what they are about: TAP.

set -euo pipefail
. "${0%/*}/tap.sh"
repo=$(cd "${0%/*}/.." && pwd)
cd "$repo"
swiftgic=$repo/build/host/swiftgic
mapfile -t commands < <("$swiftgic" --help |
	awk '/^commands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }')

plan 7
# options_of COMMAND: those in its --help
options_of() {
	"$swiftgic" "$1" --help | grep -oE '^ +--[a-z-]+' | tr -d ' ' |
		cat - <(echo --help) | sort -u
}

well_formed() {
	mandoc -Tlint -W error build/man/*
}

every_call() {
	docs/man/install.sh "$tmp/man" build/man/*
	sed -n 's/^[a-z].*\<\(sgic_[a-z_]*\)(.*/\1/p' include/swiftgic.h |
		while read -r call; do
			(cd "$tmp/man" && mandoc -Tascii "man3/$call.3") |
				col -b | grep "$call" >/dev/null || {
				echo "no man page for $call"
				return 1
			}
		done
}

# The prototypes of the header, as the pages give them
every_prototype() {
	prototypes include/swiftgic.h >"$tmp/header"
	cat docs/man/*.3.scd | prototypes - >"$tmp/pages"
	diff "$tmp/header" "$tmp/pages"
}

prototypes() {
	grep -v '^ \*' "$1" | tr -s ' \t\n' ' ' |
		grep -oE '(const char \*|void |int |uint32_t |uint64_t |size_t |struct sgic_state \*)sgic_[a-z_]+\([^;{]*\);' |
		sed 's/( /(/g' | sort -u
}

every_option() {
	local command
	for command in "${commands[@]}"; do
		grep -oE '^\*--[a-z-]+' "docs/man/swiftgic-$command.1.scd" |
			tr -d '*' | sort -u |
			diff <(options_of "$command") - || {
			echo "of swiftgic $command: < in --help, > in its man page"
			return 1
		}
	done
}

every_command() {
	local command
	for command in "${commands[@]}"; do
		grep -q "^\*$command\*\|, \*$command\*" docs/man/swiftgic.1.scd
		grep -q "\`$command\`" README.md
	done
}

# completes WORD...: what is offered for the last one
completes() {
	# shellcheck source=completions/swiftgic.bash
	. completions/swiftgic.bash
	# shellcheck disable=SC2034
	COMP_WORDS=("$swiftgic" "$@") COMP_CWORD=$#
	_swiftgic "$swiftgic"
	printf '%s\n' "${COMPREPLY[@]}"
}

completes_commands() {
	diff <(printf '%s\n' "${commands[@]}" --help --version | sort) \
		<(completes '' | sort)
	[[ $(completes pr) == probe ]]
}

completes_options() {
	local command
	for command in "${commands[@]}"; do
		diff <(options_of "$command") <(completes "$command" -- | sort -u)
	done
	[[ $(completes save README) == README.md ]]
}

rule 'the man pages are well-formed' well_formed
rule 'every call has one' every_call
rule 'with its prototype' every_prototype
rule 'every option of the command is in its page, and none else' every_option
rule "every command is in swiftgic(1) and in the README's table" every_command
rule 'bash completes commands' completes_commands
rule 'and options, and files' completes_options
exit $bad
