// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "internal.h"
#include "vgic.h"
#include "vgic_batch.h"

/* GICv3 architecture specification (IHI 0069), 12.11.36 */
#define GICR_TYPER		  0x0008
#define GICR_TYPER_PLPIS	  (1 << 0)
#define GICR_TYPER_LAST		  (1 << 4)
#define GICR_TYPER_PROCESSOR(low) ((low) >> 8 & 0xffff)
#define GICR_TYPER_AFF2_0(high)	  ((high)&0xffffff)
#define GICR_TYPER_AFF3(high)	  ((high) >> 24)

/* The "instr" fields of CPU_SYSREGS attributes, and what is read there */
#define ICC_CTLR_EL1	       0xc664
#define ICC_CTLR_PRIBITS(ctlr) (((ctlr) >> 8 & 7) + 1)
#define ICH_VTR_EL2	       0xe659
#define ICH_VTR_LISTREGS(vtr)  (((vtr)&0x1f) + 1)

/* More than any kernel takes, and little enough to add two of them */
#define MAX_BATCH (1U << 30)

typedef struct kvm_dev_arm_vgic_batch_entry entry_t;

/**
 * struct list - all accesses of a save or of a restore
 * @regs:	the registers: first the VGICv3's, then those of each ITS
 * @entries:	of each, what the kernel is given; the errors are 0 between
 *		calls. Those of a save follow upon @nr_typers others.
 * @nr:		registers
 * @nr_gic:	of these, the VGICv3's
 * @nr_typers:	a save's batch begins with the upper half of each vCPU's
 *		GICR_TYPER
 */
struct list {
	struct sgic_reg *regs;
	entry_t *entries;
	size_t nr;
	size_t nr_gic;
	size_t nr_typers;
};

