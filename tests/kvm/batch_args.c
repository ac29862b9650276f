// SPDX-License-Identifier: MIT
/* The arguments of a batch call, and the fields of an entry */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness.h"

#define MAX KVM_DEV_ARM_VGIC_BATCH_MAX

/* GICD_ISENABLER1 of a fresh VM is 0; the tests write this there. */
#define ISENABLER1 (GIC_ISENABLER + 4)
#define VALUE	   0x12345678

static int batch_flags(const struct vm *vm, bool write, uint32_t flags,
		       entry_t *entries, uint64_t count)
{
	struct kvm_device_attr attr = {
		.flags = flags,
		.group = KVM_DEV_ARM_VGIC_GRP_BATCH_REGS,
		.attr = count,
		.addr = (uintptr_t)entries,
	};

	int ret = ioctl(vm->gic_fd,
			write ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR,
			&attr);

	return ret ? -errno : 0;
}

static int has_batch_attr(const struct vm *vm, uint64_t count)
{
	struct kvm_device_attr attr = {
		.group = KVM_DEV_ARM_VGIC_GRP_BATCH_REGS,
		.attr = count,
	};

	return ioctl(vm->gic_fd, KVM_HAS_DEVICE_ATTR, &attr) ? -errno : 0;
}

static void check_reg(const struct vm *vm, uint32_t group, uint64_t attr,
		      uint64_t want)
{
	uint64_t val = ~want;

	CHECK_RET(vm_get(vm, group, attr, &val), 0);
	CHECK(val == want, "%#llx holds %#llx, not %#llx",
	      (unsigned long long)attr, (unsigned long long)val,
	      (unsigned long long)want);
}

static void *map_pages(size_t n, int prot)
{
	void *p = mmap(NULL, n * getpagesize(), prot,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(p != MAP_FAILED, "no memory");
	return p;
}

/* Both directions refuse @count, and touch nothing. */
static void check_bad_count(uint64_t count)
{
	struct vm *vm = plain_vm(1);
	entry_t e = entry(DIST, ISENABLER1, VALUE);

	CHECK_RET(vm_batch(vm, true, &e, count), -EINVAL);
	CHECK_RET(vm_batch(vm, false, &e, count), -EINVAL);
	CHECK(e.error == STALE_ERROR && e.val == VALUE, "entry was written");
	check_reg(vm, DIST, ISENABLER1, 0);
}

static void count_0(void)
{
	check_bad_count(0);
}

static void count_above(void)
{
	check_bad_count(MAX + 1);
}

static void count_64_bits(void)
{
	check_bad_count((1ULL << 32) + 1);
	check_bad_count(1ULL << 63);
	check_bad_count(UINT64_MAX);
}

static void count_max(void)
{
	static entry_t entries[MAX];
	struct vm *vm = plain_vm(1);
	size_t i;

	for (i = 0; i < MAX; i++)
		entries[i] = entry(DIST, ISENABLER1, 1U << (i % 32));
	CHECK_RET(vm_batch(vm, true, entries, MAX), 0);
	CHECK_RET(vm_batch(vm, false, entries, MAX), 0);
	for (i = 0; i < MAX; i++)
		if (!CHECK(entries[i].val == UINT32_MAX && !entries[i].error,
			   "entry %zu: %#x, %d", i, entries[i].val,
			   entries[i].error))
			break;
}

static void flags(void)
{
	static const uint32_t values[] = { 1, 2, 0x80000000, UINT32_MAX };
	struct vm *vm = plain_vm(1);
	entry_t e = entry(DIST, ISENABLER1, VALUE);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		CHECK_RET(batch_flags(vm, true, values[i], &e, 1), -EINVAL);
		CHECK_RET(batch_flags(vm, false, values[i], &e, 1), -EINVAL);
	}
	CHECK(e.error == STALE_ERROR, "entry was written");
	check_reg(vm, DIST, ISENABLER1, 0);
}

