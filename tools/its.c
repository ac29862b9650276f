// SPDX-License-Identifier: MIT
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/kvm.h>

#include "gic.h"
#include "its.h"

#define SZ_64K 0x10000UL

/* Guest memory, in pages of 64 KiB; the first is for a guest's code. */
enum {
	PAGE_QUEUE = 1,
	PAGE_DEVICES,
	PAGE_COLLECTIONS,
	PAGE_CONFIG,
	PAGE_ITTS,
	NR_ITT_PAGES = ITS_MAX_LPIS * 8 / SZ_64K,
	PAGE_PENDING = PAGE_ITTS + NR_ITT_PAGES, /* one a vCPU */
};

#define BASER_VALID  (1ULL << 63)
#define BASER_64K    (2ULL << 8)
#define QUEUE_PAGES  16 /* of 4 KiB */
#define NR_ID_BITS   16
#define COMMAND_SIZE 32

#define GICD_CTLR_ENABLE_G1  (1 << 1)
#define GICR_CTLR	     0x0000
#define GICR_CTLR_ENABLE_LPI 1
#define LPI_ENABLED	     1
#define LPI_PRIORITY	     0xa0

/* Commands: GICv3 architecture specification (IHI 0069), 5.3 */
enum {
	CMD_MOVI = 0x01,
	CMD_CLEAR = 0x04,
	CMD_MAPD = 0x08,
	CMD_MAPC = 0x09,
	CMD_MAPTI = 0x0a,
	CMD_INV = 0x0c,
	CMD_MOVALL = 0x0e,
	CMD_DISCARD = 0x0f,
};

static uint64_t page_gpa(uint32_t page)
{
	return VM_RAM_BASE + page * SZ_64K;
}

static uint8_t *page_mem(const struct its *its, uint32_t page)
{
	return (uint8_t *)its->vm->ram + page * SZ_64K;
}

size_t its_ram_bytes(uint32_t nr_vcpus)
{
	return (PAGE_PENDING + nr_vcpus) * SZ_64K;
}

static int its_attr(const struct its *its, unsigned long req, uint32_t group,
		    uint64_t attr, void *addr)
{
	struct kvm_device_attr dev_attr = {
		.group = group,
		.attr = attr,
		.addr = (uintptr_t)addr,
	};

	return ioctl(its->vm->its_fd, req, &dev_attr) ? -errno : 0;
}

int its_get(const struct its *its, uint32_t offset, uint64_t *val)
{
	return its_attr(its, KVM_GET_DEVICE_ATTR, KVM_DEV_ARM_VGIC_GRP_ITS_REGS,
			offset, val);
}

int its_set(const struct its *its, uint32_t offset, uint64_t val)
{
	return its_attr(its, KVM_SET_DEVICE_ATTR, KVM_DEV_ARM_VGIC_GRP_ITS_REGS,
			offset, &val);
}

int its_ctrl(const struct its *its, uint64_t attr)
{
	return its_attr(its, KVM_SET_DEVICE_ATTR, KVM_DEV_ARM_VGIC_GRP_CTRL,
			attr, NULL);
}

static int set_redist(const struct its *its, uint32_t vcpu, uint32_t offset,
		      uint32_t val)
{
	return vm_set(its->vm, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
		      vm_attr(its->vm->mpidrs[vcpu], offset), val);
}

static int set_redist64(const struct its *its, uint32_t vcpu, uint32_t offset,
			uint64_t val)
{
	int ret = set_redist(its, vcpu, offset, val);

	return ret ? ret : set_redist(its, vcpu, offset + 4, val >> 32);
}

int its_enable_lpis(const struct its *its, uint32_t vcpu, bool enable)
{
	return set_redist(its, vcpu, GICR_CTLR,
			  enable ? GICR_CTLR_ENABLE_LPI : 0);
}

static int start_redist(const struct its *its, uint32_t vcpu)
{
	int ret;

	ret = set_redist64(its, vcpu, GICR_PROPBASER,
			   page_gpa(PAGE_CONFIG) | (NR_ID_BITS - 1));
	if (!ret)
		ret = set_redist64(its, vcpu, GICR_PENDBASER,
				   page_gpa(PAGE_PENDING + vcpu));
	return ret ? ret : its_enable_lpis(its, vcpu, true);
}

int its_set_registers(struct its *its)
{
	int ret;

	its->tail = 0;
	ret = its_set(its, GITS_BASER0,
		      BASER_VALID | BASER_64K | page_gpa(PAGE_DEVICES));
	if (!ret)
		ret = its_set(its, GITS_BASER1,
			      BASER_VALID | BASER_64K |
				      page_gpa(PAGE_COLLECTIONS));
	if (!ret)
		ret = its_set(its, GITS_CBASER,
			      BASER_VALID | page_gpa(PAGE_QUEUE) |
				      (QUEUE_PAGES - 1));
	return ret ? ret : its_set(its, GITS_CTLR, 1);
}

