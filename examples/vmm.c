// SPDX-License-Identifier: MIT
/*
 * The smallest VMM that saves and restores a guest with an ITS.
 *
 *	vmm save FILE		run the guest of guest.S for a while, save it
 *	vmm restore FILE	restore it, and run it on
 *
 * The guest has one vCPU. Its timer interrupts it every 8 ms, and the VMM, as
 * a device would, sends it an MSI each time; it reports how many timer
 * interrupts and LPIs it has had. It is saved with one of each pending.
 *
 * On an arm64 host:
 *	cc -o vmm vmm.c guest.S $(pkg-config --cflags --libs swiftgic)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <linux/kvm.h>

#include <swiftgic.h>

#include "guest.h"

#define NR_TICKS  5    /* timer interrupts until it is saved, or done */
#define MAX_LATE  5    /* timer interrupts that an LPI may take to come */
#define MAX_REGS  1024 /* of a vCPU */
#define REG_BYTES 256  /* the largest of them */
#define NR_IRQS	  64

#define CORE_REG(name)                                         \
	(KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | \
	 KVM_REG_ARM_CORE_REG(name))
#define MPIDR_EL1 ARM64_SYS_REG(3, 0, 0, 0, 5)

extern const char guest_image[], guest_image_end[];

struct vmm {
	int kvm;
	int vm;
	int vcpu;
	int gic;
	int its;
	struct kvm_run *run;
	char *ram;
	struct sgic_device *device;
	uint32_t ticks; /* as the guest has last reported */
	uint32_t lpis;
	uint32_t sent;	  /* MSIs */
	uint32_t sent_at; /* timer interrupts, then */
};

/*
 * What a file begins with; the snapshot of the interrupt controller, the vCPU's
 * registers (an ID and a value each) and the guest's memory follow.
 */
struct header {
	char magic[8];
	uint32_t sent;
	uint32_t sent_at;
	uint32_t nr_regs;
};

static const char magic[8] = "vmm-demo";

static void die(const char *what)
{
	fprintf(stderr, "vmm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void die_sgic(const struct sgic_error *error)
{
	fprintf(stderr, "vmm: %s%s\n", error->message,
		error->touched ? " (the VGIC has been written to)" : "");
	exit(1);
}

static int call(int fd, unsigned long request, const void *arg,
		const char *what)
{
	int ret = ioctl(fd, request, arg);

	if (ret < 0)
		die(what);
	return ret;
}

/* The machine */

static int create_device(struct vmm *vmm, uint32_t type, const char *what)
{
	struct kvm_create_device device = { .type = type };

	call(vmm->vm, KVM_CREATE_DEVICE, &device, what);
	return device.fd;
}

static void set_attr(int fd, uint32_t group, uint64_t attr, const void *addr,
		     const char *what)
{
	struct kvm_device_attr device_attr = {
		.group = group,
		.attr = attr,
		.addr = (uintptr_t)addr,
	};

	call(fd, KVM_SET_DEVICE_ATTR, &device_attr, what);
}

static void create_ram(struct vmm *vmm)
{
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = RAM_BASE,
		.memory_size = RAM_BYTES,
	};

	vmm->ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (vmm->ram == MAP_FAILED)
		die("guest memory");
	region.userspace_addr = (uintptr_t)vmm->ram;
	call(vmm->vm, KVM_SET_USER_MEMORY_REGION, &region, "guest memory");
}

static void create_vcpu(struct vmm *vmm)
{
	struct kvm_vcpu_init init;
	int bytes;

	vmm->vcpu = call(vmm->vm, KVM_CREATE_VCPU, NULL, "creating the vCPU");
	call(vmm->vm, KVM_ARM_PREFERRED_TARGET, &init, "the vCPU's target");
	call(vmm->vcpu, KVM_ARM_VCPU_INIT, &init, "initialising the vCPU");

	bytes = call(vmm->kvm, KVM_GET_VCPU_MMAP_SIZE, NULL, "kvm_run's size");
	vmm->run = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			vmm->vcpu, 0);
	if (vmm->run == MAP_FAILED)
		die("kvm_run");
}

