// SPDX-License-Identifier: MIT
/*
 * What an MSI does, and what KVM_SIGNAL_MSI says: 1 injected, 0 the guest does
 * not want it, or an errno. The results are those of an unpatched kernel, but for
 * two that are wrong there: the last doorbell of all, and a failed restore.
 */
#include <sys/ioctl.h>

#include "harness.h"
#include "its.h"

#define NR_VCPUS 4
#define NR_LPIS	 128

#define SAVE_PENDING_TABLES KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES

static struct its its;

static struct vm *lpi_vm(void)
{
	const struct vm_config config = {
		.nr_vcpus = NR_VCPUS,
		.nr_irqs = 64,
		.ram_bytes = its_ram_bytes(NR_VCPUS),
		.its = true,
	};
	struct vm *vm = test_vm(&config);

	REQUIRE_RET(its_start(&its, vm, NR_LPIS), 0);
	REQUIRE_RET(its_map(&its), 0);
	return vm;
}

static int signal_msi(struct vm *vm, const struct kvm_msi *msi)
{
	int ret = ioctl(vm->fd, KVM_SIGNAL_MSI, msi);

	return ret < 0 ? -errno : ret;
}

static void save_pending(struct vm *vm)
{
	CHECK_RET(vm_set(vm, KVM_DEV_ARM_VGIC_GRP_CTRL, SAVE_PENDING_TABLES, 0),
		  0);
}

/* Twice: the second time from the cache */
static void inject_twice(struct vm *vm, uint32_t lpi)
{
	CHECK(its_signal(vm, lpi) == 1, "LPI %u: not injected", lpi);
	CHECK(its_signal(vm, lpi) == 1, "LPI %u: not injected again", lpi);
}

static void all_become_pending(void)
{
	struct vm *vm = lpi_vm();
	uint32_t i, vcpu;

	for (i = 0; i < NR_LPIS; i += 2)
		inject_twice(vm, i);
	save_pending(vm);
	for (i = 0; i < NR_LPIS; i++)
		for (vcpu = 0; vcpu < NR_VCPUS; vcpu++)
			CHECK(its_pending_bit(&its, vcpu, i) ==
				      (i % 2 == 0 && vcpu == i % NR_VCPUS),
			      "LPI %u, vCPU %u: pending bit is wrong", i, vcpu);
}

static void bad_msis(void)
{
	struct vm *vm = lpi_vm();
	struct kvm_msi msi;

	inject_twice(vm, 0);
	msi = its_msi(0);
	msi.devid = NR_LPIS / ITS_EVENTS;
	CHECK_RET(signal_msi(vm, &msi), 0);
	msi.devid = 1 << 16;
	CHECK_RET(signal_msi(vm, &msi), 0);
	msi.devid = UINT32_MAX;
	CHECK_RET(signal_msi(vm, &msi), 0);

	msi = its_msi(0);
	msi.data = ITS_EVENTS;
	CHECK_RET(signal_msi(vm, &msi), 0);
	msi.data = 1 << 16;
	CHECK_RET(signal_msi(vm, &msi), 0);
	msi.data = UINT32_MAX;
	CHECK_RET(signal_msi(vm, &msi), 0);

	msi = its_msi(1);
	msi.flags = 0;
	CHECK_RET(signal_msi(vm, &msi), -EINVAL);
}

static void doorbells(void)
{
	static const struct {
		uint64_t address;
		int ret;
	} doorbells[] = {
		{ 0, -EINVAL },
		/* The search of the MMIO bus overflows there, and hits. */
		{ UINT64_MAX, -EINVAL },
		{ VM_DIST_BASE, -EINVAL },
		{ VM_REDIST_BASE, -EINVAL },
		{ VM_ITS_BASE - 4, -EINVAL },
		{ VM_ITS_BASE + 0x20000, -EINVAL },
		{ ITS_TRANSLATER | 1ULL << 32, -EINVAL },
		/* KVM takes any address in the frames of the ITS. */
		{ VM_ITS_BASE, 1 },
		{ VM_ITS_BASE + 0x1fffc, 1 },
	};
	struct vm *vm = lpi_vm();
	struct kvm_msi msi;
	size_t i;

	inject_twice(vm, 0);
	for (i = 0; i < ARRAY_SIZE(doorbells); i++) {
		msi = its_msi(0);
		msi.address_lo = doorbells[i].address;
		msi.address_hi = doorbells[i].address >> 32;
		CHECK(signal_msi(vm, &msi) == doorbells[i].ret,
		      "doorbell %#llx: not %s",
		      (unsigned long long)doorbells[i].address,
		      errno_name(doorbells[i].ret));
	}
}

/* An ITS that has no address yet is at none. */
static void no_address(void)
{
	const struct vm_config config = { .nr_vcpus = 1, .nr_irqs = 64 };
	struct kvm_create_device dev = { .type = KVM_DEV_TYPE_ARM_VGIC_ITS };
	struct vm *vm = test_vm(&config);
	struct kvm_msi msi = its_msi(0);

	REQUIRE(!ioctl(vm->fd, KVM_CREATE_DEVICE, &dev), "no ITS");
	vm->its_fd = dev.fd;
	CHECK_RET(signal_msi(vm, &msi), -EINVAL);
	for (msi.address_lo = 0; msi.address_lo < 0x20000;
	     msi.address_lo += 0x8000)
		CHECK_RET(signal_msi(vm, &msi), -EINVAL);
	msi.address_lo = msi.address_hi = UINT32_MAX;
	CHECK_RET(signal_msi(vm, &msi), -EINVAL);
}

