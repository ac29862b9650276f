# SPDX-License-Identifier: MIT
# Completion for bash. What there is to complete, the command's own --help says.
# shellcheck shell=bash

_swiftgic()
{
	local word=${COMP_WORDS[COMP_CWORD]} words
	if [[ $COMP_CWORD -eq 1 ]]; then
		words=$("$1" --help 2>/dev/null | awk '
			/^commands:/ { commands = 1; next }
			/^$/ { commands = 0 }
			commands { print $1 }
			/^  --/ { print $1 }')
	elif [[ $word == -* ]]; then
		words=$("$1" "${COMP_WORDS[1]}" --help 2>/dev/null |
			grep -oE '^ +--[a-z-]+' | tr -d ' ')
		words+=$'\n--help'
	else
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _swiftgic swiftgic