static void create_gic(struct vmm *vmm)
{
	const uint64_t dist = GICD_BASE, redist = GICR_BASE, its = ITS_BASE;
	const uint32_t nr_irqs = NR_IRQS;

	vmm->gic = create_device(vmm, KVM_DEV_TYPE_ARM_VGIC_V3, "a GICv3");
	set_attr(vmm->gic, KVM_DEV_ARM_VGIC_GRP_NR_IRQS, 0, &nr_irqs,
		 "the number of interrupts");
	set_attr(vmm->gic, KVM_DEV_ARM_VGIC_GRP_ADDR,
		 KVM_VGIC_V3_ADDR_TYPE_DIST, &dist, "placing the distributor");
	set_attr(vmm->gic, KVM_DEV_ARM_VGIC_GRP_ADDR,
		 KVM_VGIC_V3_ADDR_TYPE_REDIST, &redist,
		 "placing the redistributor");
	set_attr(vmm->gic, KVM_DEV_ARM_VGIC_GRP_CTRL,
		 KVM_DEV_ARM_VGIC_CTRL_INIT, NULL, "initialising the GICv3");

	vmm->its = create_device(vmm, KVM_DEV_TYPE_ARM_VGIC_ITS, "an ITS");
	set_attr(vmm->its, KVM_DEV_ARM_VGIC_GRP_ADDR, KVM_VGIC_ITS_ADDR_TYPE,
		 &its, "placing the ITS");
	set_attr(vmm->its, KVM_DEV_ARM_VGIC_GRP_CTRL,
		 KVM_DEV_ARM_VGIC_CTRL_INIT, NULL, "initialising the ITS");
}

static void get_reg(struct vmm *vmm, uint64_t id, void *val)
{
	const struct kvm_one_reg reg = { id, (uintptr_t)val };

	call(vmm->vcpu, KVM_GET_ONE_REG, &reg, "reading a vCPU's register");
}

static void set_reg(struct vmm *vmm, uint64_t id, const void *val)
{
	const struct kvm_one_reg reg = { id, (uintptr_t)val };
	char what[64];

	snprintf(what, sizeof(what), "writing the vCPU's register %#llx",
		 (unsigned long long)id);
	call(vmm->vcpu, KVM_SET_ONE_REG, &reg, what);
}

/* The library works with the VMM's own file descriptors. */
static void create_sgic(struct vmm *vmm)
{
	struct sgic_error error;
	uint64_t mpidr;
	const struct sgic_device_config config = {
		.size = sizeof(config),
		.gic_fd = vmm->gic,
		.its_fds = &vmm->its,
		.nr_its = 1,
		.mpidrs = &mpidr,
		.nr_vcpus = 1,
	};

	get_reg(vmm, MPIDR_EL1, &mpidr);
	if (sgic_device_new(&config, &vmm->device, &error))
		die_sgic(&error);
}

static void create(struct vmm *vmm)
{
	vmm->kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (vmm->kvm < 0)
		die("/dev/kvm");
	vmm->vm = call(vmm->kvm, KVM_CREATE_VM, NULL, "creating a VM");
	create_ram(vmm);
	create_vcpu(vmm);
	create_gic(vmm);
	create_sgic(vmm);
}

/* Running it */

static void send_msi(struct vmm *vmm)
{
	const struct kvm_msi msi = {
		.address_lo = ITS_BASE + GITS_TRANSLATER,
		.data = EVENT_ID,
		.flags = KVM_MSI_VALID_DEVID,
		.devid = DEVICE_ID,
	};

	if (call(vmm->vm, KVM_SIGNAL_MSI, &msi, "an MSI") != 1) {
		fprintf(stderr, "vmm: the guest has blocked the MSI\n");
		exit(1);
	}
	vmm->sent++;
	vmm->sent_at = vmm->ticks;
}

