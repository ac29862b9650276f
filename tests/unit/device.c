// SPDX-License-Identifier: MIT
/*
 * The device, on a fake VGIC: what a kernel does not do on demand. Every call
 * of the library to the kernel or for memory comes here (the linker's --wrap),
 * and any of them can be made to fail.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "regs.h"
#include "swiftgic.h"
#include "vgic.h"
#include "vgic_batch.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define GIC_FD	 1000 /* no file is open there */
#define ITS_FD	 2000
#define OTHER_FD 3000 /* a device of another type */
#define NR_IRQS	 64
#define TYPER	 0x0008

#define NR_SLOTS (1 << 17) /* of the hash of registers; a power of 2 */
#define MAX_LOG	 64

/* What a call to the fake was */
enum op {
	OP_READ = 1,
	OP_WRITE,
	OP_PENDING,
	OP_ITS_SAVE,
	OP_ITS_RESTORE,
	OP_ITS_RESET,
};

struct slot {
	bool used;
	int fd;
	uint32_t group;
	uint64_t attr;
	uint64_t val;
};

/**
 * struct fake - the VM
 * @limit:	of a batch; 0: no batch call
 * @numbers:	Processor_Number of each vCPU
 * @not_last:	no redistributor is the last
 * @wrong:	the vCPU whose GICR_TYPER has @wrong_affinity, or -1
 * @fail_call:	which call to the kernel fails, counted from 1, with @err
 * @late:	it fails after all has been done
 * @fail_reg:	which access to a register fails, likewise, with @reg_err
 * @fail_regs:	all from that on do
 * @fail_alloc:	which allocation fails
 * @wrote:	a register has been written, or an ITS reset
 * @writes:	registers that were written
 * @log:	all that was called, the repeated once
 */
static struct fake {
	uint64_t mpidrs[SGIC_MAX_VCPUS];
	uint32_t numbers[SGIC_MAX_VCPUS];
	uint32_t nr_vcpus;
	uint32_t nr_its;
	uint32_t limit;
	bool lpis;
	bool el2;
	bool not_last;
	int wrong;
	uint32_t wrong_affinity;

	unsigned int fail_call;
	unsigned int fail_reg;
	unsigned int fail_alloc;
	bool late;
	bool fail_regs;
	int err;
	int reg_err;
	unsigned int calls;
	unsigned int regs;
	unsigned int allocs;
	unsigned int writes;
	unsigned int largest;
	bool wrote;

	struct {
		enum op op;
		int fd;
	} log[MAX_LOG];
	unsigned int nr_log;
} fake;

static struct slot slots[NR_SLOTS];

static struct slot *slot(int fd, uint32_t group, uint64_t attr)
{
	uint64_t hash = (attr ^ group ^ (uint64_t)fd << 48) *
			0x9e3779b97f4a7c15ULL;
	struct slot *s;

	for (s = &slots[hash >> 47];;
	     s = s == slots ? slots + NR_SLOTS - 1 : s - 1) {
		if (s->used && s->fd == fd && s->group == group &&
		    s->attr == attr)
			return s;
		if (s->used)
			continue;
		*s = (struct slot){ true, fd, group, attr, 0 };
		return s;
	}
}

static void note(enum op op, int fd)
{
	unsigned int n = fake.nr_log;

	if (n && fake.log[n - 1].op == op && fake.log[n - 1].fd == fd)
		return;
	assert_true(n < MAX_LOG);
	fake.log[n].op = op;
	fake.log[n].fd = fd;
	fake.nr_log++;
}

static int vcpu_of(uint64_t attr)
{
	for (uint32_t i = 0; i < fake.nr_vcpus; i++)
		if (attr >> 32 == sgic_vcpu_attr(fake.mpidrs[i], 0) >> 32)
			return i;
	return -1;
}

static uint32_t typer(int vcpu, bool high)
{
	uint32_t number = fake.numbers[vcpu];

	if (high)
		return vcpu == fake.wrong ? fake.wrong_affinity
					  : fake.mpidrs[vcpu] & 0xffffff;
	return number << 8 | fake.lpis |
	       (number == fake.nr_vcpus - 1 && !fake.not_last) << 4;
}

/* One register, in a batch or not */
static int access_reg(int fd, bool write, uint32_t group, uint64_t attr,
		      uint64_t *val)
{
	int vcpu = 0;

	if (group != KVM_DEV_ARM_VGIC_GRP_DIST_REGS &&
	    group != KVM_DEV_ARM_VGIC_GRP_ITS_REGS)
		vcpu = vcpu_of(attr);
	if (vcpu < 0)
		return -EINVAL;
	fake.regs++;
	if (fake.regs == fake.fail_reg ||
	    (fake.fail_regs && fake.regs > fake.fail_reg))
		return -fake.reg_err;

	note(write ? OP_WRITE : OP_READ, fd);
	if (write) {
		slot(fd, group, attr)->val = *val;
		fake.wrote = true;
		fake.writes++;
	} else if (group == KVM_DEV_ARM_VGIC_GRP_REDIST_REGS &&
		   ((uint32_t)attr & ~4U) == TYPER) {
		*val = typer(vcpu, attr & 4);
	} else {
		*val = slot(fd, group, attr)->val;
	}
	return 0;
}

