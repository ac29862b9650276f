// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <linux/kvm.h>

#include "gic.h"
#include "vm.h"

#ifndef KVM_ARM_VCPU_HAS_EL2
#define KVM_ARM_VCPU_HAS_EL2 7
#endif

#define REG_MPIDR_EL1 ARM64_SYS_REG(3, 0, 0, 0, 5)

#define ICC_CTLR_PRIBITS(val) (((val) >> 8 & 7) + 1)
#define ICH_VTR_LISTREGS(val) (((val)&0x1f) + 1)

/* Bits 63:52 of a redistributor region: how many vCPUs it has room for */
#define REDIST_REGION_COUNT_SHIFT 52

static int sys_ioctl(int fd, unsigned long req, void *arg)
{
	int ret = ioctl(fd, req, arg);

	return ret < 0 ? -errno : ret;
}

static int fail(struct vm *vm, int err, const char *step)
{
	snprintf(vm->err, sizeof(vm->err), "%s: %s", step, strerror(-err));
	return err;
}

static int device_attr(int fd, unsigned long req, uint32_t group, uint64_t attr,
		       const void *addr)
{
	struct kvm_device_attr dev_attr = {
		.group = group,
		.attr = attr,
		.addr = (uintptr_t)addr,
	};

	return sys_ioctl(fd, req, &dev_attr);
}

static int device_set(int fd, uint32_t group, uint64_t attr, const void *addr)
{
	return device_attr(fd, KVM_SET_DEVICE_ATTR, group, attr, addr);
}

static int create_device(struct vm *vm, uint32_t type, int *fd)
{
	struct kvm_create_device dev = { .type = type };
	int ret = sys_ioctl(vm->fd, KVM_CREATE_DEVICE, &dev);

	if (!ret)
		*fd = dev.fd;
	return ret;
}

/* 512 vCPUs are more files than the usual soft limit lets a process open. */
static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static int create_vcpu(struct vm *vm, uint32_t i,
		       const struct kvm_vcpu_init *init)
{
	uint64_t mpidr;
	struct kvm_one_reg reg = {
		.id = REG_MPIDR_EL1,
		.addr = (uintptr_t)&mpidr,
	};
	int ret;

	ret = sys_ioctl(vm->fd, KVM_CREATE_VCPU, (void *)(uintptr_t)i);
	if (ret < 0)
		return fail(vm, ret, "KVM_CREATE_VCPU");
	vm->vcpu_fds[i] = ret;

	ret = sys_ioctl(vm->vcpu_fds[i], KVM_ARM_VCPU_INIT, (void *)init);
	if (ret)
		return fail(vm, ret, "KVM_ARM_VCPU_INIT");

	ret = sys_ioctl(vm->vcpu_fds[i], KVM_GET_ONE_REG, &reg);
	if (ret)
		return fail(vm, ret, "reading MPIDR_EL1");

	if (vm->config.mpidrs &&
	    (mpidr & SGIC_MPIDR_MASK) != vm->config.mpidrs[i]) {
		mpidr = (mpidr & ~SGIC_MPIDR_MASK) | vm->config.mpidrs[i];
		ret = sys_ioctl(vm->vcpu_fds[i], KVM_SET_ONE_REG, &reg);
		if (ret)
			return fail(vm, ret, "writing MPIDR_EL1");
	}
	vm->mpidrs[i] = mpidr & SGIC_MPIDR_MASK;
	return 0;
}

static int create_vcpus(struct vm *vm)
{
	struct kvm_vcpu_init init;
	uint32_t i;
	int ret;

	ret = sys_ioctl(vm->fd, KVM_ARM_PREFERRED_TARGET, &init);
	if (ret)
		return fail(vm, ret, "KVM_ARM_PREFERRED_TARGET");
	if (vm->config.el2)
		init.features[0] |= 1U << KVM_ARM_VCPU_HAS_EL2;

	for (i = 0; i < vm->config.nr_vcpus; i++) {
		ret = create_vcpu(vm, i, &init);
		if (ret)
			return ret;
	}
	return 0;
}