struct sgic_device {
	int gic_fd;
	int its_fds[SGIC_MAX_ITS];
	uint32_t batch_limit;
	uint32_t max_batch; /* to be used: @batch_limit, or 0 */
	struct sgic_shape shape;
	uint64_t mpidrs[SGIC_MAX_VCPUS];
	struct list save;
	struct list restore;
	struct sgic_stats stats;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* One call */

static int device_attr(int fd, unsigned long req, uint32_t group, uint64_t attr,
		       void *addr)
{
	struct kvm_device_attr dev_attr = {
		.group = group,
		.attr = attr,
		.addr = (uintptr_t)addr,
	};

	return ioctl(fd, req, &dev_attr) < 0 ? -errno : 0;
}

static int has_attr(int fd, uint32_t group, uint64_t attr)
{
	return device_attr(fd, KVM_HAS_DEVICE_ATTR, group, attr, NULL);
}

/* A control attribute, which has no value */
static int control(int fd, uint64_t attr)
{
	return device_attr(fd, KVM_SET_DEVICE_ATTR, KVM_DEV_ARM_VGIC_GRP_CTRL,
			   attr, NULL);
}

static int access_batch(int fd, bool write, entry_t *entries, size_t n)
{
	return device_attr(fd,
			   write ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR,
			   KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, n, entries);
}

/*
 * The same for one entry, by the call for one register. A vCPU that runs is
 * no fault of the register, and so not the entry's error.
 */
static int access_one(int fd, bool write, entry_t *entry)
{
	bool wide = entry->group == KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS ||
		    entry->group == KVM_DEV_ARM_VGIC_GRP_ITS_REGS;
	uint64_t val = (uint64_t)entry->val_hi << 32 | entry->val;
	uint32_t val32 = entry->val;
	int ret;

	ret = device_attr(fd, write ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR,
			  entry->group, entry->attr,
			  wide ? (void *)&val : &val32);
	if (ret) {
		entry->error = ret == -EBUSY ? 0 : ret;
		return ret;
	}
	if (!write) {
		entry->val = wide ? val : val32;
		entry->val_hi = wide ? val >> 32 : 0;
	}
	return 0;
}

/* All calls of a list */

/**
 * struct outcome - what came of a list of accesses
 * @err:	0, or the first error
 * @failed:	the entry whose error that is; NULL if it is a whole call's
 * @touched:	a register may have been written
 */
struct outcome {
	int err;
	const entry_t *failed;
	bool touched;
};

/*
 * What came of one call for @n entries. Their errors become 0 again, which
 * is how a call that fails as a whole is known: it leaves them alone. Returns
 * whether it did.
 */
static bool note_call(struct sgic_device *dev, bool write, entry_t *entries,
		      size_t n, int ret, struct outcome *outcome)
{
	size_t i, bad = 0;

	dev->stats.calls++;
	for (i = 0; ret && i < n; i++) {
		if (!entries[i].error)
			continue;
		if (!bad++ && !outcome->err) {
			outcome->err = entries[i].error;
			outcome->failed = &entries[i];
		}
		entries[i].error = 0;
	}

	if (ret && !bad) {
		if (!outcome->err)
			outcome->err = ret;
		/* The results did not come back, or not all was done. */
		if (ret == -EFAULT || ret == -EINTR)
			outcome->touched |= write;
		return true;
	}
	dev->stats.registers += n - bad;
	outcome->touched |= write && n > bad;
	return false;
}

/*
 * Read or write registers of one device, in batches of up to @max_batch or,
 * if that is 0, one by one. A register that cannot be written does not keep
 * the others from it; one that cannot be read ends it, and so does a call
 * that fails as a whole.
 *
 * Nothing is tried twice: a call for one register cannot be interrupted, and
 * a batch gives -EINTR only to a caller that is being killed.
 */
static struct outcome access_all(struct sgic_device *dev, int fd,
				 uint32_t max_batch, bool write,
				 entry_t *entries, size_t nr)
{
	struct outcome outcome = { 0 };
	size_t n = 1;
	int ret;

	for (; nr; entries += n, nr -= n) {
		if (max_batch)
			n = nr < max_batch ? nr : max_batch;
		ret = max_batch ? access_batch(fd, write, entries, n)
				: access_one(fd, write, entries);
		if (note_call(dev, write, entries, n, ret, &outcome))
			break;
		if (outcome.err && !write)
			break;
	}
	return outcome;
}

/* Errors */

static const char *busy(int err)
{
	return err == -EBUSY ? " while a vCPU is in KVM_RUN or another ioctl"
			     : "";
}

static int fail_vcpu(struct sgic_error *error, int err, uint32_t vcpu)
{
	if (error)
		error->vcpu = vcpu;
	return err;
}

static int fail_its(struct sgic_error *error, int err, uint32_t its)
{
	if (error)
		error->its = its;
	return err;
}

/* Some registers of @list could not be read or written. */
static int fail_access(const struct list *list, const struct outcome *outcome,
		       enum sgic_step step, const char *doing,
		       struct sgic_error *error)
{
	const entry_t *entries = list->entries + list->nr_typers;
	int err = outcome->err;

	if (outcome->failed)
		sgic_fail_reg(error, step, err,
			      &list->regs[outcome->failed - entries], doing);
	else
		sgic_fail_errno(error, step, err, "%s the registers%s", doing,
				busy(err));
	if (error)
		error->touched = outcome->touched;
	return err;
}

/* MPIDRs against redistributors */

static uint64_t typer_attr(const struct sgic_device *dev, uint32_t vcpu,
			   uint32_t half)
{
	return sgic_vcpu_attr(dev->mpidrs[vcpu], GICR_TYPER + 4 * half);
}

static int fail_typer(const struct sgic_device *dev, uint32_t vcpu, int err,
		      struct sgic_error *error)
{
	sgic_fail_errno(error, SGIC_STEP_TOPOLOGY, err,
			"finding vCPU %u by its MPIDR, %#llx", vcpu,
			(unsigned long long)dev->mpidrs[vcpu]);
	if (error) {
		error->group = KVM_DEV_ARM_VGIC_GRP_REDIST_REGS;
		error->attr = typer_attr(dev, vcpu, 0);
	}
	return fail_vcpu(error, err, vcpu);
}

/* KVM leaves Aff3 out of GICR_TYPER; whoever does not has to have it right. */
static int check_affinity(const struct sgic_device *dev, uint32_t vcpu,
			  uint32_t high, struct sgic_error *error)
{
	uint64_t mpidr = dev->mpidrs[vcpu];
	uint32_t aff3 = GICR_TYPER_AFF3(high);

	if (GICR_TYPER_AFF2_0(high) == (mpidr & 0xffffff) &&
	    (!aff3 || aff3 == mpidr >> 32))
		return 0;
	sgic_fail(
		error, SGIC_STEP_TOPOLOGY, -EXDEV,
		"vCPU %u was found by the MPIDR %#llx, but its GICR_TYPER has the affinity %#x",
		vcpu, (unsigned long long)mpidr, high);
	return fail_vcpu(error, -EXDEV, vcpu);
}

/*
 * The kernel numbers the VM's vCPUs. If one is missing here, a number is too
 * large; or it is the last one, and then no redistributor is the last.
 */
static int check_numbers(const struct sgic_device *dev, const entry_t *typers,
			 struct sgic_error *error)
{
	uint32_t nr = dev->shape.nr_vcpus, number, i;
	int32_t owner[SGIC_MAX_VCPUS];
	bool last = false;