static void unmapped(void)
{
	struct vm *vm = plain_vm(1);
	entry_t *bad = map_pages(1, PROT_NONE);

	CHECK_RET(vm_batch(vm, true, bad, 1), -EFAULT);
	CHECK_RET(vm_batch(vm, false, bad, 1), -EFAULT);
	CHECK_RET(vm_batch(vm, true, NULL, 1), -EFAULT);
	/* of the kernel's half; and one that wraps around */
	CHECK_RET(vm_batch(vm, false, (void *)(1ULL << 63), 1), -EFAULT);
	CHECK_RET(vm_batch(vm, false, (void *)-8, MAX), -EFAULT);
	munmap(bad, getpagesize());
}

static void partly_mapped(void)
{
	struct vm *vm = plain_vm(1);
	char *pages = map_pages(2, PROT_READ | PROT_WRITE);
	entry_t *entries = (entry_t *)(pages + getpagesize()) - 2;

	mprotect(pages + getpagesize(), getpagesize(), PROT_NONE);
	entries[0] = entry(DIST, ISENABLER1, VALUE);
	entries[1] = entry(DIST, ISENABLER1, VALUE);
	CHECK_RET(vm_batch(vm, true, entries, 3), -EFAULT);
	check_reg(vm, DIST, ISENABLER1, 0);
	CHECK_RET(vm_batch(vm, false, entries, 3), -EFAULT);
	CHECK(entries[0].error == STALE_ERROR, "entry was written");
	CHECK_RET(vm_batch(vm, true, entries, 2), 0);
	check_reg(vm, DIST, ISENABLER1, VALUE);
	munmap(pages, 2 * getpagesize());
}

static void read_only_get(void)
{
	struct vm *vm = plain_vm(1);
	entry_t *e = map_pages(1, PROT_READ | PROT_WRITE);

	*e = entry(DIST, GICD_IIDR, 0);
	mprotect(e, getpagesize(), PROT_READ);
	CHECK_RET(vm_batch(vm, false, e, 1), -EFAULT);
	CHECK(e->error == STALE_ERROR, "entry was written");
	munmap(e, getpagesize());
}

static void read_only_set(void)
{
	struct vm *vm = plain_vm(1);
	entry_t *e = map_pages(1, PROT_READ | PROT_WRITE);

	*e = entry(DIST, ISENABLER1, VALUE);
	mprotect(e, getpagesize(), PROT_READ);
	CHECK_RET(vm_batch(vm, true, e, 1), -EFAULT);
	check_reg(vm, DIST, ISENABLER1, VALUE);
	munmap(e, getpagesize());
}

static void misaligned(void)
{
	struct vm *vm = plain_vm(1);
	char *page = map_pages(1, PROT_READ | PROT_WRITE);
	entry_t e, *at;
	size_t i;

	for (i = 1; i < 8; i++) {
		at = (entry_t *)(page + i);
		e = entry(DIST, ISENABLER1, 1U << i);
		memcpy(at, &e, sizeof(e));
		CHECK_RET(vm_batch(vm, true, at, 1), 0);
		memcpy(&e, at, sizeof(e));
		CHECK(!e.error, "at %zu: error %d", i, e.error);
	}
	check_reg(vm, DIST, ISENABLER1, 0xfe);
	munmap(page, getpagesize());
}

/* An entry of @group fails, those around it do not. */
static void check_bad_group(struct vm *vm, uint32_t group)
{
	entry_t e[3] = {
		entry(DIST, GICD_IIDR, 0),
		entry(group, 1, VALUE),
		entry(DIST, GICD_IIDR, 0),
	};

	CHECK(vm_batch(vm, false, e, 3) == -EINVAL, "get, group %u", group);
	CHECK(e[0].error == 0 && e[1].error == -EINVAL && e[2].error == 0,
	      "get, group %u: errors %d, %d, %d", group, e[0].error, e[1].error,
	      e[2].error);
	CHECK(e[0].val && e[0].val == e[2].val && e[1].val == VALUE,
	      "get, group %u: values %#x, %#x, %#x", group, e[0].val, e[1].val,
	      e[2].val);

	e[1].error = STALE_ERROR;
	CHECK(vm_batch(vm, true, e, 3) == -EINVAL, "set, group %u", group);
	CHECK(e[0].error == 0 && e[1].error == -EINVAL && e[2].error == 0,
	      "set, group %u: errors %d, %d, %d", group, e[0].error, e[1].error,
	      e[2].error);
}

