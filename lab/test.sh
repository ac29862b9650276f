#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: make test, or lab/test.sh [NAME]...
# The unit tests, the models, the kernel tests on each patched kernel, and those
# of migration; only those whose name is given, if any is. TAP and kernel logs are
# kept in build/test.
# KERNELS="6.12 6.1" (that is, unless set) are the kernels, CONFIG=debug, fault
# or kcsan has them built with the kernel's own checks and runs nothing but the
# kernel tests, LONG=N makes the races take N times as long, OUT is another folder
# than build/test.
# QEMU=10.0 (unless set) are the QEMUs that a guest migrates between, each version by
# itself. The test neighbours, from each version to the next one, 7.2, 10.0 and 10.2,
# is run only if its name is given.
#
# A kernel test boots the lab with two CPUs, or with the options of boot.sh that
# a line "lab: OPTIONS" in its source asks for.

set -euo pipefail
. "${0%/*}/lib.sh"
[[ ${1:-} == --help ]] && help
cd "$repo"

lab/deps.sh
out=${OUT:-build/test}
rm -rf "$out"
mkdir -p "$out"

# count TAP: passed, failed, skipped. Points that the plan promised, and did
# not come, have failed; so has a program without a plan.
count() {
	awk '
		/^1\.\.[0-9]+/ { plan = substr($1, 4); planned = 1 }
		/^1\.\.0/ { skip++ }
		/^not ok/ { fail++; next }
		/^ok/ && /# *[Ss][Kk][Ii][Pp]/ { skip++; seen++; next }
		/^ok/ { pass++; seen++ }
		END {
			missing = plan - seen - fail
			if (!planned || missing < 0) missing = planned ? 0 : 1
			print pass + 0, fail + missing, skip + 0
		}' "$1"
}

passed=0 failed=0 skipped=0
finished() {
	local tap=$out/$1.tap p f s
	# A kernel that complained, or a crash after the last point.
	if [[ $2 -ne 0 ]] && ! grep -q '^not ok' "$tap"; then
		echo "not ok - $1 ended with status $2" >>"$tap"
	fi
	read -r p f s < <(count "$tap")
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	printf '%-40s %3d passed, %d failed, %d skipped\n' "$1" "$p" "$f" "$s"
	[[ $f -eq 0 ]] && return
	grep -v '^ok' "$tap" | tail -n 40
	tail -n 60 "$out/$1.err"
	echo "output: $tap, $out/$1.err; kernel log: $out/$1.log"
}

# wanted NAME: is this test to be run?
only=" $* "
wanted() {
	[[ $only == "  " || $only == *" $1 "* ]]
}

# try NAME COMMAND...: if it is wanted; its name there is without the kernel
try() {
	wanted "${1##*-}" || return 0
	job "$1" "$out/$1.tap" "$out/$1.err" "${@:2}"
}

long=${LONG:-1} config=${CONFIG:-}
timeout=$((300 * long))
[[ ! $config ]] || timeout=$((10 * timeout))

# host NAME COMMAND...: what does not depend on how the kernel is built
host() {
	[[ $config ]] || try "$@"
}

export CMOCKA_MESSAGE_OUTPUT=TAP GCOV_PREFIX=$PWD/$out/gcov
for source in tests/unit/*.c; do
	name=$(basename "$source" .c)
	host "unit-$name" "build/tests/unit/$name"
done

for source in tests/model/*.sh; do
	host "model-$(basename "$source" .sh)" "$source"
done

host format-snapshot tests/snapshot.sh
host fuzz-snapshot tests/fuzz/run.sh --seconds $((15 * (long > 1 ? 40 : 1)))
host library-abi tests/abi.sh
host library-manual tests/manual.sh

# migration NAME KERNEL OPTIONS...: moves a guest between the QEMUs in qemus
migration() {
	try "$1" lab/boot.sh --kernel "$2" --smp 2 --mem 3G --timeout 1500 \
		--file build/arm64/tests/migrate/migration \
		--file build/arm64/tests/migrate/relay:/bin/sh \
		"${qemus[@]}" \
		--file "$guest/Image:/guest/Image" \
		--file "$guest/initrd:/guest/initrd" \
		--log "$out/$1.log" -- /bin/migration "${@:3}"
}

# take_qemu VERSION PREFIX: adds both QEMUs to qemus, as /bin/PREFIX-VARIANT
take_qemu() {
	local variant dir
	for variant in stock patched; do
		dir=$(lab/qemu.sh "$1" $variant)
		qemus+=(--file "$dir/qemu-system-aarch64:/bin/$2-$variant")
	done
}

# migrations QEMU: on each kernel; all of it on the first, whose stock is tested, too
migrations() {
	local version kernel quick=''
	qemus=()
	take_qemu "$1" qemu
	for version in ${KERNELS:-6.12 6.1}; do
		kernel=$(lab/kernel.sh "$version" patched)
		migration "$version-qemu_$1-migration" "$kernel" \
			$quick --need-batch
		[[ $quick ]] || migration "${version}_stock-qemu_$1-migration" \
			"$(lab/kernel.sh "$version" stock)" --quick
		quick=--quick
	done
	try "qemu_$1-export" tests/export.sh "$cache/work/qemu-$1/orig"
}

if [[ ! $config ]] && wanted migration; then
	guest=$(lab/guest.sh)
	for qemu in ${QEMU:-10.0}; do migrations "$qemu"; done
fi

if [[ ! $config && $only == *" neighbours "* ]]; then
	guest=$(lab/guest.sh) qemus=()
	for qemu in 7.2 10.0 10.2; do take_qemu $qemu "qemu-$qemu"; done
	migration 6.12-neighbours "$(lab/kernel.sh 6.12 patched)" \
		--neighbours --need-batch
fi

kernels=()
for version in ${KERNELS:-6.12 6.1}; do
	kernel=$(lab/kernel.sh "$version" patched)
	if [[ ! $config ]]; then
		tree=$(lab/kernel.sh "$version" source)
		for name in apply export; do
			try "$version-$name" "tests/$name.sh" "$tree"
		done
	fi
	for source in tests/kvm/*.c; do
		name=$(basename "$source" .c)
		[[ $name != harness ]] || continue
		options=$(sed -n 's/.*\<lab: \(--.*\)/\1/p' "$source")
		# shellcheck disable=SC2086
		try "$version${config:+_$config}-$name" lab/boot.sh \
			--kernel "$kernel" ${options:---smp 2} \
			--timeout "$timeout" \
			--file "build/arm64/tests/kvm/$name" \
			--log "$out/$version${config:+_$config}-$name.log" -- \
			"/bin/$name" --need-batch --long "$long"
	done
	kernels+=("$kernel")
done
host library-install tests/install.sh "${kernels[0]}"
[[ ${#kernels[@]} -lt 2 ]] ||
	host library-cross tests/cross.sh "${kernels[1]}" "${kernels[0]}"
jobs_end

# When all unit tests have ended
[[ $only != "  " ]] || host library-coverage tests/coverage.sh "$GCOV_PREFIX"
jobs_end

echo "$passed passed, $failed failed, $skipped skipped"
[[ $((passed + failed + skipped)) -gt 0 ]] || die "no test has that name"
[[ $failed -eq 0 ]]