	for (i = 0; i < nr; i++)
		owner[i] = -1;
	for (i = 0; i < nr; i++) {
		number = GICR_TYPER_PROCESSOR(typers[2 * i].val);
		last |= typers[2 * i].val & GICR_TYPER_LAST;
		if (number >= nr) {
			sgic_fail(
				error, SGIC_STEP_TOPOLOGY, -EXDEV,
				"vCPU %u is number %u to the kernel, and there are %u MPIDRs: a vCPU is missing",
				i, number, nr);
			return fail_vcpu(error, -EXDEV, i);
		}
		if (owner[number] >= 0) {
			sgic_fail(
				error, SGIC_STEP_TOPOLOGY, -EXDEV,
				"vCPUs %d and %u are both number %u to the kernel",
				owner[number], i, number);
			return fail_vcpu(error, -EXDEV, i);
		}
		owner[number] = i;
	}
	if (!last)
		return sgic_fail(
			error, SGIC_STEP_TOPOLOGY, -EXDEV,
			"none of %u redistributors is the last of its region: a vCPU is missing, or they have no address",
			nr);
	return 0;
}

static int probe_vcpus(struct sgic_device *dev, entry_t *typers,
		       struct sgic_error *error)
{
	uint32_t nr = dev->shape.nr_vcpus, i;
	struct outcome outcome;
	int ret;

	for (i = 0; i < 2 * nr; i++)
		typers[i] = (entry_t){
			.group = KVM_DEV_ARM_VGIC_GRP_REDIST_REGS,
			.attr = typer_attr(dev, i / 2, i % 2),
		};
	outcome = access_all(dev, dev->gic_fd, dev->max_batch, false, typers,
			     2 * nr);
	/* Before it is initialised, all registers are busy. */
	if (outcome.failed && outcome.err != -EBUSY)
		return fail_typer(dev, (outcome.failed - typers) / 2,
				  outcome.err, error);
	if (outcome.err)
		return sgic_fail_errno(
			error, SGIC_STEP_TOPOLOGY, outcome.err,
			"reading GICR_TYPER of the vCPUs%s%s",
			busy(outcome.err),
			outcome.err == -EBUSY
				? ", or before KVM_DEV_ARM_VGIC_CTRL_INIT"
				: "");