static int access_batch(bool write, uint64_t count,
			struct kvm_dev_arm_vgic_batch_entry *e)
{
	int ret = 0;

	assert_in_range(count, 1, fake.limit);
	if (count > fake.largest)
		fake.largest = count;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t val = (uint64_t)e[i].val_hi << 32 | e[i].val;
		bool wide = e[i].group == KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS;

		assert_int_not_equal(e[i].group, KVM_DEV_ARM_VGIC_GRP_ITS_REGS);
		if (write && !wide)
			assert_int_equal(e[i].val_hi, 0);
		e[i].error = access_reg(GIC_FD, write, e[i].group, e[i].attr,
					&val);
		if (e[i].error) {
			ret = ret ? ret : e[i].error;
			continue;
		}
		e[i].val = val;
		e[i].val_hi = val >> 32;
	}
	return ret;
}

static int has_attr(int fd, const struct kvm_device_attr *attr)
{
	switch (attr->group) {
	case KVM_DEV_ARM_VGIC_GRP_BATCH_REGS:
		return fd == GIC_FD && fake.limit && attr->attr <= fake.limit
			       ? 0
			       : -ENXIO;
	case KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO:
		return fd == GIC_FD ? 0 : -ENXIO;
	case KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS:
		/* only ICH_VTR_EL2 is asked for */
		return fake.el2 ? 0 : -ENXIO;
	case KVM_DEV_ARM_VGIC_GRP_CTRL:
		return fd >= ITS_FD && fd < OTHER_FD ? 0 : -ENXIO;
	}
	return -ENXIO;
}

static int control(int fd, uint64_t attr)
{
	if (fd == GIC_FD) {
		assert_int_equal(attr, KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES);
		note(OP_PENDING, fd);
		return 0;
	}
	switch (attr) {
	case KVM_DEV_ARM_ITS_SAVE_TABLES:
		note(OP_ITS_SAVE, fd);
		return 0;
	case KVM_DEV_ARM_ITS_RESTORE_TABLES:
		note(OP_ITS_RESTORE, fd);
		return 0;
	case KVM_DEV_ARM_ITS_CTRL_RESET:
		note(OP_ITS_RESET, fd);
		fake.wrote = true;
		return 0;
	}
	return -ENXIO;
}

static int get_or_set(int fd, bool write, const struct kvm_device_attr *attr)
{
	bool wide = attr->group == KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS ||
		    attr->group == KVM_DEV_ARM_VGIC_GRP_ITS_REGS;
	void *addr = (void *)(uintptr_t)attr->addr;
	uint64_t val;
	int ret;

	switch (attr->group) {
	case KVM_DEV_ARM_VGIC_GRP_CTRL:
		assert_true(write);
		return control(fd, attr->attr);
	case KVM_DEV_ARM_VGIC_GRP_NR_IRQS:
		assert_false(write);
		*(uint32_t *)addr = NR_IRQS;
		return 0;
	case KVM_DEV_ARM_VGIC_GRP_BATCH_REGS:
		assert_int_equal(fd, GIC_FD);
		return access_batch(write, attr->attr, addr);
	}

	val = wide ? *(uint64_t *)addr : *(uint32_t *)addr;
	ret = access_reg(fd, write, attr->group, attr->attr, &val);
	if (ret || write)
		return ret;
	if (wide)
		*(uint64_t *)addr = val;
	else
		*(uint32_t *)addr = val;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long req, ...);
int __wrap_ioctl(int fd, unsigned long req, ...)
{
	const struct kvm_device_attr *attr;
	va_list ap;
	bool fails;
	int ret;

	va_start(ap, req);
	attr = va_arg(ap, const struct kvm_device_attr *);
	va_end(ap);
	assert_int_equal(attr->flags, 0);

	fails = ++fake.calls == fake.fail_call;
	if (fails && !fake.late)
		ret = -fake.err;
	else if (req == KVM_HAS_DEVICE_ATTR)
		ret = has_attr(fd, attr);
	else
		ret = get_or_set(fd, req == KVM_SET_DEVICE_ATTR, attr);
	if (fails)
		ret = -fake.err;
	errno = -ret;
	return ret ? -1 : 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return ++fake.allocs == fake.fail_alloc ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return ++fake.allocs == fake.fail_alloc ? NULL : __real_calloc(n, size);
}

/* Machines */

#define ICC_CTLR_EL1 0xc664
#define ICH_VTR_EL2  0xe659

/* Count from here on, and let nothing fail. */
static void fake_reset(void)
{
	fake.fail_call = fake.fail_reg = fake.fail_alloc = 0;
	fake.late = fake.fail_regs = false;
	fake.calls = fake.regs = fake.allocs = 0;
	fake.writes = fake.largest = fake.nr_log = 0;
	fake.wrote = false;
}