static void nested_batch(void)
{
	check_bad_group(plain_vm(1), KVM_DEV_ARM_VGIC_GRP_BATCH_REGS);
}

static void other_groups(void)
{
	static const uint32_t groups[] = {
		KVM_DEV_ARM_VGIC_GRP_ADDR,
		KVM_DEV_ARM_VGIC_GRP_CPU_REGS,
		KVM_DEV_ARM_VGIC_GRP_NR_IRQS,
		KVM_DEV_ARM_VGIC_GRP_CTRL,
		KVM_DEV_ARM_VGIC_GRP_ITS_REGS,
		9,
		11,
		0x10000 | DIST,
		UINT32_MAX,
	};
	struct vm *vm = plain_vm(1);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(groups); i++)
		check_bad_group(vm, groups[i]);
}

/* A register file has no hole that faults: KVM reads it as zero. */
static void unknown_register(void)
{
	struct vm *vm = plain_vm(1);
	const uint32_t sysreg = SYSREG(0, 0, 0);
	entry_t e[3] = {
		entry(DIST, 0xc000, VALUE),
		entry(SYSREGS, vcpu_attr(vm, 0, sysreg), VALUE),
		entry(REDIST, vcpu_attr(vm, 0, 0x1fff0), VALUE),
	};
	uint64_t val;

	CHECK_RET(vm_get(vm, DIST, e[0].attr, &val), 0);
	CHECK_RET(vm_get(vm, SYSREGS, e[1].attr, &val), -ENOENT);
	CHECK_RET(vm_get(vm, REDIST, e[2].attr, &val), 0);
	CHECK_RET(vm_batch(vm, false, e, 3), -ENOENT);
	CHECK(!e[0].val && !e[0].error, "distributor");
	CHECK_RET(e[1].error, -ENOENT);
	CHECK(!e[2].val && !e[2].error, "redistributor");
	CHECK_RET(vm_batch(vm, true, e, 3), -ENOENT);
	CHECK_RET(e[1].error, -ENOENT);
}

static void unknown_mpidr(void)
{
	const uint64_t offset = vm_attr(UNKNOWN_MPIDR, 0);
	struct vm *vm = plain_vm(2);
	entry_t e[4] = {
		entry(REDIST, offset | GICR_SGI_BASE | GIC_IGROUPR, VALUE),
		entry(SYSREGS, offset | ICC_PMR_EL1, VALUE),
		entry(LEVEL, offset, VALUE),
		/* the distributor is the VM's: its attribute has no MPIDR */
		entry(DIST, offset | ISENABLER1, VALUE),
	};
	int write, i;

	for (write = 0; write < 2; write++) {
		CHECK_RET(vm_batch(vm, write, e, 4), -EINVAL);
		for (i = 0; i < 3; i++)
			CHECK(e[i].error == -EINVAL && e[i].val == VALUE,
			      "entry %d: error %d, value %#x", i, e[i].error,
			      e[i].val);
		CHECK(!e[3].error, "distributor: error %d", e[3].error);
		e[3].val = VALUE;
	}
	check_reg(vm, DIST, ISENABLER1, VALUE);
}

static void val_hi_set(void)
{
	struct vm *vm = plain_vm(1);
	const uint64_t val = 1ULL << 32 | VALUE;
	const uint64_t isenabler0 = vcpu_attr(vm, 0,
					      GICR_SGI_BASE + GIC_ISENABLER);
	entry_t e[4] = {
		entry(DIST, ISENABLER1, val),
		entry(REDIST, isenabler0, val | 0xffff0000),
		entry(LEVEL, vcpu_attr(vm, 0, 32), val),
		entry(DIST, ISENABLER1 + 4, VALUE),
	};
	uint64_t before;
	int i;

	CHECK_RET(vm_get(vm, REDIST, isenabler0, &before), 0);
	CHECK_RET(vm_batch(vm, true, e, 4), -EINVAL);
	for (i = 0; i < 3; i++)
		CHECK_RET(e[i].error, -EINVAL);
	CHECK_RET(e[3].error, 0);
	check_reg(vm, DIST, ISENABLER1, 0);
	check_reg(vm, REDIST, isenabler0, before);
	check_reg(vm, LEVEL, vcpu_attr(vm, 0, 32), 0);
	check_reg(vm, DIST, ISENABLER1 + 4, VALUE);
}