int its_start(struct its *its, struct vm *vm, uint32_t nr_lpis)
{
	uint32_t i;
	int ret;

	*its = (struct its){ .vm = vm, .nr_lpis = nr_lpis };
	if (nr_lpis > ITS_MAX_LPIS ||
	    vm->config.ram_bytes < its_ram_bytes(vm->config.nr_vcpus))
		return -EINVAL;
	memset(page_mem(its, PAGE_CONFIG), LPI_PRIORITY | LPI_ENABLED, SZ_64K);

	ret = vm_set(vm, KVM_DEV_ARM_VGIC_GRP_DIST_REGS, GICD_CTLR,
		     GICD_CTLR_ENABLE_G1);
	for (i = 0; !ret && i < vm->config.nr_vcpus; i++)
		ret = start_redist(its, i);
	if (!ret)
		ret = its_set_registers(its);
	if (ret)
		return ret;
	for (i = 0; i < vm->config.nr_vcpus; i++)
		its_mapc(its, i, i, true);
	return its_run(its);
}

int its_map(struct its *its)
{
	uint32_t i;

	for (i = 0; i < its->nr_lpis; i++) {
		if (i % ITS_EVENTS == 0)
			its_mapd(its, i / ITS_EVENTS, true);
		its_mapti(its, i);
	}
	return its_run(its);
}

/* Commands */

int its_run(struct its *its)
{
	int ret = its_set(its, GITS_CWRITER, its->tail);

	if (!its->err)
		its->err = ret;
	ret = its->err;
	its->err = 0;
	return ret;
}

static void command(struct its *its, uint64_t word0, uint64_t word1,
		    uint64_t word2, uint64_t word3)
{
	const uint64_t words[4] = { word0, word1, word2, word3 };
	int ret;

	memcpy(page_mem(its, PAGE_QUEUE) + its->tail, words, sizeof(words));
	its->tail = (its->tail + COMMAND_SIZE) % SZ_64K;
	/* Before the queue is full, which looks like empty */
	if (its->tail % (SZ_64K / 2) == 0) {
		ret = its_set(its, GITS_CWRITER, its->tail);
		if (!its->err)
			its->err = ret;
	}
}

static uint32_t device_of(uint32_t lpi)
{
	return lpi / ITS_EVENTS;
}

static uint32_t event_of(uint32_t lpi)
{
	return lpi % ITS_EVENTS;
}

static void event_command(struct its *its, uint64_t number, uint32_t lpi,
			  uint64_t high, uint64_t word2)
{
	command(its, number | (uint64_t)device_of(lpi) << 32,
		event_of(lpi) | high << 32, word2, 0);
}

void its_mapd(struct its *its, uint32_t device, bool valid)
{
	command(its, CMD_MAPD | (uint64_t)device << 32,
		__builtin_ctz(ITS_EVENTS) - 1,
		(page_gpa(PAGE_ITTS) + device * ITS_EVENTS * 8) |
			(uint64_t)valid << 63,
		0);
}

void its_mapc(struct its *its, uint32_t collection, uint32_t vcpu, bool valid)
{
	command(its, CMD_MAPC, 0,
		collection | (uint64_t)vcpu << 16 | (uint64_t)valid << 63, 0);
}

void its_mapti(struct its *its, uint32_t lpi)
{
	event_command(its, CMD_MAPTI, lpi, ITS_FIRST_LPI + lpi,
		      lpi % its->vm->config.nr_vcpus);
}

void its_movi(struct its *its, uint32_t lpi, uint32_t collection)
{
	event_command(its, CMD_MOVI, lpi, 0, collection);
}

void its_movall(struct its *its, uint32_t from, uint32_t to)
{
	command(its, CMD_MOVALL, 0, (uint64_t)from << 16, (uint64_t)to << 16);
}

void its_discard(struct its *its, uint32_t lpi)
{
	event_command(its, CMD_DISCARD, lpi, 0, 0);
}

void its_clear(struct its *its, uint32_t lpi)
{
	event_command(its, CMD_CLEAR, lpi, 0, 0);
}

void its_inv(struct its *its, uint32_t lpi)
{
	event_command(its, CMD_INV, lpi, 0, 0);
}

/* Tables */

void its_config(struct its *its, uint32_t lpi, bool enabled)
{
	page_mem(its, PAGE_CONFIG)[lpi] = LPI_PRIORITY | enabled;
}

bool its_pending_bit(const struct its *its, uint32_t vcpu, uint32_t lpi)
{
	uint32_t intid = ITS_FIRST_LPI + lpi;

	return page_mem(its, PAGE_PENDING + vcpu)[intid / 8] >> intid % 8 & 1;
}

void its_clear_pending_table(struct its *its, uint32_t vcpu)
{
	memset(page_mem(its, PAGE_PENDING + vcpu), 0, SZ_64K);
}

/* MSIs */

struct kvm_msi its_msi(uint32_t lpi)
{
	return (struct kvm_msi){
		.address_lo = ITS_TRANSLATER,
		.data = event_of(lpi),
		.flags = KVM_MSI_VALID_DEVID,
		.devid = device_of(lpi),
	};
}

int its_signal(const struct vm *vm, uint32_t lpi)
{
	struct kvm_msi msi = its_msi(lpi);
	int ret = ioctl(vm->fd, KVM_SIGNAL_MSI, &msi);

	return ret < 0 ? -errno : ret;
}