static void fake_new(uint32_t nr_vcpus, uint32_t nr_its, uint32_t limit)
{
	memset(slots, 0, sizeof(slots));
	fake = (struct fake){
		.nr_vcpus = nr_vcpus,
		.nr_its = nr_its,
		.limit = limit,
		.lpis = nr_its,
		.wrong = -1,
	};
	for (uint32_t i = 0; i < nr_vcpus; i++) {
		fake.mpidrs[i] = (uint64_t)(i % 3) << 32 | i / 3 % 16 |
				 i / 48 << 8;
		fake.numbers[i] = i;
		/* five priority bits; two list registers, where they are */
		slot(GIC_FD, KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
		     sgic_vcpu_attr(fake.mpidrs[i], ICC_CTLR_EL1))
			->val = 4 << 8;
		slot(GIC_FD, KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
		     sgic_vcpu_attr(fake.mpidrs[i], ICH_VTR_EL2))
			->val = 1;
	}
}

static struct sgic_shape fake_shape(void)
{
	return (struct sgic_shape){
		.nr_vcpus = fake.nr_vcpus,
		.mpidrs = fake.mpidrs,
		.nr_irqs = NR_IRQS,
		.nr_its = fake.nr_its,
		.pri_bits = 5,
		.nr_lrs = fake.el2 ? 2 : 0,
		.lpis = fake.lpis,
		.el2 = fake.el2,
	};
}

/* A value of its own for each register that has no meaning to the library */
static void fake_fill(uint64_t seed)
{
	struct sgic_shape shape = fake_shape();
	size_t n = sgic_regs_count(&shape, SGIC_SAVE);
	struct sgic_reg *regs = calloc(n, sizeof(*regs));
	uint64_t val;

	assert_non_null(regs);
	sgic_regs_fill(&shape, SGIC_SAVE, regs);
	for (size_t i = 0; i < n; i++) {
		if ((uint32_t)regs[i].attr == ICC_CTLR_EL1 ||
		    (uint32_t)regs[i].attr == ICH_VTR_EL2)
			continue;
		val = (seed + i + 1) * 0x9e3779b97f4a7c15ULL;
		if (!sgic_reg_wide(&regs[i]))
			val = (uint32_t)val;
		slot(sgic_reg_has_its(&regs[i]) ? ITS_FD + regs[i].its : GIC_FD,
		     regs[i].group, regs[i].attr)
			->val = val;
	}
	free(regs);
}

static struct sgic_device_config fake_config(void)
{
	static int its_fds[SGIC_MAX_ITS];

	for (int i = 0; i < SGIC_MAX_ITS; i++)
		its_fds[i] = ITS_FD + i;
	return (struct sgic_device_config){
		.size = sizeof(struct sgic_device_config),
		.gic_fd = GIC_FD,
		.its_fds = its_fds,
		.nr_its = fake.nr_its,
		.mpidrs = fake.mpidrs,
		.nr_vcpus = fake.nr_vcpus,
	};
}

static struct sgic_device *fake_device(uint32_t flags)
{
	struct sgic_device_config config = fake_config();
	struct sgic_device *device = NULL;
	struct sgic_error error;
	int ret;

	config.flags = flags;
	ret = sgic_device_new(&config, &device, &error);
	if (ret)
		fail_msg("%s", error.message);
	return device;
}

static struct sgic_state *new_state(void)
{
	struct sgic_state *state = sgic_state_new();

	assert_non_null(state);
	return state;
}

static struct sgic_state *saved(struct sgic_device *device)
{
	struct sgic_state *state = new_state();
	struct sgic_error error;

	if (sgic_device_save(device, state, &error))
		fail_msg("%s", error.message);
	return state;
}

static bool equal(const struct sgic_state *a, const struct sgic_state *b)
{
	int ret = sgic_state_compare(a, b, NULL, NULL, NULL);

	assert_in_range(ret, 0, 1);
	return !ret;
}

static void check_message(const struct sgic_error *error, const char *part)
{
	if (!strstr(error->message, part))
		fail_msg("'%s' is not in '%s'", part, error->message);
}

/* A creation that fails, with this errno, in this step */
static void check_new(const struct sgic_device_config *config, int err,
		      enum sgic_step step, const char *message)
{
	struct sgic_device *device = (void *)0x5a5a;
	struct sgic_error error;

	assert_int_equal(sgic_device_new(config, &device, &error), err);
	assert_ptr_equal(device, (void *)0x5a5a);
	assert_int_equal(error.err, err);
	assert_int_equal(error.step, step);
	assert_false(error.touched);
	check_message(&error, message);
	/* and without an error to fill in */
	assert_int_equal(sgic_device_new(config, &device, NULL), err);
}

/* Creation */

static void arguments(void **unused)
{
	struct {
		struct sgic_device_config config;
		char newer[8];
	} large = { 0 };
	struct sgic_device_config config, good;
	uint64_t twice[] = { 0, 7, 1ULL << 32, 7 | 1ULL << 31, 9 };
	int same_its[] = { ITS_FD, ITS_FD + 1, ITS_FD };
	struct sgic_device *device;

	(void)unused;
	fake_new(2, 1, 4096);
	good = fake_config();

	config = good;
	config.size--;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "size");
	config = good;
	config.flags = 2;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "flag");
	config = good;
	config.nr_vcpus = 0;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "1 to 512");
	config.nr_vcpus = 513;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "1 to 512");
	config = good;
	config.mpidrs = NULL;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "MPIDR");
	config = good;
	config.nr_its = 17;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "0 to 16");
	config = good;
	config.its_fds = NULL;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "ITS");
	config = good;
	config.its_fds = same_its;
	config.nr_its = 3;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "ITSs 0 and 2");
	/* bits outside of the affinity make no difference */
	config = good;
	config.mpidrs = twice;
	config.nr_vcpus = 5;
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT,
		  "vCPUs 1 and 3 have the same MPIDR, 0x7");
	assert_int_equal(fake.calls, 0);

	/* the config of a newer library, which asks for nothing new, or does */
	large.config = good;
	large.config.size = sizeof(large);
	assert_int_equal(sgic_device_new(&large.config, &device, NULL), 0);
	sgic_device_free(device);
	large.newer[7] = 1;
	check_new(&large.config, -EINVAL, SGIC_STEP_ARGUMENT, "version");
	sgic_device_free(NULL);
}