	for (i = 0; i < nr; i++) {
		ret = check_affinity(dev, i, typers[2 * i + 1].val, error);
		if (ret)
			return ret;
	}
	dev->shape.lpis = typers[0].val & GICR_TYPER_PLPIS;
	return check_numbers(dev, typers, error);
}

/* A new device */

/* The largest count that the kernel does not refuse */
static uint32_t find_batch_limit(int fd)
{
	uint32_t good = 0, bad = 1, middle;

	if (has_attr(fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0))
		return 0;
	while (bad < MAX_BATCH &&
	       !has_attr(fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, bad)) {
		good = bad;
		bad *= 2;
	}
	while (bad - good > 1) {
		middle = good + (bad - good) / 2;
		if (has_attr(fd, KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, middle))
			bad = middle;
		else
			good = middle;
	}
	return good;
}

/* Devices of the right type have these attributes, and no others do. */
static int probe_types(const struct sgic_device *dev, struct sgic_error *error)
{
	uint32_t i;
	int ret;

	ret = has_attr(dev->gic_fd, KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO, 0);
	if (ret)
		return sgic_fail(error, SGIC_STEP_PROBE, -ENODEV,
				 "file descriptor %d is no VGICv3 device",
				 dev->gic_fd);
	for (i = 0; i < dev->shape.nr_its; i++) {
		ret = has_attr(dev->its_fds[i], KVM_DEV_ARM_VGIC_GRP_CTRL,
			       KVM_DEV_ARM_ITS_SAVE_TABLES);
		if (!ret)
			continue;
		sgic_fail(error, SGIC_STEP_PROBE, -ENODEV,
			  "file descriptor %d, ITS %u, is no VGIC ITS device",
			  dev->its_fds[i], i);
		return fail_its(error, -ENODEV, i);
	}
	return 0;
}

/* A system register of vCPU 0 */
static int probe_sysreg(struct sgic_device *dev, uint32_t sysreg,
			const char *name, uint64_t *val,
			struct sgic_error *error)
{
	entry_t entry = {
		.group = KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
		.attr = sgic_vcpu_attr(dev->mpidrs[0], sysreg),
	};
	int ret = access_one(dev->gic_fd, false, &entry);

	if (ret) {
		sgic_fail_errno(error, SGIC_STEP_PROBE, ret,
				"reading %s of vCPU 0%s", name, busy(ret));
		if (error) {
			error->group = entry.group;
			error->attr = entry.attr;
		}
		return fail_vcpu(error, ret, 0);
	}
	*val = (uint64_t)entry.val_hi << 32 | entry.val;
	return 0;
}

static int probe(struct sgic_device *dev, struct sgic_error *error)
{
	struct sgic_shape *shape = &dev->shape;
	const char *why;
	uint64_t val;
	int ret;

	ret = device_attr(dev->gic_fd, KVM_GET_DEVICE_ATTR,
			  KVM_DEV_ARM_VGIC_GRP_NR_IRQS, 0, &shape->nr_irqs);
	if (ret)
		return sgic_fail_errno(error, SGIC_STEP_PROBE, ret,
				       "reading the number of interrupts");

	ret = probe_sysreg(dev, ICC_CTLR_EL1, "ICC_CTLR_EL1", &val, error);
	if (ret)
		return ret;
	shape->pri_bits = ICC_CTLR_PRIBITS(val);

	shape->el2 = !has_attr(dev->gic_fd, KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
			       sgic_vcpu_attr(dev->mpidrs[0], ICH_VTR_EL2));
	if (shape->el2) {
		ret = probe_sysreg(dev, ICH_VTR_EL2, "ICH_VTR_EL2", &val,
				   error);
		if (ret)
			return ret;
		shape->nr_lrs = ICH_VTR_LISTREGS(val);
	}

	why = sgic_shape_check(shape);
	if (why)
		return sgic_fail(error, SGIC_STEP_PROBE, -EOPNOTSUPP,
				 "not a machine that this library knows: %s",
				 why);
	return 0;
}

static int fill_list(const struct sgic_device *dev, enum sgic_dir dir,
		     struct list *list)
{
	struct sgic_shape gic = dev->shape;
	size_t i;

	gic.nr_its = 0;
	list->nr = sgic_regs_count(&dev->shape, dir);
	list->nr_gic = sgic_regs_count(&gic, dir);
	list->nr_typers = dir == SGIC_SAVE ? dev->shape.nr_vcpus : 0;
	list->regs = calloc(list->nr, sizeof(*list->regs));
	list->entries = calloc(list->nr_typers + list->nr,
			       sizeof(*list->entries));
	if (!list->regs || !list->entries)
		return -ENOMEM;

	sgic_regs_fill(&dev->shape, dir, list->regs);
	for (i = 0; i < list->nr_typers; i++) {
		list->entries[i].group = KVM_DEV_ARM_VGIC_GRP_REDIST_REGS;
		list->entries[i].attr = typer_attr(dev, i, 1);
	}
	for (i = 0; i < list->nr; i++) {
		list->entries[list->nr_typers + i].group = list->regs[i].group;
		list->entries[list->nr_typers + i].attr = list->regs[i].attr;
	}
	return 0;
}

static int fail_memory(struct sgic_error *error)
{
	return sgic_fail(error, SGIC_STEP_MEMORY, -ENOMEM, "out of memory");
}

static int fail_argument(struct sgic_error *error, const char *what)
{
	return sgic_fail(error, SGIC_STEP_ARGUMENT, -EINVAL, "%s", what);
}

static int check_config(const struct sgic_device_config *config,
			struct sgic_error *error)
{
	const char *extra = (const char *)config + sizeof(*config);
	size_t i;

