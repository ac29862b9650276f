// SPDX-License-Identifier: MIT
/*
 * Every point of a batch call at which the kernel can run out of memory, or
 * fail to copy from or to user space, is made to fail, one after the other
 * (/proc/thread-self/fail-nth). Needs a kernel with fault injection.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define FAIL_NTH   "/proc/thread-self/fail-nth"
#define DEBUGFS	   "/sys/kernel/debug/"
#define MAX_POINTS 64

/* GICD_IPRIORITYR8 on: registers that hold what is written, five bits a byte */
#define FIRST 32
#define COUNT 32

/* Let allocations fail that may sleep, and let none of it be logged. */
static void set_up(void)
{
	static const char *const faults[] = { "failslab", "fail_page_alloc",
					      "fail_usercopy" };
	char path[96];
	size_t i;

	if (access(FAIL_NTH, W_OK))
		test_skip("this kernel has no fault injection");
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		snprintf(path, sizeof(path), DEBUGFS "%s/verbose", faults[i]);
		REQUIRE(test_write_file(path, "0"), "%s: %s", path,
			strerror(errno));
		snprintf(path, sizeof(path), DEBUGFS "%s/ignore-gfp-wait",
			 faults[i]);
		test_write_file(path, "N");
		snprintf(path, sizeof(path), DEBUGFS "%s/min-order", faults[i]);
		test_write_file(path, "0");
	}
}

static void fill(entry_t *entries, size_t n, uint32_t val)
{
	size_t i;

	for (i = 0; i < n; i++) {
		entries[i] = entry(DIST, GIC_IPRIORITYR + FIRST + i % COUNT * 4,
				   val);
		entries[i].error = STALE_ERROR;
	}
}

/* One call, whose point number @nth fails; false if it has no such point */
static bool call(const struct vm *vm, bool write, entry_t *entries, size_t n,
		 unsigned int nth, int *ret)
{
	char text[16] = "";
	int fd = open(FAIL_NTH, O_RDWR | O_CLOEXEC);
	int len = snprintf(text, sizeof(text), "%u", nth);
	bool failed;

	REQUIRE(fd >= 0 && test_write_file(FAIL_NTH, "0"), "%s: %s", FAIL_NTH,
		strerror(errno));
	if (pwrite(fd, text, len, 0) != len)
		test_give_up();
	*ret = vm_batch(vm, write, entries, n);
	failed = pread(fd, text, sizeof(text) - 1, 0) > 0 && text[0] == '0';
	if (!failed)
		pwrite(fd, "0", 1, 0);
	close(fd);
	return failed;
}

/* All registers have @val, as the one-register call says, which is whole. */
static void check_value(const struct vm *vm, uint32_t val, unsigned int nth)
{
	uint64_t is;
	uint32_t i;

	for (i = 0; i < COUNT; i++) {
		REQUIRE_RET(
			vm_get(vm, DIST, GIC_IPRIORITYR + FIRST + i * 4, &is),
			0);
		if (!CHECK(is == val, "point %u: register %u is %#llx, not %#x",
			   nth, i, (unsigned long long)is, val))
			return;
	}
}

static void check_sets(size_t n)
{
	static entry_t entries[KVM_DEV_ARM_VGIC_BATCH_MAX];
	struct vm *vm = plain_vm(2);
	uint32_t old = 0, new;
	unsigned int nth, refused = 0;
	int ret;

	set_up();
	fill(entries, n, old);
	REQUIRE_RET(vm_batch(vm, true, entries, n), 0);
	for (nth = 1; nth < MAX_POINTS; nth++) {
		new = 0x08080808 * (nth % 31 + 1);
		fill(entries, n, new);
		if (!call(vm, true, entries, n, nth, &ret))
			break;
		CHECK(!ret || ret == -ENOMEM || ret == -EFAULT, "point %u: %s",
		      nth, errno_name(ret));
		refused += !!ret;
		/* Copied out in part: applied. Not at all: copy-in, or before */
		if (!ret || (ret == -EFAULT && entries[0].error == 0))
			old = new;
		else if (ret == -EFAULT) {
			uint64_t is;

			REQUIRE_RET(
				vm_get(vm, DIST, GIC_IPRIORITYR + FIRST, &is),
				0);
			if (is == new)
				old = new;
		}
		check_value(vm, old, nth);
	}
	test_diag("%u points, %u refused the call", nth - 1, refused);
	CHECK(nth < MAX_POINTS, "no end");
	CHECK(refused >= 3, "allocation, copy-in and copy-out did not fail");
	CHECK_RET(ret, 0);
	check_value(vm, new, nth);
}

static void sets(void)
{
	check_sets(COUNT);
}

static void long_sets(void)
{
	check_sets(KVM_DEV_ARM_VGIC_BATCH_MAX);
}

static void gets(void)
{
	static entry_t entries[COUNT];
	struct vm *vm = plain_vm(2);
	unsigned int nth, refused = 0;
	int ret;

	set_up();
	fill(entries, COUNT, 0x50505050);
	REQUIRE_RET(vm_batch(vm, true, entries, COUNT), 0);
	for (nth = 1; nth < MAX_POINTS; nth++) {
		fill(entries, COUNT, 0);
		if (!call(vm, false, entries, COUNT, nth, &ret))
			break;
		CHECK(!ret || ret == -ENOMEM || ret == -EFAULT, "point %u: %s",
		      nth, errno_name(ret));
		refused += !!ret;
		CHECK(ret || entries[COUNT - 1].val == 0x50505050,
		      "point %u: %#x", nth, entries[COUNT - 1].val);
		check_value(vm, 0x50505050, nth);
	}
	test_diag("%u points, %u refused the call", nth - 1, refused);
	CHECK(nth < MAX_POINTS, "no end");
	CHECK(refused >= 3, "allocation, copy-in and copy-out did not fail");
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "every failing point of a set is an errno", sets },
		{ "every failing point of 4,096 sets is an errno", long_sets },
		{ "every failing point of a get is an errno", gets },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