static void other_devices(void **unused)
{
	int its_fds[] = { ITS_FD, OTHER_FD };
	struct sgic_device_config config;

	(void)unused;
	fake_new(2, 2, 4096);
	config = fake_config();
	config.gic_fd = OTHER_FD;
	check_new(&config, -ENODEV, SGIC_STEP_PROBE, "3000 is no VGICv3");
	config.gic_fd = ITS_FD;
	check_new(&config, -ENODEV, SGIC_STEP_PROBE, "2000 is no VGICv3");
	config = fake_config();
	config.its_fds = its_fds;
	check_new(&config, -ENODEV, SGIC_STEP_PROBE, "ITS 1");
	config = fake_config();
	fake.lpis = false; /* the ITSs are another VM's */
	check_new(&config, -EOPNOTSUPP, SGIC_STEP_PROBE, "no LPIs");
}

static void topology(uint32_t limit)
{
	struct sgic_device_config config;
	struct sgic_error error;
	struct sgic_device *device;
	uint64_t mpidrs[6];

	fake_new(5, 0, limit);
	config = fake_config();
	memcpy(mpidrs, fake.mpidrs, sizeof(mpidrs));
	config.mpidrs = mpidrs;

	mpidrs[3] = 0x123456;
	check_new(&config, -EINVAL, SGIC_STEP_TOPOLOGY,
		  "vCPU 3 by its MPIDR, 0x123456");
	assert_int_equal(sgic_device_new(&config, &device, &error), -EINVAL);
	assert_int_equal(error.vcpu, 3);
	assert_int_equal(error.group, KVM_DEV_ARM_VGIC_GRP_REDIST_REGS);
	assert_int_equal(error.attr, 0x123456ULL << 32 | TYPER);
	mpidrs[3] = fake.mpidrs[3];

	/* all under vCPU 0's MPIDR, and one that the kernel resolves wrong */
	mpidrs[1] = mpidrs[0];
	check_new(&config, -EINVAL, SGIC_STEP_ARGUMENT, "vCPUs 0 and 1");
	mpidrs[1] = fake.mpidrs[1];
	fake.wrong = 4;
	fake.wrong_affinity = fake.mpidrs[2] & 0xffffff;
	check_new(&config, -EXDEV, SGIC_STEP_TOPOLOGY, "vCPU 4");
	/* Aff3 in GICR_TYPER: right or wrong */
	fake.wrong_affinity = (fake.mpidrs[4] & 0xffffff) | 2 << 24;
	check_new(&config, -EXDEV, SGIC_STEP_TOPOLOGY, "vCPU 4");
	fake.wrong_affinity = (fake.mpidrs[4] & 0xffffff) | 1 << 24;
	assert_int_equal(fake.mpidrs[4] >> 32, 1);
	sgic_device_free(fake_device(0));
	fake.wrong = -1;

	/* one is missing: in the middle, and the last */
	config.nr_vcpus = 4;
	mpidrs[2] = fake.mpidrs[4];
	check_new(&config, -EXDEV, SGIC_STEP_TOPOLOGY, "vCPU 2 is number 4");
	mpidrs[2] = fake.mpidrs[2];
	check_new(&config, -EXDEV, SGIC_STEP_TOPOLOGY, "the last");
	config.nr_vcpus = 5;
	fake.not_last = true;
	check_new(&config, -EXDEV, SGIC_STEP_TOPOLOGY, "no address");
	fake.not_last = false;
	fake.numbers[2] = 1;
	check_new(&config, -EXDEV, SGIC_STEP_TOPOLOGY,
		  "vCPUs 1 and 2 are both number 1");
	fake.numbers[2] = 2;

	/* in any order */
	for (int i = 0; i < 5; i++)
		mpidrs[i] = fake.mpidrs[4 - i] | 1ULL << 31;
	assert_int_equal(sgic_device_new(&config, &device, NULL), 0);
	sgic_device_free(device);
}

static void topology_batched(void **unused)
{
	(void)unused;
	topology(4096);
}

static void topology_one_by_one(void **unused)
{
	(void)unused;
	topology(0);
}

