#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: lab/boot.sh --kernel DIR|IMAGE [OPTION]... -- COMMAND [ARG]...
# Boots an arm64 kernel with KVM in an emulated machine, runs COMMAND in it and
# exits with its status. The command's output goes to stdout.
#   --file HOST[:GUEST]  put a file there, by default in /bin; may be repeated
#   --icount             deterministic clock: 1 ns an instruction, one CPU
#   --smp N, --mem SIZE  CPUs (1), memory (4G)
#   --timeout SECONDS    give up after that (300)
#   --out FILE           the command's output, rather than stdout
#   --results FILE       what the command writes to the port "results"
#   --log FILE           the kernel's console
# Own exit codes: 123 the command succeeded, but on a kernel with kmemleak memory is
# lost; 124 timeout; 125 the command did not end (the kernel died);
# 126 it did, but the kernel printed a warning or worse.
#
# The guest's side (lab/init.c): /cmd holds the command, NUL-separated; its
# output goes to /dev/hvc0, followed by a line "LAB-EXIT status"; then power-off.

set -euo pipefail
. "${0%/*}/lib.sh"

kernel='' smp=1 mem=4G timeout=300 log='' results='' files=()
flags=()
while [[ $# -gt 0 ]]; do
	case $1 in
	--help) help ;;
	--icount) flags=(-icount "shift=0,sleep=off") ;;
	--kernel) kernel=$2 ;;
	--smp) smp=$2 ;;
	--mem) mem=$2 ;;
	--timeout) timeout=$2 ;;
	--out) exec >"$2" ;;
	--log) log=$2 ;;
	--results) results=$2 ;;
	--file) files+=("$2") ;;
	--) shift && break ;;
	*) help 2 >&2 ;;
	esac
	[[ $1 == --icount ]] || shift
	shift
done
[[ $kernel && $# -gt 0 ]] || help 2 >&2
if [[ -d $kernel ]]; then
	for file in "$kernel"/*.ko; do
		[[ ! -e $file ]] || files+=("$file:/lib/${file##*/}")
	done
	kernel=$kernel/Image
fi

tmp=$(mktemp -d)
qemu=''
# shellcheck disable=SC2317
cleanup() {
	[[ ! $qemu ]] || kill "$qemu" 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
: "${log:=$tmp/log}" "${results:=$tmp/results}"

root=$tmp/root
mkdir -p "$root/bin"
install -m 755 "${LAB_INIT:-$repo/build/arm64/init}" "$root/init"
for file in ${files[@]+"${files[@]}"}; do
	guest=/bin/${file##*/}
	[[ $file == *:* ]] && guest=${file#*:}
	install -D -m 755 "${file%%:*}" "$root$guest"
done
printf '%s\0' "$@" >"$root/cmd"
(cd "$root" && find . | sort | cpio -o -H newc -R 0:0 --reproducible --quiet) \
	>"$tmp/initrd"

# The last line is for us, the rest for the caller.
mkfifo "$tmp/out"
sed -u -E -e 's/\r+$//' -e '/LAB-EXIT [0-9]+$/ {
	h
	s/.*LAB-EXIT //w '"$tmp/status"'
	g
	s/LAB-EXIT [0-9]+$//
	/^$/d
}' <"$tmp/out" &
filter=$!

# loglevel: a WARNING is shown, the usual chatter not. dtb-randomness: the same
# instructions in each run. QEMU ends with timeout, and timeout with us.
# pauth-impdef: the architected pointer authentication is 14 times slower here.
setpriv --pdeathsig TERM timeout -k 1 "$timeout" \
	setpriv --pdeathsig KILL qemu-system-aarch64 \
	-M virt,virtualization=on,gic-version=3,dtb-randomness=off \
	-cpu max,pauth-impdef=on -smp "$smp" -m "$mem" \
	${flags[@]+"${flags[@]}"} \
	-display none -monitor none -net none -no-reboot \
	-kernel "$kernel" -initrd "$tmp/initrd" \
	-append "console=ttyAMA0 loglevel=6 panic=-1 oops=panic" \
	-serial file:"$log" -device virtio-serial-device \
	-chardev stdio,id=out,signal=off -device virtconsole,chardev=out \
	-chardev file,id=results,path="$results" \
	-device virtserialport,chardev=results,name=results \
	</dev/null >"$tmp/out" 2>"$tmp/err" &
qemu=$!
rc=0
wait "$qemu" || rc=$?
qemu=''
wait "$filter" || true

if [[ ! -s $tmp/status ]]; then
	cat "$tmp/err" >&2
	tail -n 40 "$log" >&2 || true
	[[ $rc -eq 124 ]] && say "boot.sh: no end after $timeout s" && exit 124
	say "boot.sh: the lab ended without the command's status"
	exit 125
fi
splat='BUG:|WARNING:|Oops|Call trace|suspected RCU|possible circular locking'
splat+='|KASAN|UBSAN|KCSAN|refcount_t|Unable to handle|rcu:.*stall|hung task'
if grep -nE -m 1 "$splat" "$log" >"$tmp/splat"; then
	from=$(cut -d: -f1 "$tmp/splat")
	sed -n "$((from > 5 ? from - 5 : 1)),$((from + 40))p" "$log" >&2
	say "boot.sh: the kernel complained; the command's status was $(<"$tmp/status")"
	exit 126
fi
exit "$(<"$tmp/status")"