	if (config->size < sizeof(*config))
		return fail_argument(
			error, "the config's size is not that of the struct");
	/* Of a newer header: fine as long as what it adds is not used. */
	for (i = 0; i < config->size - sizeof(*config); i++)
		if (extra[i])
			return fail_argument(
				error,
				"the config asks for what this version of the library has not");
	if (config->flags & ~SGIC_DEVICE_NO_BATCH)
		return fail_argument(error, "the config has an unknown flag");
	if (!config->nr_vcpus || config->nr_vcpus > SGIC_MAX_VCPUS)
		return fail_argument(error,
				     "the number of vCPUs is not 1 to 512");
	if (config->nr_its > SGIC_MAX_ITS)
		return fail_argument(error,
				     "the number of ITSs is not 0 to 16");
	if (!config->mpidrs || (config->nr_its && !config->its_fds))
		return fail_argument(
			error,
			"the config has no MPIDRs, or no file descriptors of its ITSs");
	return 0;
}

/* Copies them, and sees that there are none twice. */
static int take_config(struct sgic_device *dev,
		       const struct sgic_device_config *config,
		       struct sgic_error *error)
{
	uint32_t i, j;

	dev->gic_fd = config->gic_fd;
	dev->shape.nr_its = config->nr_its;
	dev->shape.nr_vcpus = config->nr_vcpus;
	dev->shape.mpidrs = dev->mpidrs;
	for (i = 0; i < config->nr_its; i++) {
		dev->its_fds[i] = config->its_fds[i];
		for (j = 0; j < i; j++) {
			if (dev->its_fds[j] != dev->its_fds[i])
				continue;
			sgic_fail(
				error, SGIC_STEP_ARGUMENT, -EINVAL,
				"ITSs %u and %u have the same file descriptor, %d",
				j, i, dev->its_fds[i]);
			return fail_its(error, -EINVAL, i);
		}
	}
	for (i = 0; i < config->nr_vcpus; i++) {
		dev->mpidrs[i] = config->mpidrs[i] & SGIC_MPIDR_MASK;
		for (j = 0; j < i; j++) {
			if (dev->mpidrs[j] != dev->mpidrs[i])
				continue;
			sgic_fail(error, SGIC_STEP_ARGUMENT, -EINVAL,
				  "vCPUs %u and %u have the same MPIDR, %#llx",
				  j, i, (unsigned long long)dev->mpidrs[i]);
			return fail_vcpu(error, -EINVAL, i);
		}
	}
	return 0;
}

static int create(struct sgic_device *dev,
		  const struct sgic_device_config *config,
		  struct sgic_error *error)
{
	entry_t *typers;
	int ret;

	ret = take_config(dev, config, error);
	if (!ret)
		ret = probe_types(dev, error);
	if (ret)
		return ret;

	dev->batch_limit = find_batch_limit(dev->gic_fd);
	if (!(config->flags & SGIC_DEVICE_NO_BATCH))
		dev->max_batch = dev->batch_limit;

	typers = calloc(2 * dev->shape.nr_vcpus, sizeof(*typers));
	if (!typers)
		return fail_memory(error);
	ret = probe_vcpus(dev, typers, error);
	free(typers);
	if (!ret)
		ret = probe(dev, error);
	if (ret)
		return ret;

	if (fill_list(dev, SGIC_SAVE, &dev->save) ||
	    fill_list(dev, SGIC_RESTORE, &dev->restore))
		return fail_memory(error);
	dev->stats = (struct sgic_stats){ 0 };
	return 0;
}

int sgic_device_new(const struct sgic_device_config *config,
		    struct sgic_device **device, struct sgic_error *error)
{
	struct sgic_device *dev;
	int ret;