static void limits(void **unused)
{
	static const uint32_t limits[] = { 0,	 1,    2,    3,	      100,
					   4095, 4096, 4097, 1 << 20, 1 << 29 };
	struct sgic_device *device;
	unsigned int most;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		fake_new(1, 0, limits[i]);
		device = fake_device(0);
		assert_int_equal(sgic_device_batch_limit(device), limits[i]);
		sgic_device_free(device);
	}
	/* one that never says no does not take for ever */
	fake_new(1, 0, UINT32_MAX);
	device = fake_device(0);
	assert_true(sgic_device_batch_limit(device) >= 1 << 29);
	sgic_device_free(device);

	/* calls grow with vCPUs one by one, and not with a batch */
	fake_new(512, 0, 4096);
	sgic_device_free(fake_device(0));
	most = fake.calls;
	fake_new(1, 0, 4096);
	sgic_device_free(fake_device(0));
	assert_int_equal(most, fake.calls);
	fake_new(512, 0, 0);
	sgic_device_free(fake_device(0));
	assert_in_range(fake.calls, 2 * 512, 2 * 512 + 8);
}

static void machines(void **unused)
{
	struct sgic_machine machine;
	struct sgic_device *device;
	struct sgic_state *state;

	(void)unused;
	for (int el2 = 0; el2 < 2; el2++) {
		fake_new(3, 2, 4096);
		fake.el2 = el2;
		device = fake_device(0);
		state = saved(device);
		sgic_state_machine(state, &machine);
		assert_int_equal(machine.nr_vcpus, 3);
		assert_int_equal(machine.nr_irqs, NR_IRQS);
		assert_int_equal(machine.nr_its, 2);
		assert_int_equal(machine.pri_bits, 5);
		assert_int_equal(machine.nr_lrs, el2 ? 2 : 0);
		assert_true(machine.lpis);
		assert_int_equal(machine.el2, el2);
		for (int i = 0; i < 3; i++)
			assert_int_equal(sgic_state_mpidr(state, i),
					 fake.mpidrs[i]);
		sgic_state_free(state);
		sgic_device_free(device);
	}
}

/* Transfer */

/* Saved by one path, restored by any, it is the same. */
static void round_trip(void **unused)
{
	static const uint32_t limits[] = { 0, 1, 7, 100, 4096 };
	struct sgic_state *first, *state, *again;
	struct sgic_device *device;
	struct sgic_stats stats;
	unsigned int calls;
	size_t count;

	(void)unused;
	fake_new(20, 2, 4096);
	fake_fill(1);
	device = fake_device(0);
	first = saved(device);
	sgic_device_free(device);
	count = sgic_state_count(first);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		fake_fill(1);
		fake.limit = limits[i];
		device = fake_device(i == 4 ? SGIC_DEVICE_NO_BATCH : 0);
		state = saved(device);
		assert_true(equal(first, state));

		calls = 26 + count + 20; /* 13 of each ITS, GICR_TYPER */
		if (limits[i] && i != 4)
			calls = 26 +
				(count - 26 + 20 + limits[i] - 1) / limits[i];
		else
			calls = count + 20;
		sgic_device_stats(device, &stats);
		assert_int_equal(stats.batched, limits[i] && i != 4);
		assert_int_equal(stats.calls, calls);
		assert_int_equal(stats.registers, count + 20);
		assert_true(stats.ns >= stats.tables_ns);

		fake_fill(99);
		fake_reset();
		assert_int_equal(sgic_device_restore(device, first, NULL), 0);
		assert_true(fake.largest <= limits[i]);
		sgic_device_stats(device, &stats);
		assert_int_equal(stats.registers, fake.writes);
		again = saved(device);
		assert_true(equal(first, again));
		sgic_state_free(again);
		sgic_state_free(state);
		sgic_device_free(device);
	}
	sgic_state_free(first);
}

/* Where the ITS tables come in, for each of two ITSs */
static void order(void **unused)
{
	static const struct {
		enum op op;
		int fd;
	} save[] = {
		{ OP_PENDING, GIC_FD },	     { OP_ITS_SAVE, ITS_FD },
		{ OP_ITS_SAVE, ITS_FD + 1 }, { OP_READ, GIC_FD },
		{ OP_READ, ITS_FD },	     { OP_READ, ITS_FD + 1 },
	}, restore[] = {
		{ OP_ITS_RESET, ITS_FD },
		{ OP_ITS_RESET, ITS_FD + 1 },
		{ OP_WRITE, GIC_FD },
		{ OP_WRITE, ITS_FD },
		{ OP_ITS_RESTORE, ITS_FD },
		{ OP_WRITE, ITS_FD }, /* GITS_CTLR */
		{ OP_WRITE, ITS_FD + 1 },
		{ OP_ITS_RESTORE, ITS_FD + 1 },
		{ OP_WRITE, ITS_FD + 1 },
	};
	struct sgic_device *device;
	struct sgic_state *state;

	(void)unused;
	fake_new(2, 2, 4096);
	device = fake_device(0);
	fake_reset();
	state = saved(device);
	assert_int_equal(fake.nr_log, ARRAY_SIZE(save));
	assert_memory_equal(fake.log, save, sizeof(save));
	fake_reset();
	assert_int_equal(sgic_device_restore(device, state, NULL), 0);
	assert_int_equal(fake.nr_log, ARRAY_SIZE(restore));
	assert_memory_equal(fake.log, restore, sizeof(restore));
	sgic_state_free(state);
	sgic_device_free(device);

	/* without LPIs, no tables */
	fake_new(2, 0, 4096);
	device = fake_device(0);
	fake_reset();
	state = saved(device);
	assert_int_equal(fake.nr_log, 1);
	assert_int_equal(fake.log[0].op, OP_READ);
	sgic_state_free(state);
	sgic_device_free(device);
}