static void val_hi_get(void)
{
	struct vm *vm = plain_vm(1);
	entry_t e[4] = {
		entry(DIST, GICD_IIDR, UINT64_MAX),
		entry(REDIST, vcpu_attr(vm, 0, GICR_TYPER), UINT64_MAX),
		entry(LEVEL, vcpu_attr(vm, 0, 0), UINT64_MAX),
		entry(SYSREGS, vcpu_attr(vm, 0, ICC_PMR_EL1), UINT64_MAX),
	};
	int i;

	CHECK_RET(vm_batch(vm, false, e, 4), 0);
	for (i = 0; i < 4; i++)
		CHECK(!e[i].val_hi, "entry %d: val_hi %#x", i, e[i].val_hi);
}

static void input_kept(void)
{
	struct vm *vm = plain_vm(1);
	const uint64_t pmr = vcpu_attr(vm, 0, ICC_PMR_EL1);
	entry_t e = entry(SYSREGS, pmr, 0x1000000f0);

	CHECK_RET(vm_batch(vm, true, &e, 1), 0);
	CHECK(e.group == SYSREGS && e.attr == pmr && e.val == 0xf0 &&
		      e.val_hi == 1,
	      "a set changed more than the entry's error");
	CHECK_RET(vm_batch(vm, false, &e, 1), 0);
	CHECK(e.group == SYSREGS && e.attr == pmr, "a get changed its input");
}

static void has_attr(void)
{
	struct vm *vm = plain_vm(1);
	uint64_t count;

	for (count = 0; count <= MAX; count++)
		if (!CHECK_RET(has_batch_attr(vm, count), 0))
			break;
	CHECK_RET(has_batch_attr(vm, MAX + 1), -ENXIO);
	CHECK_RET(has_batch_attr(vm, 1ULL << 32), -ENXIO);
	CHECK_RET(has_batch_attr(vm, (1ULL << 32) + 1), -ENXIO);
	CHECK_RET(has_batch_attr(vm, 1ULL << 63), -ENXIO);
	CHECK_RET(has_batch_attr(vm, UINT64_MAX), -ENXIO);
}

/* The group is the VGICv3's: an ITS has none, and neither has a VGICv2. */
static void other_devices(void)
{
	struct vm *vm = plain_vm(1);
	struct vm its = *vm;
	entry_t e = entry(DIST, GICD_IIDR, 0);

	its.gic_fd = vm->its_fd;
	CHECK_RET(has_batch_attr(&its, 1), -ENXIO);
	CHECK_RET(vm_batch(&its, false, &e, 1), -ENXIO);
	CHECK_RET(vm_batch(&its, true, &e, 1), -ENXIO);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "count 0 is EINVAL", count_0 },
		{ "count 4097 is EINVAL", count_above },
		{ "count 2^32 + 1, 2^63, 2^64 - 1 is EINVAL", count_64_bits },
		{ "count 4096 works", count_max },
		{ "flags other than 0 are EINVAL", flags },
		{ "an unmapped array is EFAULT", unmapped },
		{ "a partly mapped array is EFAULT, and nothing is done",
		  partly_mapped },
		{ "a get into a read-only array is EFAULT", read_only_get },
		{ "a set from a read-only array is applied, and EFAULT",
		  read_only_set },
		{ "a misaligned array works", misaligned },
		{ "the batch group in an entry is EINVAL there", nested_batch },
		{ "any other group in an entry is EINVAL there", other_groups },
		{ "an unknown register is as for one register",
		  unknown_register },
		{ "an unknown MPIDR is EINVAL in the entry", unknown_mpidr },
		{ "val_hi in a set of a 32-bit group is EINVAL, not applied",
		  val_hi_set },
		{ "a get writes 0 to val_hi of a 32-bit value", val_hi_get },
		{ "a call changes no input of an entry", input_kept },
		{ "has_attr answers 0 up to the limit, ENXIO beyond",
		  has_attr },
		{ "an ITS has no batch group", other_devices },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