	ret = check_config(config, error);
	if (ret)
		return ret;
	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return fail_memory(error);
	ret = create(dev, config, error);
	if (ret)
		sgic_device_free(dev);
	else
		*device = dev;
	return ret;
}

static void free_list(struct list *list)
{
	free(list->regs);
	free(list->entries);
}

void sgic_device_free(struct sgic_device *device)
{
	if (!device)
		return;
	free_list(&device->save);
	free_list(&device->restore);
	free(device);
}

uint32_t sgic_device_batch_limit(const struct sgic_device *device)
{
	return device->batch_limit;
}

void sgic_device_stats(const struct sgic_device *device,
		       struct sgic_stats *stats)
{
	*stats = device->stats;
}

/* Tables in guest memory */

static int flush_pending(struct sgic_device *dev, struct sgic_error *error)
{
	int ret = control(dev->gic_fd, KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES);

	if (!ret)
		return 0;
	return sgic_fail_errno(
		error, SGIC_STEP_PENDING_TABLES, ret,
		"flushing LPI pending bits to guest memory%s%s", busy(ret),
		ret == -EFAULT
			? ", which has to have the pages that GICR_PENDBASER points to"
			: "");
}

static int its_control(struct sgic_device *dev, uint32_t its, uint64_t attr,
		       enum sgic_step step, const char *doing,
		       struct sgic_error *error)
{
	int ret = control(dev->its_fds[its], attr);

	if (!ret)
		return 0;
	sgic_fail_errno(
		error, step, ret, "%s ITS %u%s%s", doing, its, busy(ret),
		ret == -EFAULT
			? "; guest memory has to have the pages that GITS_BASER0, GITS_BASER1 and the device table point to"
			: "");
	return fail_its(error, ret, its);
}

/* Save */

static int save_tables(struct sgic_device *dev, struct sgic_error *error)
{
	uint64_t start = now_ns();
	uint32_t its;
	int ret = 0;

	if (dev->shape.lpis)
		ret = flush_pending(dev, error);
	for (its = 0; !ret && its < dev->shape.nr_its; its++)
		ret = its_control(dev, its, KVM_DEV_ARM_ITS_SAVE_TABLES,
				  SGIC_STEP_ITS_TABLES,
				  "writing to guest memory the tables of",
				  error);
	dev->stats.tables_ns = now_ns() - start;
	return ret;
}

static int save_gic(struct sgic_device *dev, struct sgic_error *error)
{
	const struct list *list = &dev->save;
	struct outcome outcome;
	size_t i;
	int ret;

	outcome = access_all(dev, dev->gic_fd, dev->max_batch, false,
			     list->entries, list->nr_typers + list->nr_gic);
	if (outcome.failed && outcome.failed < list->entries + list->nr_typers)
		return fail_typer(dev, outcome.failed - list->entries,
				  outcome.err, error);
	if (outcome.err)
		return fail_access(list, &outcome, SGIC_STEP_REGISTER,
				   "reading", error);
	for (i = 0; i < list->nr_typers; i++) {
		ret = check_affinity(dev, i, list->entries[i].val, error);
		if (ret)
			return ret;
	}
	return 0;
}

/* The registers of one ITS in a list */
static size_t its_regs(const struct sgic_device *dev, const struct list *list,
		       uint32_t its, entry_t **entries)
{
	size_t nr = (list->nr - list->nr_gic) / dev->shape.nr_its;

	*entries = list->entries + list->nr_typers + list->nr_gic + its * nr;
	return nr;
}

static int access_its(struct sgic_device *dev, const struct list *list,
		      uint32_t its, bool write, entry_t *entries, size_t nr,
		      struct sgic_error *error)
{
	struct outcome outcome;

	outcome = access_all(dev, dev->its_fds[its], 0, write, entries, nr);
	if (!outcome.err)
		return 0;
	fail_access(list, &outcome, SGIC_STEP_ITS_REGISTER,
		    write ? "writing" : "reading", error);
	return fail_its(error, outcome.err, its);
}

static int save(struct sgic_device *dev, struct sgic_state *state,
		struct sgic_error *error)
{
	const struct list *list = &dev->save;
	const entry_t *entry = list->entries + list->nr_typers;
	entry_t *entries;
	uint32_t its;
	size_t nr, i;
	int ret;