static void no_allocation(void **unused)
{
	struct sgic_device *device;
	struct sgic_state *state;

	(void)unused;
	fake_new(160, 1, 4096);
	device = fake_device(0);
	state = saved(device);
	fake_reset();
	assert_int_equal(sgic_device_save(device, state, NULL), 0);
	assert_int_equal(sgic_device_restore(device, state, NULL), 0);
	assert_int_equal(fake.allocs, 0);
	sgic_state_free(state);
	sgic_device_free(device);
}

/* Case other-irq-count, and its kin: nothing is called, both are named. */
static void other_shape(void **unused)
{
	struct sgic_device *device;
	struct sgic_state *state;
	struct sgic_error error;

	(void)unused;
	fake_new(4, 1, 4096);
	device = fake_device(0);
	state = new_state();
	fake_reset();
	assert_int_equal(sgic_device_restore(device, state, &error), -EINVAL);
	assert_int_equal(error.step, SGIC_STEP_ARGUMENT);
	check_message(&error, "empty");
	assert_int_equal(fake.calls, 0);

	assert_int_equal(sgic_device_save(device, state, NULL), 0);
	sgic_device_free(device);

	fake_new(3, 1, 4096);
	device = fake_device(0);
	fake_reset();
	assert_int_equal(sgic_device_restore(device, state, &error), -EXDEV);
	assert_int_equal(error.step, SGIC_STEP_SHAPE);
	assert_false(error.touched);
	check_message(&error, "4 vCPUs");
	check_message(&error, "3 vCPUs");
	assert_int_equal(fake.calls, 0);
	sgic_device_free(device);

	fake_new(4, 1, 4096);
	fake.mpidrs[2] = 0xabcdef;
	device = fake_device(0);
	fake_reset();
	assert_int_equal(sgic_device_restore(device, state, &error), -EXDEV);
	assert_int_equal(error.vcpu, 2);
	check_message(&error, "vCPU 2");
	check_message(&error, "0xabcdef");
	assert_int_equal(fake.calls, 0);
	sgic_device_free(device);
	sgic_state_free(state);
}

/* Faults */

static const int errnos[] = { EBUSY, EFAULT, EINVAL, ENOMEM,
			      ENXIO, EINTR,  EPERM,  EBADF };

static void check_error(const struct sgic_error *error, int ret)
{
	assert_int_equal(error->err, ret);
	assert_in_range(error->step, SGIC_STEP_ARGUMENT, SGIC_STEP_REGISTER);
	assert_true(strlen(error->message) > 10);
	assert_null(strchr(error->message, '\n'));
}

static void each_call_of_new(void **unused)
{
	struct sgic_device_config config;
	struct sgic_device *device;
	struct sgic_error error;
	unsigned int calls;
	int ret;

	(void)unused;
	for (uint32_t limit = 0; limit < 6; limit += 3) {
		fake_new(3, 1, limit);
		fake.el2 = true;
		config = fake_config();
		sgic_device_free(fake_device(0));
		calls = fake.calls;
		for (unsigned int i = 1; i <= calls; i++) {
			for (size_t e = 0; e < ARRAY_SIZE(errnos); e++) {
				fake_reset();
				fake.fail_call = i;
				fake.err = errnos[e];
				ret = sgic_device_new(&config, &device, &error);
				/* what the kernel has not is no error */
				if (!ret) {
					sgic_device_free(device);
					continue;
				}
				check_error(&error, ret);
				assert_false(error.touched);
				assert_true(ret == -errnos[e] ||
					    ret == -ENODEV);
			}
		}
	}
}

/* A call that fails as a whole */
static void each_call(uint32_t limit)
{
	struct sgic_state *before, *state;
	struct sgic_device *device;
	struct sgic_error error;
	unsigned int calls[2];
	int ret;

	fake_new(3, 2, limit);
	fake_fill(1);
	device = fake_device(0);
	before = saved(device);
	state = saved(device);
	fake_fill(2);
	for (int write = 0; write < 2; write++) {
		fake_reset();
		if (write)
			ret = sgic_device_restore(device, state, NULL);
		else
			ret = sgic_device_save(device, state, NULL);
		assert_int_equal(ret, 0);
		calls[write] = fake.calls;
		fake_fill(2);
	}
	sgic_state_free(state);
	fake_fill(1);
	state = saved(device);
	fake_fill(2);

	for (int write = 0; write < 2; write++) {
		for (unsigned int i = 1; i <= calls[write]; i++) {
			for (size_t e = 0; e < ARRAY_SIZE(errnos); e++) {
				fake_reset();
				fake.fail_call = i;
				fake.err = errnos[e];
				if (write)
					ret = sgic_device_restore(device, state,
								  &error);
				else
					ret = sgic_device_save(device, state,
							       &error);
				assert_int_equal(ret, -errnos[e]);
				check_error(&error, ret);
				if (errnos[e] == EBUSY) {
					check_message(&error, "a vCPU is in");
					assert_int_equal(fake.calls, i);
				}
				assert_true(equal(before, state));
				/* what is not known may have been written */
				if (errnos[e] != EFAULT && errnos[e] != EINTR)
					assert_int_equal(error.touched,
							 write && fake.wrote);
				else if (fake.wrote)
					assert_int_equal(error.touched, write);
			}
		}
	}
	/* and then it works */
	fake_reset();
	assert_int_equal(sgic_device_restore(device, state, NULL), 0);
	assert_int_equal(sgic_device_save(device, state, NULL), 0);
	assert_true(equal(before, state));
	sgic_state_free(before);
	sgic_state_free(state);
	sgic_device_free(device);
}

