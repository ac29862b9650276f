// SPDX-License-Identifier: MIT
/* CPU_SYSREGS in a batch: 64-bit values, both ways */
#include <stdlib.h>
#include <string.h>

#include "harness.h"

#ifndef KVM_CAP_ARM_EL2
#define KVM_CAP_ARM_EL2 240
#endif

#define NR_VCPUS 4

static const uint32_t el1_regs[] = {
	ICC_PMR_EL1,	 ICC_BPR0_EL1,	ICC_BPR1_EL1,
	ICC_AP0R0_EL1,	 ICC_AP1R0_EL1, ICC_IGRPEN0_EL1,
	ICC_IGRPEN1_EL1, ICC_CTLR_EL1,	ICC_SRE_EL1,
};

/* The same registers of two VMs, set by batch and one by one, then compared */
static void check_set(struct vm *batched, struct vm *single,
		      const entry_t *template, size_t n)
{
	entry_t *e = malloc(n * sizeof(*e));
	uint64_t a, b;
	size_t i;
	int ret;

	REQUIRE(e, "no memory");
	memcpy(e, template, n * sizeof(*e));
	vm_batch(batched, true, e, n);
	for (i = 0; i < n; i++) {
		ret = vm_set(single, e[i].group, e[i].attr,
			     vm_entry_val(&e[i]));
		CHECK(e[i].error == ret, "set %#llx: %s, one register %s",
		      (unsigned long long)e[i].attr, errno_name(e[i].error),
		      errno_name(ret));
	}
	vm_batch(batched, false, e, n);
	for (i = 0; i < n; i++) {
		a = b = 0;
		ret = vm_get(batched, e[i].group, e[i].attr, &a);
		CHECK_RET(vm_get(single, e[i].group, e[i].attr, &b), ret);
		CHECK_RET(e[i].error, ret);
		if (ret)
			continue;
		CHECK(vm_entry_val(&e[i]) == a && a == b,
		      "%#llx: batch %#llx, one register %#llx, other VM %#llx",
		      (unsigned long long)e[i].attr,
		      (unsigned long long)vm_entry_val(&e[i]),
		      (unsigned long long)a, (unsigned long long)b);
	}
	free(e);
}

static void el1_values(uint64_t high)
{
	struct vm *batched = plain_vm(NR_VCPUS), *single = plain_vm(NR_VCPUS);
	entry_t e[NR_VCPUS * ARRAY_SIZE(el1_regs)];
	uint32_t vcpu;
	size_t i, n = 0;
	uint64_t val;

	for (vcpu = 0; vcpu < NR_VCPUS; vcpu++) {
		for (i = 0; i < ARRAY_SIZE(el1_regs); i++) {
			uint64_t attr = vcpu_attr(batched, vcpu, el1_regs[i]);

			val = (uint32_t)test_random();
			if (el1_regs[i] == ICC_CTLR_EL1)
				vm_get(batched, SYSREGS, attr, &val);
			if (el1_regs[i] == ICC_SRE_EL1)
				val |= 1;
			e[n++] = entry(SYSREGS, attr, val | high);
		}
	}
	check_set(batched, single, e, n);
}

static void low_half(void)
{
	el1_values(0);
}

static void high_half(void)
{
	el1_values(0xffffffff00000000ULL);
	el1_values(1ULL << 63);
}

/* Bits of an attribute that no register needs are as for one register. */
static void attr_bits(void)
{
	struct vm *batched = plain_vm(1), *single = plain_vm(1);
	entry_t e[16];
	int i;

	for (i = 0; i < 16; i++)
		e[i] = entry(
			SYSREGS,
			vcpu_attr(batched, 0, ICC_PMR_EL1 | 1U << (16 + i)),
			i << 4);
	check_set(batched, single, e, 16);
}

static void list_registers(void)
{
	struct vm_config config = { .nr_vcpus = 2, .nr_irqs = 64 };
	struct vm *probe = batch_vm(&config), *batched, *single;
	struct sgic_shape shape;
	entry_t e[2 * SGIC_MAX_LRS];
	uint32_t vcpu, lr;
	size_t n = 0;

	if (vm_cap(probe, KVM_CAP_ARM_EL2) <= 0)
		test_skip("no nested virtualisation here");

	config.el2 = true;
	batched = batch_vm(&config);
	single = test_vm(&config);
	REQUIRE(!vm_shape(batched, &shape), "%s", batched->err);
	for (vcpu = 0; vcpu < 2; vcpu++)
		for (lr = 0; lr < shape.nr_lrs; lr++)
			e[n++] = entry(
				SYSREGS,
				vcpu_attr(batched, vcpu, ICH_LR0_EL2 + lr),
				test_random());
	check_set(batched, single, e, n);
	CHECK_RET(vm_batch(batched, false, e, n), 0);
	while (n--)
		CHECK(e[n].val_hi, "list register %zu has no upper half", n);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "system registers of EL1, low half", low_half },
		{ "system registers of EL1, upper half set", high_half },
		{ "bits of the attribute above the register", attr_bits },
		{ "list registers, 64 bits both ways", list_registers },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
