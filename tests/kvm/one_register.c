// SPDX-License-Identifier: MIT
/* The one-register calls keep their behaviour to the bit. */
#include <string.h>
#include <sys/ioctl.h>

#include "harness.h"

#define ISENABLER1 (GIC_ISENABLER + 4)
#define VALUE	   0xf00d

static int one_register(const struct vm *vm, bool write, uint32_t flags,
			uint32_t group, uint64_t attr, void *addr)
{
	struct kvm_device_attr dev_attr = {
		.flags = flags,
		.group = group,
		.attr = attr,
		.addr = (uintptr_t)addr,
	};

	int ret = ioctl(vm->gic_fd,
			write ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR,
			&dev_attr);

	return ret ? -errno : 0;
}

/* All single bits, all of them, and some at random */
static uint32_t some_flags(int i)
{
	if (i < 32)
		return 1U << i;
	return i == 32 ? UINT32_MAX : test_random();
}

#define NR_FLAGS 64

static struct vm *one_vm(void)
{
	const struct vm_config config = {
		.nr_vcpus = 2,
		.nr_irqs = 64,
		.ram_bytes = 1 << 16,
	};

	/* one_register() itself needs no batch call */
	return test_vm(&config);
}

static void flags_ignored(void)
{
	struct vm *vm = one_vm();
	uint64_t val;
	int i;

	CHECK_RET(vm_set(vm, DIST, ISENABLER1, VALUE), 0);
	for (i = 0; i < NR_FLAGS; i++) {
		val = 0;
		CHECK_RET(one_register(vm, false, some_flags(i), DIST,
				       ISENABLER1, &val),
			  0);
		CHECK(val == VALUE, "%#llx", (unsigned long long)val);
		CHECK_RET(one_register(vm, true, some_flags(i), DIST,
				       ISENABLER1, &val),
			  0);
		CHECK_RET(one_register(vm, false, some_flags(i), SYSREGS,
				       vcpu_attr(vm, 1, ICC_PMR_EL1), &val),
			  0);
		CHECK_RET(one_register(vm, true, some_flags(i), SYSREGS,
				       vcpu_attr(vm, 1, ICC_PMR_EL1), &val),
			  0);
		CHECK_RET(one_register(vm, false, some_flags(i), LEVEL,
				       vcpu_attr(vm, 0, 32), &val),
			  0);
		CHECK_RET(one_register(vm, false, some_flags(i), REDIST,
				       vcpu_attr(vm, 1, GICR_TYPER), &val),
			  0);
	}
}

/* No value of flags says that the locks are held already. */
static void flags_lock(void)
{
	struct vm *vm = one_vm();
	struct guest guest;
	uint64_t val = 0;
	int i;

	guest_start(&guest, vm, 1);
	for (i = 0; i < NR_FLAGS; i++) {
		CHECK_RET(one_register(vm, false, some_flags(i), DIST,
				       ISENABLER1, &val),
			  -EBUSY);
		CHECK_RET(one_register(vm, true, some_flags(i), DIST,
				       ISENABLER1, &val),
			  -EBUSY);
		CHECK_RET(one_register(vm, true, some_flags(i), SYSREGS,
				       vcpu_attr(vm, 0, ICC_PMR_EL1), &val),
			  -EBUSY);
		CHECK_RET(one_register(vm, false, some_flags(i), LEVEL,
				       vcpu_attr(vm, 0, 32), &val),
			  -EBUSY);
		CHECK_RET(one_register(vm, false, some_flags(i), REDIST,
				       vcpu_attr(vm, 0, GICR_TYPER), &val),
			  -EBUSY);
	}
	guest_stop(&guest);
}