static void each_call_batched(void **unused)
{
	(void)unused;
	each_call(70);
}

static void each_call_one_by_one(void **unused)
{
	(void)unused;
	each_call(0);
}

/* The registers of a direction in the order of the calls */
static struct sgic_reg *all_regs(enum sgic_dir dir, size_t *n)
{
	struct sgic_shape shape = fake_shape();
	struct sgic_reg *regs;

	*n = sgic_regs_count(&shape, dir);
	regs = calloc(*n, sizeof(*regs));
	assert_non_null(regs);
	sgic_regs_fill(&shape, dir, regs);
	return regs;
}

static void check_reg_error(const struct sgic_error *error,
			    const struct sgic_reg *reg)
{
	char name[64];

	sgic_reg_name(reg, name, sizeof(name));
	check_message(error, name);
	assert_int_equal(error->step, sgic_reg_has_its(reg)
					      ? SGIC_STEP_ITS_REGISTER
					      : SGIC_STEP_REGISTER);
	assert_int_equal(error->group, reg->group);
	assert_int_equal(error->attr, reg->attr);
	assert_int_equal(error->vcpu, sgic_reg_has_vcpu(reg) ? reg->vcpu : -1);
	assert_int_equal(error->its, sgic_reg_has_its(reg) ? reg->its : -1);
}

static void each_read(uint32_t limit)
{
	struct sgic_state *before, *state;
	struct sgic_device *device;
	struct sgic_error error;
	struct sgic_reg *regs;
	size_t n, i;

	fake_new(3, 2, limit);
	fake_fill(1);
	device = fake_device(0);
	before = saved(device);
	state = saved(device);
	fake_fill(2);
	regs = all_regs(SGIC_SAVE, &n);
	for (i = 0; i < n + 3; i++) {
		fake_reset();
		fake.fail_reg = i + 1;
		fake.reg_err = ENXIO;
		assert_int_equal(sgic_device_save(device, state, &error),
				 -ENXIO);
		check_error(&error, -ENXIO);
		assert_false(error.touched);
		assert_true(equal(before, state));
		if (i >= 3) {
			check_reg_error(&error, &regs[i - 3]);
			check_message(&error, "reading");
			continue;
		}
		/* GICR_TYPER of each vCPU comes first */
		assert_int_equal(error.step, SGIC_STEP_TOPOLOGY);
		assert_int_equal(error.vcpu, i);
	}
	free(regs);
	sgic_state_free(before);
	sgic_state_free(state);
	sgic_device_free(device);
}

static void each_write(uint32_t limit)
{
	struct sgic_device *device;
	struct sgic_state *state;
	struct sgic_error error;
	size_t n, nr_gic = 0, i, want;
	struct sgic_reg *regs;
	bool its;

	fake_new(3, 2, limit);
	fake_fill(1);
	device = fake_device(0);
	state = saved(device);
	regs = all_regs(SGIC_RESTORE, &n);
	while (!sgic_reg_has_its(&regs[nr_gic]))
		nr_gic++;
	for (i = 0; i < n; i++) {
		fake_reset();
		fake.fail_reg = i + 1;
		fake.reg_err = EINVAL;
		assert_int_equal(sgic_device_restore(device, state, &error),
				 -EINVAL);
		check_error(&error, -EINVAL);
		check_reg_error(&error, &regs[i]);
		check_message(&error, "writing");
		assert_true(error.touched);

		/* the others of its device are written, but not GITS_CTLR */
		its = sgic_reg_has_its(&regs[i]);
		want = nr_gic - !its;
		if (its)
			want = nr_gic + 13 * (regs[i].its + 1) - 2 +
			       ((i - nr_gic) % 13 == 12);
		assert_int_equal(fake.writes, want);
	}
	free(regs);
	sgic_state_free(state);
	sgic_device_free(device);
}

static void each_register_batched(void **unused)
{
	(void)unused;
	each_read(70);
	each_write(70);
	each_write(4096);
}

static void each_register_one_by_one(void **unused)
{
	(void)unused;
	each_read(0);
	each_write(0);
}

