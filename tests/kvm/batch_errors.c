// SPDX-License-Identifier: MIT
/* Entries that fail: where, with what, and what becomes of the others */
#include <string.h>

#include "harness.h"

#define N 9

#define ISENABLER(n) (GIC_ISENABLER + 4 * (n))
#define VALUE(n)     (0x01010101U << ((n) % 8))

/* A batch of writes to GICD_ISENABLER<1..N % 8>, all good */
static void fill(entry_t *e)
{
	int i;

	for (i = 0; i < N; i++)
		e[i] = entry(DIST, ISENABLER(1 + i % 8), VALUE(i));
}

/*
 * The entries of @bad, a mask, fail with EINVAL in both directions: each
 * has its own error, and the rest is done.
 */
static void check_failing_at(unsigned int bad)
{
	struct vm *vm = plain_vm(1);
	uint64_t val, want;
	entry_t e[N];
	int i, reg;

	fill(e);
	for (i = 0; i < N; i++)
		if (bad & 1U << i)
			e[i] = entry(LEVEL, vcpu_attr(vm, 0, 33), VALUE(i));

	CHECK_RET(vm_batch(vm, true, e, N), bad ? -EINVAL : 0);
	for (i = 0; i < N; i++)
		CHECK(e[i].error == (bad & 1U << i ? -EINVAL : 0),
		      "set, mask %#x, entry %d: %d", bad, i, e[i].error);
	for (reg = 0; reg < 8; reg++) {
		for (i = reg, want = 0; i < N; i += 8)
			if (!(bad & 1U << i))
				want |= VALUE(i);
		CHECK_RET(vm_get(vm, DIST, ISENABLER(1 + reg), &val), 0);
		CHECK(val == want, "mask %#x, GICD_ISENABLER%d: %#llx", bad,
		      1 + reg, (unsigned long long)val);
	}

	for (i = 0; i < N; i++) {
		e[i].error = STALE_ERROR;
		e[i].val = 0x55;
	}
	CHECK_RET(vm_batch(vm, false, e, N), bad ? -EINVAL : 0);
	for (i = 0; i < N; i++) {
		CHECK(e[i].error == (bad & 1U << i ? -EINVAL : 0),
		      "get, mask %#x, entry %d: %d", bad, i, e[i].error);
		CHECK((e[i].val == 0x55) == !!(bad & 1U << i),
		      "get, mask %#x, entry %d: %#x", bad, i, e[i].val);
	}
}

static void none(void)
{
	check_failing_at(0);
}

static void at_start(void)
{
	check_failing_at(1);
}

static void in_middle(void)
{
	check_failing_at(1 << N / 2);
}

static void at_end(void)
{
	check_failing_at(1 << (N - 1));
}

static void several(void)
{
	check_failing_at(0x155);
	check_failing_at((1 << N) - 1);
}

static void first_in_order(void)
{
	struct vm *vm = plain_vm(1);
	const uint64_t unknown = vcpu_attr(vm, 0, SYSREG(0, 0, 0));
	entry_t e[5] = {
		entry(DIST, GICD_IIDR, 0),
		entry(SYSREGS, unknown, 0),
		entry(LEVEL, vcpu_attr(vm, 0, 1), 0),
		entry(DIST, GICD_IIDR, 0),
		entry(SYSREGS, unknown, 0),
	};
	entry_t swap;

	CHECK_RET(vm_batch(vm, false, e, 5), -ENOENT);
	CHECK(!e[0].error && e[1].error == -ENOENT && e[2].error == -EINVAL &&
		      !e[3].error && e[4].error == -ENOENT,
	      "%d, %d, %d, %d, %d", e[0].error, e[1].error, e[2].error,
	      e[3].error, e[4].error);

	swap = e[1];
	e[1] = e[2];
	e[2] = swap;
	CHECK_RET(vm_batch(vm, false, e, 5), -EINVAL);
}

