// SPDX-License-Identifier: MIT
/* Cases sparse-affinity and wrong-vcpu */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static void no_mpidrs(uint64_t *mpidrs, uint32_t n)
{
	(void)mpidrs;
	(void)n;
}

/* 16 vCPUs a cluster, two clusters a socket, every third vCPU unplugged */
static void sockets(uint64_t *mpidrs, uint32_t n)
{
	uint32_t i, cpu;

	for (i = 0; i < n; i++) {
		cpu = i * 3 / 2;
		mpidrs[i] = (cpu % 16) | (uint64_t)(cpu / 16 % 2) << 8 |
			    (uint64_t)(cpu / 32) << 16;
	}
}

static void all_levels(uint64_t *mpidrs, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		mpidrs[i] = (uint64_t)(i % 4) << 32 | (i / 4 % 4) << 16 |
			    (i / 16 % 4) << 8 | (i / 64);
}

static void descending(uint64_t *mpidrs, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		mpidrs[i] = (n - 1 - i) % 16 | (n - 1 - i) / 16 << 8;
}

/* The highest of each level, and values that differ in one bit only */
static void extremes(uint64_t *mpidrs, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		mpidrs[i] = SGIC_MPIDR_MASK ^
			    ((uint64_t)(i / 256) << 32 | i % 256);
}

/*
 * GICR_TYPER of each vCPU, in batches: Aff2..Aff0 in its upper half (KVM
 * leaves Aff3 out), the vCPU's number in 23:8 of its lower.
 */
static void check_typers(struct vm *vm)
{
	uint32_t n = vm->config.nr_vcpus, i;
	entry_t *e = calloc(2 * n, sizeof(*e));

	REQUIRE(e, "no memory");
	for (i = 0; i < n; i++) {
		e[2 * i] = entry(REDIST, vcpu_attr(vm, i, GICR_TYPER), 0);
		e[2 * i + 1] = entry(REDIST, vcpu_attr(vm, i, GICR_TYPER + 4),
				     0);
	}
	CHECK_RET(vm_batch_all(vm, false, e, 2 * n, NULL), 0);
	for (i = 0; i < n; i++)
		if (!CHECK((e[2 * i].val >> 8 & 0xffff) == i &&
				   e[2 * i + 1].val ==
					   (vm->mpidrs[i] & 0xffffff),
			   "vCPU %u, MPIDR %#llx: GICR_TYPER %#x %#x", i,
			   (unsigned long long)vm->mpidrs[i], e[2 * i + 1].val,
			   e[2 * i].val))
			break;
	free(e);
}

/* Two priorities: KVM keeps the upper five bits of each */
static uint32_t own_value(uint32_t vcpu)
{
	return vcpu % 32 << 3 | vcpu / 32 << 11;
}

/* A value of its own for each vCPU, written backwards, lands in its own. */
static void check_values(struct vm *vm)
{
	const uint32_t reg = GICR_SGI_BASE + GIC_IPRIORITYR;
	uint32_t n = vm->config.nr_vcpus, i;
	uint32_t step = 1 + n / 64; /* one register is slow with many */
	entry_t *e = calloc(n, sizeof(*e));
	uint64_t val;

	REQUIRE(e, "no memory");
	for (i = 0; i < n; i++)
		e[i] = entry(REDIST, vcpu_attr(vm, n - 1 - i, reg),
			     own_value(n - 1 - i));
	CHECK_RET(vm_batch_all(vm, true, e, n, NULL), 0);
	for (i = 0; i < n; i += step) {
		CHECK_RET(vm_get(vm, REDIST, vcpu_attr(vm, i, reg), &val), 0);
		CHECK(val == own_value(i), "vCPU %u has %#llx", i,
		      (unsigned long long)val);
	}
	free(e);
}

/* The same by the library: saved here, restored into another VM */
static void check_library(struct vm *vm)
{
	struct vm *other = test_vm(&vm->config);
	struct sgic_device *device = test_device(other, 0);
	struct sgic_state *state = test_state(vm);
	uint32_t n = vm->config.nr_vcpus, i;
	struct sgic_value value;
	char name[40];

	test_restore(device, state);
	sgic_state_free(state);
	state = test_save(device);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "GICR_IPRIORITYR0 (vCPU %u)", i);
		REQUIRE_RET(sgic_state_find(state, name, &value), 0);
		if (!CHECK(value.val == own_value(i) &&
				   sgic_state_mpidr(state, i) == vm->mpidrs[i],
			   "vCPU %u, MPIDR %#llx, has %#llx", i,
			   (unsigned long long)sgic_state_mpidr(state, i),
			   (unsigned long long)value.val))
			break;
	}
	sgic_state_free(state);
	sgic_device_free(device);
	test_vm_destroy(other);
}

static void check(void (*fill)(uint64_t *mpidrs, uint32_t n), uint32_t n)
{
	static uint64_t mpidrs[SGIC_MAX_VCPUS];
	const struct vm_config config = {
		.nr_vcpus = n,
		.nr_irqs = 64,
		.mpidrs = fill == no_mpidrs ? NULL : mpidrs,
	};
	struct vm *vm;

	fill(mpidrs, n);
	vm = batch_vm(&config);
	check_typers(vm);
	check_values(vm);
	check_library(vm);
	/* once more, with KVM's own table of MPIDRs */
	vm_run_once(vm, n - 1);
	check_typers(vm);
	check_values(vm);
}

static void kvms_own_512(void)
{
	check(no_mpidrs, 512);
}

static void sockets_160(void)
{
	check(sockets, 160);
}

static void all_levels_256(void)
{
	check(all_levels, 256);
}

static void descending_512(void)
{
	check(descending, 512);
}

static void extremes_512(void)
{
	check(extremes, 512);
}

static void one(void)
{
	check(no_mpidrs, 1);
	check(extremes, 1);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "each vCPU has its own registers: one vCPU", one },
		{ "each vCPU has its own registers: KVM's MPIDRs, 512 vCPUs",
		  kvms_own_512 },
		{ "each vCPU has its own registers: sockets with gaps, 160 vCPUs",
		  sockets_160 },
		{ "each vCPU has its own registers: Aff0 to Aff3, 256 vCPUs",
		  all_levels_256 },
		{ "each vCPU has its own registers: descending, 512 vCPUs",
		  descending_512 },
		{ "each vCPU has its own registers: highest MPIDRs, 512 vCPUs",
		  extremes_512 },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