/* What fails twice, and what is left of it the next time */
static void two_errors(uint32_t limit)
{
	struct sgic_device *device;
	struct sgic_stats stats;
	struct sgic_state *state;
	struct sgic_error error;
	struct sgic_reg *regs;
	size_t n;

	fake_new(3, 0, limit);
	device = fake_device(0);
	state = saved(device);
	regs = all_regs(SGIC_RESTORE, &n);

	/* a register, then a whole call: the error is that of the first */
	fake_reset();
	fake.fail_reg = 5;
	fake.reg_err = EINVAL;
	fake.fail_call = limit ? 2 : 9;
	fake.err = EBUSY;
	assert_int_equal(sgic_device_restore(device, state, &error), -EINVAL);
	assert_int_equal(error.attr, regs[4].attr);
	assert_true(error.touched);
	assert_int_equal(fake.writes, limit ? limit - 1 : 7);
	sgic_device_stats(device, &stats);
	assert_int_equal(stats.registers, fake.writes);

	/* a whole call right after: nothing of the register is left */
	fake_reset();
	fake.fail_call = 1;
	fake.err = EBUSY;
	assert_int_equal(sgic_device_restore(device, state, &error), -EBUSY);
	assert_int_equal(error.group, 0);
	assert_false(error.touched);
	check_message(&error, "a vCPU is in");

	/* no register can be written at all */
	fake_reset();
	fake.fail_regs = true;
	fake.reg_err = EPERM;
	assert_int_equal(sgic_device_restore(device, state, &error), -EPERM);
	assert_int_equal(error.attr, regs[0].attr);
	assert_false(error.touched);
	assert_int_equal(fake.regs, n);

	/* the first that cannot be read is the last that is tried */
	fake_reset();
	fake.fail_regs = true;
	assert_int_equal(sgic_device_save(device, state, &error), -EPERM);
	assert_int_equal(fake.calls, 1);

	/* the affinity of a vCPU changes under the device */
	fake_reset();
	fake.wrong = 1;
	fake.wrong_affinity = 0x777;
	assert_int_equal(sgic_device_save(device, state, &error), -EXDEV);
	assert_int_equal(error.vcpu, 1);
	assert_int_equal(error.step, SGIC_STEP_TOPOLOGY);
	free(regs);
	sgic_state_free(state);
	sgic_device_free(device);
}

/* The call did it, and could not say so. */
static void late_errors(void)
{
	struct sgic_device *device;
	struct sgic_state *state;
	struct sgic_error error;

	fake_new(3, 0, 4096);
	device = fake_device(0);
	state = saved(device);
	for (int i = 0; i < 2; i++) {
		fake_reset();
		fake.fail_call = 1;
		fake.late = true;
		fake.err = i ? EINTR : EFAULT;
		assert_int_equal(sgic_device_restore(device, state, &error),
				 -fake.err);
		assert_true(error.touched);
		assert_int_equal(error.group, 0);
	}
	sgic_state_free(state);
	sgic_device_free(device);
}

static void more_errors(void **unused)
{
	(void)unused;
	two_errors(0);
	two_errors(40);
	late_errors();
}

static void each_allocation(void **unused)
{
	struct sgic_device_config config;
	struct sgic_device *device;
	struct sgic_state *state;
	struct sgic_error error;
	unsigned int n, i;

	(void)unused;
	fake_new(3, 1, 4096);
	config = fake_config();
	sgic_device_free(fake_device(0));
	n = fake.allocs;
	assert_in_range(n, 5, 20);
	for (i = 1; i <= n; i++) {
		fake_reset();
		fake.fail_alloc = i;
		assert_int_equal(sgic_device_new(&config, &device, &error),
				 -ENOMEM);
		check_error(&error, -ENOMEM);
		assert_int_equal(error.step, SGIC_STEP_MEMORY);
	}

	device = fake_device(0);
	state = new_state();
	fake_reset();
	assert_int_equal(sgic_device_save(device, state, NULL), 0);
	n = fake.allocs;
	assert_in_range(n, 1, 4);
	sgic_state_free(state);
	for (i = 1; i <= n; i++) {
		fake_reset();
		state = new_state();
		fake.allocs = 0;
		fake.fail_alloc = i;
		assert_int_equal(sgic_device_save(device, state, &error),
				 -ENOMEM);
		check_error(&error, -ENOMEM);
		assert_int_equal(error.step, SGIC_STEP_MEMORY);
		assert_int_equal(sgic_state_count(state), 0);
		sgic_state_free(state);
	}
	sgic_device_free(device);

	fake_reset();
	fake.fail_alloc = 1;
	assert_null(sgic_state_new());
}

static void version(void **unused)
{
	unsigned int major, minor, patch;
	char end;

	(void)unused;
	assert_int_equal(sscanf(sgic_version(), "%u.%u.%u%c", &major, &minor,
				&patch, &end),
			 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(version),
		cmocka_unit_test(arguments),
		cmocka_unit_test(other_devices),
		cmocka_unit_test(topology_batched),
		cmocka_unit_test(topology_one_by_one),
		cmocka_unit_test(limits),
		cmocka_unit_test(machines),
		cmocka_unit_test(round_trip),
		cmocka_unit_test(order),
		cmocka_unit_test(no_allocation),
		cmocka_unit_test(other_shape),
		cmocka_unit_test(each_call_of_new),
		cmocka_unit_test(each_call_batched),
		cmocka_unit_test(each_call_one_by_one),
		cmocka_unit_test(each_register_batched),
		cmocka_unit_test(each_register_one_by_one),
		cmocka_unit_test(more_errors),
		cmocka_unit_test(each_allocation),
	};

	return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
