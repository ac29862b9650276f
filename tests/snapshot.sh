#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: tests/snapshot.sh
# The format of snapshots by a second reader, and swiftgic show and diff: TAP.

set -euo pipefail
. "${0%/*}/tap.sh"
cd "${0%/*}/.."
swiftgic=$PWD/build/host/swiftgic
read_by_document=$PWD/tests/snapshot.pl
document=$PWD/docs/snapshot.md
SWIFTGIC_WRITE=$tmp build/tests/unit/snapshot
cd "$tmp"

# exits STATUS COMMAND...: with that status; what it says is in out.1 and out.2
exits() {
	local rc=0
	"${@:2}" >out.1 2>out.2 </dev/null || rc=$?
	cat out.1 out.2
	[[ $rc -eq $1 ]] || { echo "status $rc, not $1" && return 1; }
}

# prints STATUS PATTERN COMMAND...: exits with it, prints that and no error
prints() {
	exits "$1" "${@:3}" && [[ ! -s out.2 ]] && grep -qe "$2" out.1
}

# complains STATUS PATTERN COMMAND...: the same of an error, and prints nothing
complains() {
	exits "$1" "${@:3}" && [[ ! -s out.1 ]] &&
		grep -q "^swiftgic: .*$2" out.2
}

# The format

registers() {
	"$swiftgic" show --json "$1" |
		jq -r '.registers[] | "\(.group) \(.attr) \(.value)"' | sort
}

as_documented() {
	"$read_by_document" "$document" "$1" | sort >by-document
	registers "$1" >by-library
	[[ -s by-document ]] && cmp by-document by-library
}

# The second reader is no proof if it takes everything.
reader_refuses() {
	cp nested.sgic bad
	printf '\x55' | dd of=bad bs=1 seek="$1" conv=notrunc status=none
	! "$read_by_document" "$document" bad
}

other_document() {
	sed '/^| GICR_WAKER/s/0x14/0x18/' "$document" >other.md
	! "$read_by_document" other.md nested.sgic >out.1 2>out.2 &&
		grep -q "column '5 1 20 " out.2
}

# show

json() {
	"$swiftgic" show --json "${@:2}" | jq -e "$1"
}

all_interrupts() {
	"$swiftgic" show --all 160-vcpus.sgic >out.1
	[[ $(grep -cE '^ +[0-9]+ (SGI|PPI|SPI)' out.1) -eq $((160 * 32 + 256)) ]]
}

# Those that are left out are none of those that matter.
idle_left_out() {
	local all shown said
	"$swiftgic" show --all its.sgic | grep -E '[SP][GP]I ' >all
	"$swiftgic" show its.sgic >out.1
	grep -E '[SP][GP]I ' out.1 >shown
	all=$(wc -l <all) shown=$(wc -l <shown)
	said=$(sed -n 's/^(\([0-9]*\) more are idle.*/\1/p' out.1)
	[[ $said -gt 0 && $((shown + said)) -eq $all ]] &&
		! grep -vxFf shown all |
			awk '$8 == "yes" || $10 == "yes" ||
				$6 == "level" && $9 == "yes" ||
				$2 == "SPI" && $7 == "yes" { bad = 1 }
				END { exit !bad }'
}

by_pipe() {
	"$swiftgic" show - < <(cat its.sgic) >by-pipe
	"$swiftgic" show its.sgic | cmp - by-pipe
}

# diff

changes() {
	exits 1 "$swiftgic" diff its.sgic its-changed.sgic &&
		[[ ! -s out.2 ]] && sed 's/0x[0-9a-f]* -> 0x[0-9a-f]*$/A -> B/' out.1 | diff - <(
		cat <<-END
			registers
			GICD_IROUTER33[63:32]          A -> B
			GICD_ISENABLER1                A -> B
			GICR_IPRIORITYR6 (vCPU 1)      A -> B
			ICC_PMR_EL1 (vCPU 2)           A -> B
			GITS_CTLR (ITS 1)              A -> B
			interrupts
			INTID 27 (vCPU 1) priority A -> B
			INTID 33 target 166.236.188.139 -> 38.236.188.139
			INTID 40 enabled no -> yes
		END
	)
}

json_changes() {
	exits 1 "$swiftgic" diff --json its.sgic its-changed.sgic && jq -e '.same == false and (.registers | length) == 5 and
		.registers[3] == {
			"name": "ICC_PMR_EL1 (vCPU 2)", "group": 6,
			"attr": "0xffffffff0000c230", "vcpu": 2, "its": null,
			"a": "0x8bec648ccb1339a4", "b": "0x0bec648ccb1339a4"
		} and .interrupts[2] == {
			"intid": 40, "vcpu": null,
			"enabled": { "a": false, "b": true }
		}' out.1
}

json_machines() {
	exits 1 "$swiftgic" diff --json its.sgic small.sgic && jq -e '.same == false and .machine.a.vcpus == 3 and
		.machine.b.vcpus == 2 and (.message | test("3 vCPUs.*2 vCPUs"))' \
		out.1
}

full() {
	local rc=0
	"$@" >/dev/full 2>out.2 || rc=$?
	cat out.2
	[[ $rc -eq $expected ]] && grep -q '^swiftgic: cannot write' out.2
}

# On a terminal

# coloured VARIABLE=VALUE...: the terminal gets escape sequences
coloured() {
	env -u NO_COLOR TERM=xterm "$@" script -qec \
		"'$swiftgic' diff its.sgic its-changed.sgic" typescript \
		</dev/null >/dev/null || true
	grep -q 'INTID 40' typescript && grep -q $'\033\[31m' typescript
}