/* The handlers' own errors, too */
static void handler_errors(void)
{
	struct vm *vm = plain_vm(1);
	entry_t e[3] = {
		/* an IIDR that is not KVM's, a system register without SRE */
		entry(DIST, GICD_IIDR, 0),
		entry(SYSREGS, vcpu_attr(vm, 0, ICC_SRE_EL1), 0),
		entry(DIST, ISENABLER(1), 1),
	};

	CHECK_RET(vm_set(vm, DIST, GICD_IIDR, 0), -EINVAL);
	CHECK_RET(vm_set(vm, SYSREGS, e[1].attr, 0), -EINVAL);
	CHECK_RET(vm_batch(vm, true, e, 3), -EINVAL);
	CHECK_RET(e[0].error, -EINVAL);
	CHECK_RET(e[1].error, -EINVAL);
	CHECK_RET(e[2].error, 0);
}

/* Each entry in a batch of its own, and all in one, against one register */
static void check_as_one_register(struct vm *vm, entry_t *e, size_t n)
{
	int write, ret, one, first;
	entry_t copy[16];
	uint64_t val;
	size_t i;

	for (write = 0; write < 2; write++) {
		memcpy(copy, e, n * sizeof(*e));
		ret = vm_batch(vm, write, copy, n);
		for (i = 0, first = 0; i < n; i++) {
			if (write)
				one = vm_set(vm, e[i].group, e[i].attr,
					     vm_entry_val(&e[i]));
			else
				one = vm_get(vm, e[i].group, e[i].attr, &val);
			if (!first)
				first = one;
			CHECK(copy[i].error == one,
			      "%s, entry %zu: %s, one register %s",
			      write ? "set" : "get", i,
			      errno_name(copy[i].error), errno_name(one));
		}
		CHECK(ret == first, "%s: %s, not the first error %s",
		      write ? "set" : "get", errno_name(ret),
		      errno_name(first));
	}
}

static void uninitialised(void)
{
	const struct vm_config config = {
		.nr_vcpus = 2,
		.nr_irqs = 64,
		.no_init = true,
	};
	struct vm *vm = batch_vm(&config);
	const uint64_t unknown = vm_attr(UNKNOWN_MPIDR, 0);
	entry_t e[] = {
		entry(DIST, GICD_CTLR, 0),
		entry(REDIST, vcpu_attr(vm, 1, GICR_TYPER), 0),
		entry(SYSREGS, vcpu_attr(vm, 1, ICC_PMR_EL1), 0),
		entry(SYSREGS, vcpu_attr(vm, 1, SYSREG(0, 0, 0)), 0),
		entry(LEVEL, vcpu_attr(vm, 0, 32), 0),
		entry(LEVEL, vcpu_attr(vm, 0, 33), 0),
		entry(REDIST, unknown, 0),
		entry(SYSREGS, unknown | ICC_PMR_EL1, 0),
		entry(LEVEL, unknown, 0),
	};

	CHECK_RET(vm_batch(vm, false, e, 1), -EBUSY);
	check_as_one_register(vm, e, ARRAY_SIZE(e));

	e[0].group = KVM_DEV_ARM_VGIC_GRP_BATCH_REGS;
	CHECK_RET(vm_batch(vm, false, e, 1), -EINVAL);

	/* and it works as soon as the VGIC is there */
	e[0] = entry(DIST, GICD_CTLR, 0);
	REQUIRE_RET(vm_gic_init(vm), 0);
	CHECK_RET(vm_batch(vm, false, e, 1), 0);
	check_as_one_register(vm, e, ARRAY_SIZE(e));
}

static void no_vcpus(void)
{
	const struct vm_config config = { .nr_irqs = 64, .no_init = true };
	struct vm *vm = batch_vm(&config);
	entry_t e[] = {
		entry(DIST, GICD_CTLR, 0),
		entry(REDIST, GICR_TYPER, 0),
		entry(SYSREGS, ICC_PMR_EL1, 0),
		entry(LEVEL, 32, 0),
	};

	check_as_one_register(vm, e, ARRAY_SIZE(e));
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "a good batch writes 0 to every error", none },
		{ "a failing first entry", at_start },
		{ "a failing entry in the middle", in_middle },
		{ "a failing last entry", at_end },
		{ "several failing entries, and all", several },
		{ "the call returns the first error in array order",
		  first_in_order },
		{ "a register's refusal is in its entry", handler_errors },
		{ "before initialisation, each entry as one register",
		  uninitialised },
		{ "without vCPUs, each entry as one register", no_vcpus },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