static void precedence(void)
{
	struct vm *vm = one_vm();
	const uint64_t unknown = vm_attr(UNKNOWN_MPIDR, 0);
	const uint64_t pmr = vcpu_attr(vm, 0, ICC_PMR_EL1);
	const uint64_t no_sysreg = vcpu_attr(vm, 0, SYSREG(0, 0, 0));
	const uint64_t redist = vcpu_attr(vm, 0, GICR_SGI_BASE + GIC_IGROUPR);
	const uint64_t level = vcpu_attr(vm, 0, 32);
	struct guest guest;
	uint64_t val = 0;

	guest_start(&guest, vm, 1);
	/* the vCPU is found before the locks are taken */
	CHECK_RET(one_register(vm, false, 0, REDIST, unknown, &val), -EINVAL);
	CHECK_RET(one_register(vm, true, 0, REDIST, unknown, NULL), -EINVAL);
	CHECK_RET(one_register(vm, false, 0, SYSREGS, unknown, &val), -EINVAL);
	CHECK_RET(one_register(vm, true, 0, LEVEL, unknown, NULL), -EINVAL);
	/* 32-bit values are read before they are, 64-bit ones after */
	CHECK_RET(one_register(vm, true, 0, DIST, ISENABLER1, NULL), -EFAULT);
	CHECK_RET(one_register(vm, true, 0, REDIST, redist, NULL), -EFAULT);
	CHECK_RET(one_register(vm, true, 0, LEVEL, level, NULL), -EFAULT);
	CHECK_RET(one_register(vm, true, 0, SYSREGS, pmr, NULL), -EBUSY);
	/* a get writes its value last */
	CHECK_RET(one_register(vm, false, 0, DIST, ISENABLER1, NULL), -EBUSY);
	CHECK_RET(one_register(vm, false, 0, SYSREGS, pmr, NULL), -EBUSY);
	/* the register is looked up under the locks */
	CHECK_RET(one_register(vm, false, 0, SYSREGS, no_sysreg, &val), -EBUSY);
	CHECK_RET(one_register(vm, false, 0, LEVEL, level | 1, &val), -EBUSY);
	guest_stop(&guest);

	CHECK_RET(one_register(vm, true, 0, SYSREGS, pmr, NULL), -EFAULT);
	CHECK_RET(one_register(vm, false, 0, SYSREGS, pmr, NULL), -EFAULT);
	CHECK_RET(one_register(vm, false, 0, DIST, ISENABLER1, NULL), -EFAULT);
	/* a system register's value is read before it is looked up */
	CHECK_RET(one_register(vm, true, 0, SYSREGS, no_sysreg, NULL), -EFAULT);
	CHECK_RET(one_register(vm, true, 0, SYSREGS, no_sysreg, &val), -ENOENT);
	CHECK_RET(one_register(vm, false, 0, SYSREGS, no_sysreg, NULL),
		  -ENOENT);
	CHECK_RET(one_register(vm, false, 0, LEVEL, level | 1, NULL), -EINVAL);
}

/* A 32-bit register's value is 32 bits of user memory, and no more. */
static void width(void)
{
	struct vm *vm = one_vm();
	uint64_t buf = UINT64_MAX;

	CHECK_RET(one_register(vm, false, 0, DIST, ISENABLER1, &buf), 0);
	CHECK(buf == 0xffffffff00000000ULL, "distributor: %#llx",
	      (unsigned long long)buf);
	buf = UINT64_MAX;
	CHECK_RET(one_register(vm, false, 0, LEVEL, vcpu_attr(vm, 0, 32), &buf),
		  0);
	CHECK(buf == 0xffffffff00000000ULL, "level: %#llx",
	      (unsigned long long)buf);
	buf = UINT64_MAX;
	CHECK_RET(one_register(vm, false, 0, SYSREGS,
			       vcpu_attr(vm, 0, ICC_PMR_EL1), &buf),
		  0);
	CHECK(!(buf >> 32), "system register: %#llx", (unsigned long long)buf);
}

/* A register's own groups answer has_attr as ever. */
static void has_attr(void)
{
	struct vm *vm = one_vm();
	struct kvm_device_attr attr = { .group = DIST, .attr = GICD_CTLR };

	CHECK(!ioctl(vm->gic_fd, KVM_HAS_DEVICE_ATTR, &attr), "GICD_CTLR");
	attr.attr = 0xc000;
	CHECK(ioctl(vm->gic_fd, KVM_HAS_DEVICE_ATTR, &attr) && errno == ENXIO,
	      "no register");
	attr.group = SYSREGS;
	attr.attr = vcpu_attr(vm, 1, ICC_PMR_EL1);
	CHECK(!ioctl(vm->gic_fd, KVM_HAS_DEVICE_ATTR, &attr), "ICC_PMR_EL1");
	attr.attr = vcpu_attr(vm, 1, SYSREG(0, 0, 0));
	CHECK(ioctl(vm->gic_fd, KVM_HAS_DEVICE_ATTR, &attr) && errno == ENXIO,
	      "no system register");
	attr.group = 11;
	CHECK(ioctl(vm->gic_fd, KVM_HAS_DEVICE_ATTR, &attr) && errno == ENXIO,
	      "no group");
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "any flags are as flags 0", flags_ignored },
		{ "any flags take the locks: EBUSY while a vCPU runs",
		  flags_lock },
		{ "which error comes first", precedence },
		{ "a 32-bit get writes 32 bits", width },
		{ "has_attr of the other groups", has_attr },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
