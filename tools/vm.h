/* SPDX-License-Identifier: MIT */
/*
 * A KVM/arm64 VM that is there for its GICv3: what the benchmark and the
 * lab's tests need of one, and no more.
 *
 * Functions that return int return 0 or a negative errno. Where they take a
 * struct vm that is not const, vm->err then says which step failed.
 */
#ifndef SWIFTGIC_TOOLS_VM_H
#define SWIFTGIC_TOOLS_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "regs.h"
#include "vgic_batch.h"

/* The guest's address map; the redistributors have room for 512 vCPUs. */
#define VM_DIST_BASE   0x08000000ULL
#define VM_ITS_BASE    0x08080000ULL
#define VM_REDIST_BASE 0x0a000000ULL
#define VM_RAM_BASE    0x40000000ULL

/**
 * struct vm_config - the machine to create
 * @nr_vcpus:	1 to SGIC_MAX_VCPUS
 * @nr_irqs:	SGIs, PPIs and SPIs
 * @mpidrs:	affinity of each vCPU; NULL takes what KVM gives them
 * @ram_bytes:	guest memory at VM_RAM_BASE, a multiple of the page size; or 0
 * @its:	with an ITS, and so with LPIs in the redistributors
 * @el2:	vCPUs with EL2; needs KVM_CAP_ARM_EL2
 * @no_init:	leave the VGIC uninitialised
 */
struct vm_config {
	uint32_t nr_vcpus;
	uint32_t nr_irqs;
	const uint64_t *mpidrs;
	size_t ram_bytes;
	bool its;
	bool el2;
	bool no_init;
};

struct vm {
	int kvm_fd;
	int fd;
	int gic_fd;
	int its_fd;
	int *vcpu_fds;
	uint64_t *mpidrs;
	void *ram;
	struct vm_config config;
	char err[128];
};

/*
 * -ENODEV from vm_create() means that this host has no KVM or no VGICv3.
 * After a failure nothing is left to destroy, and vm->err can be read.
 */
int vm_create(struct vm *vm, const struct vm_config *config);
void vm_destroy(struct vm *vm);

/* KVM_CHECK_EXTENSION on the VM */
int vm_cap(const struct vm *vm, int cap);

/*
 * KVM_RUN of a vCPU, which exits before it enters the guest: the VM has run,
 * then, and KVM has built what it builds at that point.
 */
int vm_enter_once(struct vm *vm, uint32_t vcpu);

/* The table's view of this VM; shape->mpidrs is the VM's own array. */
int vm_shape(struct vm *vm, struct sgic_shape *shape);

/* Initialise a VGIC that was created with no_init. */
int vm_gic_init(struct vm *vm);

/* KVM_{GET,SET}_DEVICE_ATTR of one register */
int vm_get(const struct vm *vm, uint32_t group, uint64_t attr, uint64_t *val);
int vm_set(const struct vm *vm, uint32_t group, uint64_t attr, uint64_t val);

/* Does this kernel have the batch group? */
bool vm_has_batch(const struct vm *vm);

/* One batch call; @count goes to the kernel as it is. */
int vm_batch(const struct vm *vm, bool write,
	     struct kvm_dev_arm_vgic_batch_entry *entries, uint64_t count);

/*
 * As few batch calls as it takes. @calls, if not NULL, counts them. Stops
 * at the first call that fails.
 */
int vm_batch_all(const struct vm *vm, bool write,
		 struct kvm_dev_arm_vgic_batch_entry *entries, size_t count,
		 unsigned int *calls);

/* The attribute of one vCPU's register */
static inline uint64_t vm_attr(uint64_t mpidr, uint32_t offset)
{
	return sgic_vcpu_attr(mpidr, offset);
}

/* The value of a batch entry */
static inline uint64_t
vm_entry_val(const struct kvm_dev_arm_vgic_batch_entry *entry)
{
	return (uint64_t)entry->val_hi << 32 | entry->val;
}

#endif
