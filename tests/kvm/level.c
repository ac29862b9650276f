// SPDX-License-Identifier: MIT
/* Case level-forgotten: line levels and latches move, each on its own */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "harness.h"

#define NR_VCPUS 2

static void migrate(struct vm *from, struct vm *to)
{
	struct sgic_device *device = test_device(to, 0);
	struct sgic_state *state = test_state(from);

	test_restore(device, state);
	sgic_state_free(state);
	sgic_device_free(device);
}

static struct vm *two_vcpus(void)
{
	const struct vm_config config = {
		.nr_vcpus = NR_VCPUS,
		.nr_irqs = 96,
		.ram_bytes = 1 << 16,
	};

	return batch_vm(&config);
}

static void set_line(struct vm *vm, uint32_t type, uint32_t vcpu, uint32_t num,
		     bool level)
{
	struct kvm_irq_level irq = {
		.irq = type << KVM_ARM_IRQ_TYPE_SHIFT |
		       vcpu << KVM_ARM_IRQ_VCPU_SHIFT | num,
		.level = level,
	};

	REQUIRE(!ioctl(vm->fd, KVM_IRQ_LINE, &irq), "KVM_IRQ_LINE: %s",
		strerror(errno));
}

static void check_reg(const struct vm *vm, uint32_t group, uint64_t attr,
		      uint64_t want)
{
	uint64_t val = ~want;

	CHECK_RET(vm_get(vm, group, attr, &val), 0);
	CHECK(val == want, "group %u, %#llx: %#llx, not %#llx", group,
	      (unsigned long long)attr, (unsigned long long)val,
	      (unsigned long long)want);
}

static uint64_t ispendr0(const struct vm *vm, uint32_t vcpu)
{
	return vcpu_attr(vm, vcpu, GICR_SGI_BASE + GIC_ISPENDR);
}

/* A timer's PPI that is asserted at the save, as its device left it */
static void ppi_level(void)
{
	struct vm *from = two_vcpus(), *to = two_vcpus();

	set_line(from, KVM_ARM_IRQ_TYPE_PPI, 1, 23, true);
	migrate(from, to);
	check_reg(to, LEVEL, vcpu_attr(to, 1, 0), 1 << 23);
	check_reg(to, LEVEL, vcpu_attr(to, 0, 0), 0);
	check_reg(to, REDIST, ispendr0(to, 1), 0);
}

/* Line and latch of the same PPI are state of their own. */
static void ppi_level_and_latch(void)
{
	static const struct {
		bool level;
		bool latch;
	} states[] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };
	struct vm *from, *to;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		from = two_vcpus();
		to = two_vcpus();
		set_line(from, KVM_ARM_IRQ_TYPE_PPI, 0, 23, states[i].level);
		CHECK_RET(vm_set(from, REDIST, ispendr0(from, 0),
				 states[i].latch << 23),
			  0);
		migrate(from, to);
		check_reg(to, LEVEL, vcpu_attr(to, 0, 0),
			  states[i].level << 23);
		check_reg(to, REDIST, ispendr0(to, 0), states[i].latch << 23);
	}
}

static void spi_level(void)
{
	struct vm *from = two_vcpus(), *to = two_vcpus();

	/* SPIs are edge-triggered from reset on; KVM reports no level then */
	CHECK_RET(vm_set(from, DIST, GICD_ICFGR + 8, 0), 0);
	set_line(from, KVM_ARM_IRQ_TYPE_SPI, 0, 40, true);
	CHECK_RET(vm_set(from, DIST, GIC_ISPENDR + 4, 1 << 9), 0);
	migrate(from, to);
	check_reg(to, LEVEL, vcpu_attr(to, 0, 32), 1 << 8);
	check_reg(to, DIST, GIC_ISPENDR + 4, 1 << 9);
}

/* A put replaces what the target had, set or not. */
static void replaces(void)
{
	struct vm *from = two_vcpus(), *to = two_vcpus();

	set_line(to, KVM_ARM_IRQ_TYPE_PPI, 1, 23, true);
	CHECK_RET(vm_set(to, REDIST, ispendr0(to, 1), 1 << 20), 0);
	CHECK_RET(vm_set(to, DIST, GIC_ISENABLER + 4, UINT32_MAX), 0);
	CHECK_RET(vm_set(to, DIST, GIC_ISACTIVER + 4, UINT32_MAX), 0);
	CHECK_RET(vm_set(to, DIST, GICD_ICFGR + 8, 0), 0);
	migrate(from, to);
	check_reg(to, LEVEL, vcpu_attr(to, 1, 0), 0);
	check_reg(to, REDIST, ispendr0(to, 1), 0);
	check_reg(to, DIST, GIC_ISENABLER + 4, 0);
	check_reg(to, DIST, GIC_ISACTIVER + 4, 0);
	check_reg(to, DIST, GICD_ICFGR + 8, 0xaaaaaaaa);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "the level of a PPI survives get and put", ppi_level },
		{ "level and latch of a PPI survive, each on its own",
		  ppi_level_and_latch },
		{ "level and latch of SPIs survive", spi_level },
		{ "a put replaces what the target held", replaces },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