not() {
	! "$@" && grep -q 'INTID 40' typescript
}

no_escapes() {
	local command
	for command in "show its.sgic" "diff its.sgic its-changed.sgic"; do
		# shellcheck disable=SC2086
		env -u NO_COLOR TERM=xterm "$swiftgic" $command >out.1 || true
		grep -q INTID out.1 && ! grep -q $'\033' out.1 || return 1
	done
}

head -c 700 nested.sgic >truncated
cat its.sgic small.sgic >two
echo '{}' >foreign

plan 53
for machine in small its nested 160-vcpus largest; do
	rule "the document is enough to read the snapshot: $machine" \
		as_documented $machine.sgic
done
for at in 0 8 12 16 28 32 48 100 1500 1543; do
	rule "the second reader refuses a wrong byte $at" reader_refuses $at
done
rule 'and columns that are not as in the document' other_document

rule 'show prints the machine' prints 0 \
	'^3 vCPUs, 96 interrupts, 2 ITSs, 5 priority bits, LPIs$' \
	"$swiftgic" show its.sgic
rule 'and what EL2 has' prints 0 ', EL2 with 4 list registers$' \
	"$swiftgic" show nested.sgic
rule 'and the ITSs' prints 0 '^  1 on      0x[0-9a-f]\{16\} ' \
	"$swiftgic" show its.sgic
rule 'and the vCPUs' prints 0 '^    0 18.52.86.120    0xbc on     on     on ' \
	"$swiftgic" show its.sgic
rule 'one vCPU has its registers' prints 0 \
	'^ICC_PMR_EL1 (vCPU 1)           0xe42c26e57a57af50$' \
	"$swiftgic" show --vcpu 1 its.sgic
rule 'and its private interrupts' prints 0 '^   31 PPI    1 ' \
	"$swiftgic" show --vcpu 1 its.sgic
rule 'one interrupt is one line' prints 0 '^   71 SPI    - 0xd6 ' \
	"$swiftgic" show --irq 71 its.sgic
rule 'and one a vCPU, if it is private' prints 0 '^    5 SGI    2 ' \
	"$swiftgic" show --irq 5 its.sgic
rule 'all interrupts are there with --all' all_interrupts
rule 'idle ones are left out without' idle_left_out
rule 'show reads a pipe' by_pipe
rule 'as JSON: the machine' json \
	'.machine == { vcpus: 3, interrupts: 96, its: 2, priority_bits: 5,
	list_registers: 0, lpis: true, el2: false,
	affinities: ["18.52.86.120", "0.0.0.0", "255.255.255.255"] }' its.sgic
rule 'all registers and interrupts' json \
	'(.registers | length) == 160 + 3 * 30 + 2 * 13 and
	(.interrupts | length) == 3 * 32 + 64' its.sgic
rule 'one interrupt' json \
	'.registers == [] and .interrupts == [{ intid: 71, vcpu: null,
	priority: 214, group: 0, trigger: "level", enabled: true, latched: false,
	line: true, active: false, target: "74.78.115.160" }]' --irq 71 its.sgic
rule 'one vCPU' json \
	'(.registers | length) == 30 and all(.registers[]; .vcpu == 1) and
	[.interrupts[].intid] == [range(32)]' --vcpu 1 its.sgic

rule 'no such file' complains 1 'none: .*No such file' \
	"$swiftgic" show none
rule 'a foreign file' complains 1 'foreign: .*no snapshot' \
	"$swiftgic" show foreign
rule 'a truncated one' complains 1 'truncated: .*truncated: 700 bytes of 1544' \
	"$swiftgic" show truncated
rule 'one with something after it' complains 1 'two: .*more after' \
	"$swiftgic" show two
rule 'an empty standard input' complains 1 'standard input: ' \
	"$swiftgic" show -
rule 'no such vCPU' complains 1 'its.sgic: no vCPU 3: the machine has 3' \
	"$swiftgic" show --vcpu 3 its.sgic
rule 'no such interrupt' complains 1 'no interrupt 96: the machine has 96' \
	"$swiftgic" show --irq 96 its.sgic
rule 'no number' complains 2 "no vCPU '1x'" "$swiftgic" show --vcpu 1x its.sgic
rule 'no file' complains 2 missing "$swiftgic" show
expected=1
rule 'a full disk' full "$swiftgic" show its.sgic

rule 'diff of the same: 0' exits 0 "$swiftgic" diff its.sgic its.sgic
rule 'diff prints registers and interrupts: 1' changes
rule 'the same as JSON' json_changes
rule 'diff of two machines: 1' prints 1 'machines differ: .* 3 vCPUs.* 2 vCPUs' \
	"$swiftgic" diff its.sgic small.sgic
rule 'the same as JSON' json_machines
rule 'diff of what cannot be read: 2' complains 2 'foreign: ' \
	"$swiftgic" diff its.sgic foreign
rule 'diff of one file: 2' complains 2 'two files' "$swiftgic" diff its.sgic
expected=2
rule 'diff to a full disk: 2' full "$swiftgic" diff its.sgic its-changed.sgic

rule 'no escape sequences in a file' no_escapes
rule 'colours on a terminal' coloured A=B
rule 'none with NO_COLOR' not coloured NO_COLOR=1
rule 'none on a dumb one' not coloured TERM=dumb
exit $bad