/* Run the guest until it has reported, and note the report. */
static void run(struct vmm *vmm)
{
	struct kvm_run *exit_info = vmm->run;

	while (ioctl(vmm->vcpu, KVM_RUN, NULL))
		if (errno != EINTR)
			die("KVM_RUN");
	if (exit_info->exit_reason != KVM_EXIT_MMIO ||
	    exit_info->mmio.phys_addr != REPORT_BASE ||
	    exit_info->mmio.len != 8) {
		fprintf(stderr, "vmm: the guest has died (exit %u)\n",
			exit_info->exit_reason);
		exit(1);
	}
	memcpy(&vmm->ticks, exit_info->mmio.data, 4);
	memcpy(&vmm->lpis, exit_info->mmio.data + 4, 4);
	if (vmm->ticks > vmm->sent_at + MAX_LATE && vmm->lpis < vmm->sent) {
		fprintf(stderr, "vmm: an LPI is lost\n");
		exit(1);
	}
}

/*
 * KVM finishes the instruction that left the guest, here the write of the
 * report, when the guest is entered again: before that, its state is not
 * whole.
 */
static void stop(struct vmm *vmm)
{
	vmm->run->immediate_exit = 1;
	if (!ioctl(vmm->vcpu, KVM_RUN, NULL) || errno != EINTR)
		die("stopping the vCPU");
	vmm->run->immediate_exit = 0;
}

/*
 * Run @ticks timer interrupts, with an MSI after each, until all are there. As
 * long as an LPI is pending, another MSI would add nothing to it.
 */
static void run_with_msis(struct vmm *vmm, uint32_t ticks)
{
	const uint32_t end = vmm->ticks + ticks;
	uint32_t before;

	while (vmm->ticks < end || vmm->lpis < vmm->sent) {
		before = vmm->ticks;
		run(vmm);
		if (vmm->ticks > before && vmm->ticks <= end &&
		    vmm->lpis == vmm->sent)
			send_msi(vmm);
	}
}

/* Files */

static void put(int fd, const void *data, size_t bytes)
{
	ssize_t n;

	for (; bytes; data = (const char *)data + n, bytes -= n) {
		n = write(fd, data, bytes);
		if (n < 0)
			die("writing the file");
	}
}

static void get(int fd, void *data, size_t bytes)
{
	ssize_t n;

	for (; bytes; data = (char *)data + n, bytes -= n) {
		n = read(fd, data, bytes);
		if (!n)
			errno = ENODATA;
		if (n <= 0)
			die("reading the file");
	}
}

static size_t reg_bytes(uint64_t id)
{
	return 1UL << ((id & KVM_REG_SIZE_MASK) >> KVM_REG_SIZE_SHIFT);
}

static void save(struct vmm *vmm, const char *path)
{
	struct {
		uint64_t n;
		uint64_t ids[MAX_REGS];
	} list = { .n = MAX_REGS };
	struct header header = { .sent = vmm->sent, .sent_at = vmm->sent_at };
	struct sgic_state *state = sgic_state_new();
	char val[REG_BYTES];
	struct sgic_error error;
	struct sgic_stats stats;
	uint64_t i;
	int fd;

	if (!state)
		die("a state");
	call(vmm->vcpu, KVM_GET_REG_LIST, &list, "the vCPU's registers");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	memcpy(header.magic, magic, sizeof(magic));
	header.nr_regs = list.n;
	put(fd, &header, sizeof(header));

	/* Before the memory, for it writes the ITS's tables there */
	if (sgic_device_save(vmm->device, state, &error) ||
	    sgic_state_write(state, fd, &error))
		die_sgic(&error);
	for (i = 0; i < list.n; i++) {
		get_reg(vmm, list.ids[i], val);
		put(fd, &list.ids[i], sizeof(list.ids[i]));
		put(fd, val, reg_bytes(list.ids[i]));
	}
	put(fd, vmm->ram, RAM_BYTES);
	if (close(fd))
		die(path);

	sgic_device_stats(vmm->device, &stats);
	printf("saved: %u registers of the GICv3 and the ITS in %u calls, %s\n",
	       stats.registers, stats.calls,
	       stats.batched ? "batched" : "one by one");
	sgic_state_free(state);
}

