# SPDX-License-Identifier: MIT
# Sourced by the lab's scripts: where things lie, messages, progress, and
# folders of the cache that are whole or not there.
# shellcheck shell=bash disable=SC2034,SC2154

repo=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
cache=${XDG_CACHE_HOME:-~/.cache}/swiftgic
[[ $cache != *[[:space:]:]* ]] || {
	echo "the cache folder $cache has a space or a colon in its name, which" \
		"make and the kernel's build cannot cope with: set XDG_CACHE_HOME" >&2
	exit 1
}
mkdir -p "$cache" || exit 1
cross=aarch64-linux-gnu-
export LC_ALL=C

say() {
	printf '%s\n' "$*" >&2
}

die() {
	say "${0##*/}: $*"
	exit 1
}

# help: the comment at the top of the script is its manual
# shellcheck disable=SC2120
help() {
	sed -n '3,/^$/s/^# \{0,1\}//p' "$0"
	exit "${1:-0}"
}

# lock FILE: one run at a time; held until this process and its children end
lock() {
	mkdir -p "${1%/*}"
	exec 9>"$1"
	flock -n 9 && return
	say "waiting for another run (${1##*/})"
	flock 9
}

# watch STAGE MEASURE: one line kept up to date on a terminal, one each 15 s
# elsewhere, until the caller is gone; MEASURE prints how far it is
watch() {
	local start=$SECONDS line every=15
	# Its sleep outlives it, and must hold no lock and no pipe.
	exec 8>&- 9>&- >/dev/null
	[[ -t 2 ]] && every=1
	while sleep $every 2>/dev/null && kill -0 $$ 2>/dev/null; do
		line="$1: $($2 2>/dev/null || true) ($((SECONDS - start)) s)"
		if [[ -t 2 ]]; then
			printf '\r\e[K%s' "$line" >&2
		else
			say "$line"
		fi
	done
}

# run STAGE MEASURE LOG COMMAND...: COMMAND with its output in LOG, watched.
# It ends with this script, however that ends.
run() {
	local stage=$1 measure=$2 log=$3 watcher rc=0
	shift 3
	watch "$stage" "$measure" &
	watcher=$!
	setpriv --pdeathsig TERM "$@" >"$log" 2>&1 </dev/null || rc=$?
	kill "$watcher" 2>/dev/null || true
	wait "$watcher" 2>/dev/null || true
	[[ -t 2 ]] && printf '\r\e[K' >&2
	return $rc
}

# seal DIR: writes DIR's manifest, its last file: without it DIR is not whole
seal() (
	cd "$1" || exit
	find . -type f ! -name 'SHA256SUMS*' -printf '%P\0' | sort -z |
		xargs -0 sha256sum >SHA256SUMS.new
	mv SHA256SUMS.new SHA256SUMS
)

# whole DIR: says so, and fails, if DIR is there and not what was sealed
whole() {
	[[ -d $1 ]] || return 1
	(cd "$1" && sha256sum --quiet --strict -c SHA256SUMS) >/dev/null 2>&1 &&
		return
	say "${1##*/} in the cache is damaged or half-written; making it anew"
	return 1
}

# place TMP DIR: seals TMP and puts it in DIR's place
place() {
	seal "$1"
	rm -rf "$2"
	mv "$1" "$2"
}

# An entry of the cache, as a script's answer: the script sets entry, its folder,
# and name, for people.

# answer HOW: prints the folder and ends
answer() {
	touch "$entry"
	say "$name: $1"
	echo "$entry"
	exit
}

# from_cache LOCK: answers if the cache has the entry; else holds the lock
from_cache() {
	whole "$entry" && answer "in the cache"
	lock "$1"
	# Another run may just have made it.
	if [[ -d $entry ]] && whole "$entry" 2>/dev/null; then
		answer "in the cache"
	fi
}

# keep_newest DIR PATTERN: older entries go, all but the newest 8
keep_newest() {
	find "$1" -mindepth 1 -maxdepth 1 -type d -name "$2" \
		-printf '%T@ %p\n' | sort -rn | sed -n '9,$s/^[^ ]* //p' |
		xargs -r rm -rf
}

# job NAME OUT ERR COMMAND...: in the background, at most one a CPU; finished
# NAME STATUS, which the script defines, is called for each. jobs_end waits for
# all.
declare -A job_names=()
job() {
	[[ ${#job_names[@]} -lt $(nproc) ]] || job_end
	setpriv --pdeathsig TERM "${@:4}" </dev/null >"$2" 2>"$3" &
	job_names[$!]=$1
}

job_end() {
	local pid name rc=0
	wait -n -p pid "${!job_names[@]}" || rc=$?
	name=${job_names[$pid]}
	unset "job_names[$pid]"
	finished "$name" "$rc"
}

jobs_end() {
	while [[ ${#job_names[@]} -gt 0 ]]; do job_end; done
}

# measured NAME STATUS: says that the measurement NAME, whose output is in $tmp,
# has ended. The script sets tmp, total and start, and starts with done=0 and
# failed=''.
# shellcheck disable=SC2154
measured() {
	done=$((done + 1))
	if [[ $2 -ne 0 ]]; then
		failed=1
		say "measuring $1 failed ($2):"
		cat "$tmp/$1.out" "$tmp/$1.err" >&2
	else
		say "measured $1 ($done of $total, $((SECONDS - start)) s)"
	fi
}

# between NAME FILE: puts the table in $tmp/NAME, if any, between its marks in FILE
between() {
	[[ -e $tmp/$1 ]] || return 0
	awk -v name="$1" -v table="$tmp/$1" '
		$0 == "<!-- " name ": end -->" { inside = 0 }
		!inside
		$0 == "<!-- " name ": begin -->" {
			inside = 1
			while ((getline line <table) > 0) print line
		}' "$2" >"$tmp/new"
	cp "$tmp/new" "$2"
}
