// SPDX-License-Identifier: GPL-2.0-only
/*
 * VGICv3 batch register access: many registers in one device attribute call
 *
 * What a one-register call costs is not the register but the locks: the VM's
 * and every vCPU's. A batch takes them once. Its entries are copied in before
 * the locks are taken and copied out after they are dropped, so that no page
 * fault of the caller's can hold up the VM.
 */

#include <linux/bitfield.h>
#include <linux/hash.h>
#include <linux/kvm_host.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <kvm/arm_vgic.h>
#include <asm/kvm_emulate.h>
#include "vgic.h"
#include "trace.h"

#define VGIC_BATCH_HASH_BITS	(const_ilog2(KVM_MAX_VCPUS) + 1)
#define VGIC_BATCH_HASH_SIZE	BIT(VGIC_BATCH_HASH_BITS)

/**
 * struct vgic_batch - a batch in progress
 * @kvm:	the VM
 * @linear:	two vCPUs have the same MPIDR; which of them it names is for
 *		kvm_mpidr_to_vcpu() to say
 * @vcpu0:	the vCPU that stands for the distributor
 * @vcpu:	the vCPU that @affinity stands for, from the entry before
 * @affinity:	MPIDR as an attribute has it
 * @vcpus:	the vCPUs, hashed by MPIDR; half full at most
 * @entries:	user space's entries
 */
struct vgic_batch {
	struct kvm *kvm;
	bool linear;
	u32 affinity;
	struct kvm_vcpu *vcpu0;
	struct kvm_vcpu *vcpu;
	struct kvm_vcpu *vcpus[VGIC_BATCH_HASH_SIZE];
	struct kvm_dev_arm_vgic_batch_entry entries[];
};

/* The slot of the vCPU with this MPIDR, or the free one that it would take */
static struct kvm_vcpu **vgic_batch_slot(struct vgic_batch *batch, u64 mpidr)
{
	u32 i = hash_64(mpidr, VGIC_BATCH_HASH_BITS);

	while (batch->vcpus[i] &&
	       kvm_vcpu_get_mpidr_aff(batch->vcpus[i]) != mpidr)
		i = (i + 1) % VGIC_BATCH_HASH_SIZE;

	return &batch->vcpus[i];
}

static void vgic_batch_hash_vcpus(struct vgic_batch *batch)
{
	XA_STATE(xas, &batch->kvm->vcpu_array, 0);
	struct kvm_vcpu *vcpu, **slot;

	batch->linear = false;
	memset(batch->vcpus, 0, sizeof(batch->vcpus));

	/* kvm->lock keeps the array as it is; RCU is for the walk's checks */
	rcu_read_lock();
	xas_for_each(&xas, vcpu, ULONG_MAX) {
		slot = vgic_batch_slot(batch, kvm_vcpu_get_mpidr_aff(vcpu));
		if (*slot)
			batch->linear = true;
		*slot = vcpu;
	}
	rcu_read_unlock();
}

/*
 * vgic_mpidr_to_vcpu - kvm_mpidr_to_vcpu() for the register handlers
 *
 * The caller holds a vcpu->mutex: its own, on behalf of a guest, or all of
 * them, on behalf of user space. A batch holds all of them from before it sets
 * dist->batch until after it has cleared it. So whoever finds it set is that
 * batch, and no MPIDR changes meanwhile.
 */
struct kvm_vcpu *vgic_mpidr_to_vcpu(struct kvm *kvm, unsigned long mpidr)
{
	struct vgic_batch *batch = kvm->arch.vgic.batch;

	if (!batch || batch->linear)
		return kvm_mpidr_to_vcpu(kvm, mpidr);

	return *vgic_batch_slot(batch, mpidr & MPIDR_HWID_BITMASK);
}

/*
 * Lock out all that changes the state of a VGIC, but for devices that inject
 * interrupts, while user space accesses it.
 */
int vgic_v3_lock_state(struct kvm *kvm)
{
	mutex_lock(&kvm->lock);

	if (kvm_trylock_all_vcpus(kvm)) {
		mutex_unlock(&kvm->lock);
		return -EBUSY;
	}

	mutex_lock(&kvm->arch.config_lock);
	return 0;
}

void vgic_v3_unlock_state(struct kvm *kvm)
{
	mutex_unlock(&kvm->arch.config_lock);
	kvm_unlock_all_vcpus(kvm);
	mutex_unlock(&kvm->lock);
}

static __always_inline int
reg_access(struct kvm_vcpu *vcpu, bool is_write,
	   struct kvm_dev_arm_vgic_batch_entry *reg)
{
	u32 offset = lower_32_bits(reg->attr);
	int ret;

	lockdep_assert_held(&vcpu->kvm->arch.config_lock);

	if (unlikely(!vgic_initialized(vcpu->kvm)) &&
	    !vgic_v3_reg_allowed_pre_init(reg->group, reg->attr))
		return -EBUSY;

	switch (reg->group) {
	case KVM_DEV_ARM_VGIC_GRP_DIST_REGS:
		ret = vgic_v3_dist_uaccess(vcpu, is_write, offset, &reg->val);
		break;
	case KVM_DEV_ARM_VGIC_GRP_REDIST_REGS:
		ret = vgic_v3_redist_uaccess(vcpu, is_write, offset,
					     &reg->val);
		break;
	case KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS:
		return vgic_v3_cpu_sysregs_uaccess(vcpu, is_write, reg);
	case KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO:
		if (FIELD_GET(KVM_DEV_ARM_VGIC_LINE_LEVEL_INFO_MASK, offset) !=
		    VGIC_LEVEL_INFO_LINE_LEVEL)
			return -EINVAL;
		offset &= KVM_DEV_ARM_VGIC_LINE_LEVEL_INTID_MASK;
		ret = vgic_v3_line_level_info_uaccess(vcpu, is_write, offset,
						      &reg->val);
		break;
	default:
		return -EINVAL;
	}