/* What ends a translation, and what the next MSI then gets */

static int discard(void)
{
	its_discard(&its, 0);
	return its_run(&its);
}

static int unmap_device(void)
{
	its_mapd(&its, 0, false);
	return its_run(&its);
}

static int map_device_again(void)
{
	its_mapd(&its, 0, true);
	return its_run(&its);
}

static int unmap_collection(void)
{
	its_mapc(&its, 0, 0, false);
	return its_run(&its);
}

static int disable_its(void)
{
	return its_set(&its, GITS_CTLR, 0);
}

static int disable_lpis(void)
{
	return its_enable_lpis(&its, 0, false);
}

static int reset_its(void)
{
	return its_ctrl(&its, KVM_DEV_ARM_ITS_CTRL_RESET);
}

static int reset_and_enable(void)
{
	int ret = reset_its();

	return ret ? ret : its_set_registers(&its);
}

static int drop_table(uint32_t baser)
{
	int ret = disable_its();

	if (!ret)
		ret = its_set(&its, baser, 0);
	return ret ? ret : its_set_registers(&its);
}

static int drop_devices(void)
{
	return drop_table(GITS_BASER0);
}

static int drop_collections(void)
{
	return drop_table(GITS_BASER1);
}

/* The collections are there already, and KVM then frees them. */
static int fail_to_restore(void)
{
	int ret = its_ctrl(&its, KVM_DEV_ARM_ITS_SAVE_TABLES);

	if (ret)
		return ret;
	ret = its_ctrl(&its, KVM_DEV_ARM_ITS_RESTORE_TABLES);
	return ret == -EEXIST ? 0 : ret ? ret : -EIO;
}

static const struct invalidation {
	const char *name;
	int (*run)(void);
	int ret;
} invalidations[] = {
	{ "DISCARD", discard, 0 },
	{ "MAPD, not valid", unmap_device, 0 },
	{ "MAPD, again", map_device_again, 0 },
	{ "MAPC, not valid", unmap_collection, 0 },
	{ "GITS_CTLR, disabled", disable_its, -EBUSY },
	{ "GICR_CTLR, LPIs disabled", disable_lpis, -EBUSY },
	{ "reset", reset_its, -EBUSY },
	{ "reset and enabled", reset_and_enable, 0 },
	{ "GITS_BASER0, not valid", drop_devices, 0 },
	{ "GITS_BASER1, not valid", drop_collections, 0 },
	{ "a restore that fails", fail_to_restore, 0 },
};

static void invalidate(void)
{
	const struct invalidation *inv;
	struct vm *vm;
	int ret;

	for (inv = invalidations;
	     inv < invalidations + ARRAY_SIZE(invalidations); inv++) {
		vm = lpi_vm();
		inject_twice(vm, 0);
		CHECK(!inv->run(), "%s failed", inv->name);
		ret = its_signal(vm, 0);
		CHECK(ret == inv->ret, "%s: the next MSI got %d, not %d",
		      inv->name, ret, inv->ret);
		test_vm_destroy(vm);
	}
}

static void moved(bool all)
{
	struct vm *vm = lpi_vm();
	uint32_t vcpu;

	/* LPI 0 is cached, but pending nowhere: it was disabled. */
	its_config(&its, 0, false);
	its_inv(&its, 0);
	CHECK_RET(its_run(&its), 0);
	inject_twice(vm, 0);
	its_clear(&its, 0);
	if (all)
		its_movall(&its, 0, 3);
	else
		its_movi(&its, 0, 3);
	its_config(&its, 0, true);
	its_inv(&its, 0);
	CHECK_RET(its_run(&its), 0);
	inject_twice(vm, 0);
	save_pending(vm);
	for (vcpu = 0; vcpu < NR_VCPUS; vcpu++)
		CHECK(its_pending_bit(&its, vcpu, 0) == (vcpu == 3),
		      "vCPU %u: pending bit is wrong", vcpu);
}

static void movi(void)
{
	moved(false);
}

static void movall(void)
{
	moved(true);
}

/* Saved, reset and restored, it is pending, and cached anew. */
static void restored(void)
{
	struct vm *vm = lpi_vm();
	uint32_t i;

	for (i = 0; i < NR_LPIS; i++)
		inject_twice(vm, i);
	CHECK_RET(its_ctrl(&its, KVM_DEV_ARM_ITS_SAVE_TABLES), 0);
	CHECK_RET(its_ctrl(&its, KVM_DEV_ARM_ITS_CTRL_RESET), 0);
	CHECK_RET(its_signal(vm, 0), -EBUSY);
	CHECK_RET(its_set_registers(&its), 0);
	CHECK_RET(its_signal(vm, 0), 0);
	CHECK_RET(its_ctrl(&its, KVM_DEV_ARM_ITS_RESTORE_TABLES), 0);
	for (i = 0; i < NR_LPIS; i++)
		inject_twice(vm, i);
	save_pending(vm);
	for (i = 0; i < NR_LPIS; i++)
		CHECK(its_pending_bit(&its, i % NR_VCPUS, i),
		      "LPI %u is not pending", i);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "an LPI that is injected becomes pending, and no other",
		  all_become_pending },
		{ "an MSI with an unknown or no device ID, or event ID",
		  bad_msis },
		{ "an MSI to another doorbell", doorbells },
		{ "an MSI where the ITS has no address yet", no_address },
		{ "what ends a translation does so at once, cached or not",
		  invalidate },
		{ "MOVI moves a cached LPI", movi },
		{ "MOVALL moves a cached LPI", movall },
		{ "tables saved and restored", restored },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