static void restore(struct vmm *vmm, const char *path)
{
	struct sgic_state *state = sgic_state_new();
	long ram_begin, regs_begin;
	struct sgic_error error;
	struct header header;
	char val[REG_BYTES];
	uint64_t id;
	uint32_t i;
	int fd;

	if (!state)
		die("a state");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		die(path);
	get(fd, &header, sizeof(header));
	if (memcmp(header.magic, magic, sizeof(magic))) {
		fprintf(stderr, "vmm: %s: no file of vmm's\n", path);
		exit(1);
	}
	vmm->sent = header.sent;
	vmm->sent_at = header.sent_at;
	if (sgic_state_read(state, fd, &error))
		die_sgic(&error);
	regs_begin = lseek(fd, 0, SEEK_CUR);

	/* The memory first, for the tables of the ITS are there */
	ram_begin = lseek(fd, -RAM_BYTES, SEEK_END);
	if (regs_begin < 0 || ram_begin < regs_begin)
		die("the file's memory");
	get(fd, vmm->ram, RAM_BYTES);
	if (sgic_device_restore(vmm->device, state, &error))
		die_sgic(&error);

	lseek(fd, regs_begin, SEEK_SET);
	for (i = 0; i < header.nr_regs; i++) {
		get(fd, &id, sizeof(id));
		if (reg_bytes(id) > sizeof(val)) {
			errno = EINVAL;
			die("the size of a register");
		}
		get(fd, val, reg_bytes(id));
		set_reg(vmm, id, val);
	}
	close(fd);
	sgic_state_free(state);
}

/* Commands */

static void report(const struct vmm *vmm, const char *when)
{
	printf("%s: %u timer interrupts, %u LPIs of %u MSIs\n", when,
	       vmm->ticks, vmm->lpis, vmm->sent);
}

static void save_command(struct vmm *vmm, const char *path)
{
	const uint64_t start = RAM_BASE + START_OFFSET;
	const struct timespec tick = { .tv_nsec = 10000000 };

	memcpy(vmm->ram, guest_image, guest_image_end - guest_image);
	set_reg(vmm, CORE_REG(regs.pc), &start);
	run_with_msis(vmm, NR_TICKS);

	/* Both stay pending, for the vCPU does not run: timer and LPI. */
	nanosleep(&tick, NULL);
	stop(vmm);
	send_msi(vmm);
	report(vmm, "at the save");
	save(vmm, path);
}

static void restore_command(struct vmm *vmm, const char *path)
{
	restore(vmm, path);

	/* What was pending at the save is there. */
	do
		run(vmm);
	while (vmm->ticks <= vmm->sent_at || vmm->lpis < vmm->sent);
	report(vmm, "restored");
	run_with_msis(vmm, NR_TICKS);
	report(vmm, "went on");
	if (vmm->lpis != vmm->sent) {
		fprintf(stderr, "vmm: an LPI came twice\n");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct vmm vmm = { 0 };
	void (*command)(struct vmm * vmm, const char *path) = NULL;

	if (argc == 3 && !strcmp(argv[1], "save"))
		command = save_command;
	else if (argc == 3 && !strcmp(argv[1], "restore"))
		command = restore_command;
	if (!command) {
		fprintf(stderr, "usage: vmm save|restore FILE\n");
		return 2;
	}
	create(&vmm);
	command(&vmm, argv[2]);
	sgic_device_free(vmm.device);
	return 0;
}