static int create_gic(struct vm *vm)
{
	const uint64_t dist = VM_DIST_BASE;
	const uint64_t redist = VM_REDIST_BASE |
				(uint64_t)SGIC_MAX_VCPUS
					<< REDIST_REGION_COUNT_SHIFT;
	int ret;

	ret = create_device(vm, KVM_DEV_TYPE_ARM_VGIC_V3, &vm->gic_fd);
	if (ret)
		return fail(vm, -ENODEV, "creating a VGICv3");
	ret = device_set(vm->gic_fd, KVM_DEV_ARM_VGIC_GRP_NR_IRQS, 0,
			 &vm->config.nr_irqs);
	if (ret)
		return fail(vm, ret, "setting the number of interrupts");
	ret = device_set(vm->gic_fd, KVM_DEV_ARM_VGIC_GRP_ADDR,
			 KVM_VGIC_V3_ADDR_TYPE_DIST, &dist);
	if (ret)
		return fail(vm, ret, "placing the distributor");
	ret = device_set(vm->gic_fd, KVM_DEV_ARM_VGIC_GRP_ADDR,
			 KVM_VGIC_V3_ADDR_TYPE_REDIST_REGION, &redist);
	if (ret)
		return fail(vm, ret, "placing the redistributors");
	return vm->config.no_init ? 0 : vm_gic_init(vm);
}

static int create_its(struct vm *vm)
{
	const uint64_t base = VM_ITS_BASE;
	int ret;

	ret = create_device(vm, KVM_DEV_TYPE_ARM_VGIC_ITS, &vm->its_fd);
	if (ret)
		return fail(vm, ret, "creating an ITS");
	ret = device_set(vm->its_fd, KVM_DEV_ARM_VGIC_GRP_ADDR,
			 KVM_VGIC_ITS_ADDR_TYPE, &base);
	if (ret)
		return fail(vm, ret, "placing the ITS");
	ret = device_set(vm->its_fd, KVM_DEV_ARM_VGIC_GRP_CTRL,
			 KVM_DEV_ARM_VGIC_CTRL_INIT, NULL);
	if (ret)
		return fail(vm, ret, "initialising the ITS");
	return 0;
}

static int create_ram(struct vm *vm)
{
	struct kvm_userspace_memory_region region = {
		.guest_phys_addr = VM_RAM_BASE,
		.memory_size = vm->config.ram_bytes,
	};
	int ret;

	vm->ram = mmap(NULL, vm->config.ram_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (vm->ram == MAP_FAILED) {
		vm->ram = NULL;
		return fail(vm, -errno, "mapping guest memory");
	}
	region.userspace_addr = (uintptr_t)vm->ram;
	ret = sys_ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &region);
	if (ret)
		return fail(vm, ret, "KVM_SET_USER_MEMORY_REGION");
	return 0;
}

static int create(struct vm *vm)
{
	int ret;

	vm->kvm_fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (vm->kvm_fd < 0)
		return fail(vm, -ENODEV, "opening /dev/kvm");
	ret = sys_ioctl(vm->kvm_fd, KVM_CREATE_VM, NULL);
	if (ret < 0)
		return fail(vm, ret, "KVM_CREATE_VM");
	vm->fd = ret;

	if (vm->config.ram_bytes) {
		ret = create_ram(vm);
		if (ret)
			return ret;
	}
	ret = create_vcpus(vm);
	if (ret)
		return ret;
	ret = create_gic(vm);
	if (ret)
		return ret;
	return vm->config.its ? create_its(vm) : 0;
}