	ret = save_tables(dev, error);
	if (!ret)
		ret = save_gic(dev, error);
	for (its = 0; !ret && its < dev->shape.nr_its; its++) {
		nr = its_regs(dev, list, its, &entries);
		ret = access_its(dev, list, its, false, entries, nr, error);
	}
	if (ret)
		return ret;

	if (sgic_state_shape(state, &dev->shape))
		return fail_memory(error);
	for (i = 0; i < list->nr; i++, entry++)
		state->values[i] = (uint64_t)entry->val_hi << 32 | entry->val;
	return 0;
}

static uint64_t start_stats(struct sgic_device *dev)
{
	dev->stats = (struct sgic_stats){ .batched = dev->max_batch };
	return now_ns();
}

int sgic_device_save(struct sgic_device *device, struct sgic_state *state,
		     struct sgic_error *error)
{
	uint64_t start = start_stats(device);
	int ret = save(device, state, error);

	device->stats.ns = now_ns() - start;
	return ret;
}

/* Restore */

static int check_shape(const struct sgic_device *dev,
		       const struct sgic_state *state, struct sgic_error *error)
{
	if (!state->nr)
		return fail_argument(error, "the state is empty");
	if (!sgic_shape_equal(&state->shape, &dev->shape))
		return sgic_fail_shape(error, &state->shape, "the state",
				       &dev->shape, "this VM");
	return 0;
}

static int restore_gic(struct sgic_device *dev, const uint64_t *values,
		       struct sgic_error *error)
{
	const struct list *list = &dev->restore;
	struct outcome outcome;
	uint64_t val;
	size_t i;

	for (i = 0; i < list->nr; i++) {
		val = sgic_reg_value(&list->regs[i], values);
		list->entries[i].val = val;
		list->entries[i].val_hi = val >> 32;
	}
	outcome = access_all(dev, dev->gic_fd, dev->max_batch, true,
			     list->entries, list->nr_gic);
	if (!outcome.err)
		return 0;
	return fail_access(list, &outcome, SGIC_STEP_REGISTER, "writing",
			   error);
}

/* Its last register is GITS_CTLR, which enables it. */
static int restore_its(struct sgic_device *dev, uint32_t its,
		       struct sgic_error *error)
{
	const struct list *list = &dev->restore;
	entry_t *entries;
	size_t nr = its_regs(dev, list, its, &entries);
	uint64_t start;
	int ret;

	ret = access_its(dev, list, its, true, entries, nr - 1, error);
	if (ret)
		return ret;
	start = now_ns();
	ret = its_control(dev, its, KVM_DEV_ARM_ITS_RESTORE_TABLES,
			  SGIC_STEP_ITS_TABLES,
			  "reading from guest memory the tables of", error);
	dev->stats.tables_ns += now_ns() - start;
	if (ret)
		return ret;
	return access_its(dev, list, its, true, entries + nr - 1, 1, error);
}

/*
 * The ITSs are reset before all else: one that is enabled ignores writes to
 * its tables' addresses, one that has devices or collections refuses to read
 * others, and LPIs that are mapped read their pending bits while the
 * redistributors are restored.
 */
static int restore(struct sgic_device *dev, const struct sgic_state *state,
		   struct sgic_error *error)
{
	bool touched = false;
	uint32_t its;
	int ret;

	ret = check_shape(dev, state, error);
	for (its = 0; !ret && its < dev->shape.nr_its; its++) {
		ret = its_control(dev, its, KVM_DEV_ARM_ITS_CTRL_RESET,
				  SGIC_STEP_ITS_REGISTER, "resetting", error);
		touched |= !ret;
	}
	if (!ret)
		ret = restore_gic(dev, state->values, error);
	for (its = 0; !ret && its < dev->shape.nr_its; its++)
		ret = restore_its(dev, its, error);

	if (ret && error)
		error->touched |= touched;
	return ret;
}

int sgic_device_restore(struct sgic_device *device,
			const struct sgic_state *state,
			struct sgic_error *error)
{
	uint64_t start = start_stats(device);
	int ret = restore(device, state, error);

	device->stats.ns = now_ns() - start;
	return ret;
}
