// SPDX-License-Identifier: MIT
/* Case running-vcpu: one vCPU is in KVM_RUN */
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define NR_VCPUS   3
#define ISENABLER1 (GIC_ISENABLER + 4)
#define VALUE	   0x600d

static struct vm *running_vm(struct guest *guest, uint32_t vcpu)
{
	const struct vm_config config = {
		.nr_vcpus = NR_VCPUS,
		.nr_irqs = 64,
		.ram_bytes = 1 << 16,
	};
	struct vm *vm = batch_vm(&config);

	guest_start(guest, vm, vcpu);
	return vm;
}

/* Whichever vCPU it is: the locks that were taken before it are given back */
static void check_busy(uint32_t vcpu)
{
	struct guest guest;
	struct vm *vm = running_vm(&guest, vcpu);
	entry_t e[3] = {
		entry(DIST, ISENABLER1, VALUE),
		entry(KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0, VALUE),
		entry(REDIST, vm_attr(UNKNOWN_MPIDR, 0), VALUE),
	};
	entry_t before[3];
	uint64_t val;

	memcpy(before, e, sizeof(e));
	CHECK_RET(vm_batch(vm, true, e, 3), -EBUSY);
	CHECK_RET(vm_batch(vm, false, e, 3), -EBUSY);
	CHECK(!memcmp(before, e, sizeof(e)), "an entry was written");
	CHECK_RET(vm_set(vm, DIST, ISENABLER1, VALUE), -EBUSY);
	CHECK_RET(vm_get(vm, DIST, ISENABLER1, &val), -EBUSY);
	guest_stop(&guest);

	CHECK_RET(vm_get(vm, DIST, ISENABLER1, &val), 0);
	CHECK(!val, "the batch wrote %#llx", (unsigned long long)val);
	CHECK_RET(vm_batch(vm, true, e, 3), -EINVAL);
	CHECK_RET(vm_get(vm, DIST, ISENABLER1, &val), 0);
	CHECK(val == VALUE, "%#llx", (unsigned long long)val);
}

static void first_vcpu(void)
{
	check_busy(0);
}

static void middle_vcpu(void)
{
	check_busy(1);
}

static void last_vcpu(void)
{
	check_busy(NR_VCPUS - 1);
}

static void bad_arguments(void)
{
	struct guest guest;
	struct vm *vm = running_vm(&guest, 0);
	entry_t e = entry(DIST, ISENABLER1, VALUE);

	CHECK_RET(vm_batch(vm, true, &e, 0), -EINVAL);
	CHECK_RET(vm_batch(vm, false, &e, 4097), -EINVAL);
	CHECK_RET(vm_batch(vm, false, NULL, 1), -EFAULT);
	guest_stop(&guest);
}

static void again(void)
{
	struct guest guest;
	struct vm *vm = running_vm(&guest, 1);
	entry_t e = entry(DIST, ISENABLER1, 0);
	uint64_t val;
	int i;

	for (i = 0; i < 5; i++) {
		CHECK_RET(vm_batch(vm, false, &e, 1), -EBUSY);
		guest_stop(&guest);
		CHECK_RET(vm_batch(vm, false, &e, 1), 0);
		CHECK_RET(vm_get(vm, DIST, ISENABLER1, &val), 0);
		guest_start(&guest, vm, 1);
	}
	guest_stop(&guest);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "EBUSY while the first vCPU runs, nothing touched",
		  first_vcpu },
		{ "EBUSY while a vCPU in the middle runs, nothing touched",
		  middle_vcpu },
		{ "EBUSY while the last vCPU runs, nothing touched",
		  last_vcpu },
		{ "bad arguments are refused before the locks", bad_arguments },
		{ "it works whenever the vCPU has stopped", again },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