int vm_create(struct vm *vm, const struct vm_config *config)
{
	uint32_t i;
	int ret;

	memset(vm, 0, sizeof(*vm));
	vm->config = *config;
	vm->kvm_fd = vm->fd = vm->gic_fd = vm->its_fd = -1;
	vm->vcpu_fds = malloc(config->nr_vcpus * sizeof(*vm->vcpu_fds));
	vm->mpidrs = calloc(config->nr_vcpus, sizeof(*vm->mpidrs));
	if (!vm->vcpu_fds || !vm->mpidrs) {
		free(vm->vcpu_fds);
		free(vm->mpidrs);
		return fail(vm, -ENOMEM, "allocating the vCPUs");
	}
	for (i = 0; i < config->nr_vcpus; i++)
		vm->vcpu_fds[i] = -1;

	raise_file_limit();
	ret = create(vm);
	if (ret)
		vm_destroy(vm);
	return ret;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void vm_destroy(struct vm *vm)
{
	uint32_t i;

	close_fd(vm->its_fd);
	close_fd(vm->gic_fd);
	for (i = 0; i < vm->config.nr_vcpus; i++)
		close_fd(vm->vcpu_fds[i]);
	close_fd(vm->fd);
	close_fd(vm->kvm_fd);
	if (vm->ram)
		munmap(vm->ram, vm->config.ram_bytes);
	free(vm->vcpu_fds);
	free(vm->mpidrs);
}

int vm_cap(const struct vm *vm, int cap)
{
	return sys_ioctl(vm->fd, KVM_CHECK_EXTENSION, (void *)(intptr_t)cap);
}

int vm_gic_init(struct vm *vm)
{
	int ret = device_set(vm->gic_fd, KVM_DEV_ARM_VGIC_GRP_CTRL,
			     KVM_DEV_ARM_VGIC_CTRL_INIT, NULL);

	return ret ? fail(vm, ret, "initialising the VGICv3") : 0;
}

int vm_enter_once(struct vm *vm, uint32_t vcpu)
{
	int fd = vm->vcpu_fds[vcpu];
	int size = ioctl(vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct kvm_run *run;
	int ret;

	run = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (run == MAP_FAILED)
		return fail(vm, -errno, "mapping kvm_run");

	run->immediate_exit = 1;
	ret = ioctl(fd, KVM_RUN, 0) ? -errno : 0;
	run->immediate_exit = 0;
	munmap(run, size);
	return ret == -EINTR ? 0 : fail(vm, ret, "KVM_RUN");
}

int vm_shape(struct vm *vm, struct sgic_shape *shape)
{
	uint64_t vcpu0 = vm_attr(vm->mpidrs[0], 0), ctlr, vtr = 0;
	int ret;

	ret = vm_get(vm, KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS, vcpu0 | ICC_CTLR_EL1,
		     &ctlr);
	if (ret)
		return fail(vm, ret, "reading ICC_CTLR_EL1");
	if (vm->config.el2) {
		ret = vm_get(vm, KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS,
			     vcpu0 | ICH_VTR_EL2, &vtr);
		if (ret)
			return fail(vm, ret, "reading ICH_VTR_EL2");
	}

	*shape = (struct sgic_shape){
		.nr_vcpus = vm->config.nr_vcpus,
		.mpidrs = vm->mpidrs,
		.nr_irqs = vm->config.nr_irqs,
		.pri_bits = ICC_CTLR_PRIBITS(ctlr),
		.nr_lrs = vm->config.el2 ? ICH_VTR_LISTREGS(vtr) : 0,
		.lpis = vm->config.its,
		.el2 = vm->config.el2,
	};
	return 0;
}

/*
 * The kernel takes 32 bits for all groups but CPU_SYSREGS, at the same
 * address: with a little-endian user land that is the low half.
 */
int vm_get(const struct vm *vm, uint32_t group, uint64_t attr, uint64_t *val)
{
	uint64_t buf = 0;
	int ret = device_attr(vm->gic_fd, KVM_GET_DEVICE_ATTR, group, attr,
			      &buf);

	if (!ret)
		*val = buf;
	return ret;
}

int vm_set(const struct vm *vm, uint32_t group, uint64_t attr, uint64_t val)
{
	return device_set(vm->gic_fd, group, attr, &val);
}

bool vm_has_batch(const struct vm *vm)
{
	return !device_attr(vm->gic_fd, KVM_HAS_DEVICE_ATTR,
			    KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, 0, NULL);
}

int vm_batch(const struct vm *vm, bool write,
	     struct kvm_dev_arm_vgic_batch_entry *entries, uint64_t count)
{
	return device_attr(vm->gic_fd,
			   write ? KVM_SET_DEVICE_ATTR : KVM_GET_DEVICE_ATTR,
			   KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, count, entries);
}

int vm_batch_all(const struct vm *vm, bool write,
		 struct kvm_dev_arm_vgic_batch_entry *entries, size_t count,
		 unsigned int *calls)
{
	size_t n;
	int ret;

	for (; count; entries += n, count -= n) {
		n = count;
		if (n > KVM_DEV_ARM_VGIC_BATCH_MAX)
			n = KVM_DEV_ARM_VGIC_BATCH_MAX;
		ret = vm_batch(vm, write, entries, n);
		if (ret)
			return ret;
		if (calls)
			(*calls)++;
	}
	return 0;
}