	if (!ret)
		reg->val_hi = 0;

	return ret;
}

/**
 * vgic_v3_reg_access - access one register, with the state locked
 * @vcpu:	the vCPU that it belongs to; any for the distributor
 * @is_write:	true if user space is writing it
 * @reg:	group, attribute and value; an error leaves the value alone
 */
int vgic_v3_reg_access(struct kvm_vcpu *vcpu, bool is_write,
		       struct kvm_dev_arm_vgic_batch_entry *reg)
{
	return reg_access(vcpu, is_write, reg);
}

/* The vCPU that an entry belongs to, or NULL; as vgic_v3_parse_attr() has it */
static struct kvm_vcpu *
vgic_batch_entry_vcpu(struct vgic_batch *batch,
		      const struct kvm_dev_arm_vgic_batch_entry *entry)
{
	u32 affinity = upper_32_bits(entry->attr);

	switch (entry->group) {
	case KVM_DEV_ARM_VGIC_GRP_DIST_REGS:
		return batch->vcpu0;
	case KVM_DEV_ARM_VGIC_GRP_REDIST_REGS:
	case KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS:
	case KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO:
		/* Most often it is that of the entry before */
		if (!batch->vcpu || batch->affinity != affinity) {
			batch->vcpu = vgic_mpidr_to_vcpu(batch->kvm,
							 VGIC_TO_MPIDR(affinity));
			batch->affinity = affinity;
		}
		return batch->vcpu;
	default:
		return NULL;
	}
}

static int vgic_batch_entry_access(struct vgic_batch *batch, bool is_write,
				   struct kvm_dev_arm_vgic_batch_entry *entry)
{
	struct kvm_vcpu *vcpu = vgic_batch_entry_vcpu(batch, entry);

	if (!vcpu)
		return -EINVAL;

	if (is_write && entry->val_hi &&
	    entry->group != KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS)
		return -EINVAL;

	return reg_access(vcpu, is_write, entry);
}

/*
 * Tries every entry; returns the first error in their order. What an entry
 * costs is its handler's to say, and that may be a walk of all LPIs, so the
 * way out and the scheduler are asked after each.
 */
static int vgic_batch_run(struct vgic_batch *batch, u32 count, bool is_write,
			  u32 *failed)
{
	struct kvm_dev_arm_vgic_batch_entry *entry = batch->entries;
	struct kvm *kvm = batch->kvm;
	int ret = 0;

	vgic_batch_hash_vcpus(batch);
	batch->vcpu0 = kvm_get_vcpu(kvm, 0);
	batch->vcpu = NULL;
	kvm->arch.vgic.batch = batch;

	for (*failed = 0; count; count--, entry++) {
		entry->error = vgic_batch_entry_access(batch, is_write, entry);
		if (unlikely(entry->error)) {
			ret = ret ?: entry->error;
			++*failed;
		}

		if (fatal_signal_pending(current)) {
			ret = -EINTR;
			break;
		}
		if (need_resched())
			cond_resched();
	}

	kvm->arch.vgic.batch = NULL;

	return ret;
}

/**
 * vgic_v3_batch_access - access many registers under one set of locks
 * @dev:	the VGICv3
 * @attr:	attr: the number of entries, addr: the array of them
 * @is_write:	true if user space is writing registers
 *
 * Returns 0 if all entries succeeded, else the first error of an entry, with
 * each entry's own in the entry. If none has been tried: -EINVAL, -ENOMEM,
 * -EBUSY, or -EFAULT. -EFAULT too if all have, but the results could not be
 * copied out; -EINTR if the caller is being killed, whatever has been done.
 */
int vgic_v3_batch_access(struct kvm_device *dev, struct kvm_device_attr *attr,
			 bool is_write)
{
	struct kvm_dev_arm_vgic_batch_entry __user *uentries;
	struct vgic_batch *batch;
	u64 start = 0, ns = 0;
	u32 count, failed;
	size_t size;
	int ret;

	if (attr->flags || !attr->attr || vgic_v3_has_batch_attr(attr))
		return -EINVAL;

	count = attr->attr;
	size = array_size(count, sizeof(*uentries));
	uentries = (void __user *)(unsigned long)attr->addr;

	batch = kvmalloc(struct_size(batch, entries, count),
			 GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!batch)
		return -ENOMEM;

	batch->kvm = dev->kvm;
	if (copy_from_user(batch->entries, uentries, size)) {
		ret = -EFAULT;
		goto out;
	}

	ret = vgic_v3_lock_state(dev->kvm);
	if (ret)
		goto out;

	if (trace_vgic_batch_access_enabled())
		start = ktime_get_ns();

	ret = vgic_batch_run(batch, count, is_write, &failed);

	if (start)
		ns = ktime_get_ns() - start;

	vgic_v3_unlock_state(dev->kvm);

	trace_vgic_batch_access(is_write, count, failed, ns);

	if (copy_to_user(uentries, batch->entries, size))
		ret = -EFAULT;
out:
	kvfree(batch);
	return ret;
}

/* A VMM finds the limit by asking for it: 0 up to it, -ENXIO beyond */
int vgic_v3_has_batch_attr(struct kvm_device_attr *attr)
{
	return attr->attr <= KVM_DEV_ARM_VGIC_BATCH_MAX ? 0 : -ENXIO;
}
