// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the VGICv3's register handlers cost by themselves: no call from user
 * space, no lock, no copy, no look-up of a vCPU around them. It is the limit
 * that a batch can come near to. For the lab only: it trusts its caller.
 *
 * The handlers are not exported, so the lab's init passes their addresses.
 */

#include <linux/file.h>
#include <linux/kvm_host.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <asm/kvm_emulate.h>

#include "vgic_limit.h"

typedef int mmio_handler(struct kvm_vcpu *vcpu, bool is_write, int offset,
			 u32 *val);
typedef int sysreg_handler(struct kvm_vcpu *vcpu, bool is_write,
			   struct kvm_dev_arm_vgic_batch_entry *reg);
typedef int level_handler(struct kvm_vcpu *vcpu, bool is_write, u32 intid,
			  u32 *val);

static unsigned long dist, redist, sysregs, level;
module_param(dist, ulong, 0);
module_param(redist, ulong, 0);
module_param(sysregs, ulong, 0);
module_param(level, ulong, 0);

static struct kvm_vcpu *find_vcpu(struct kvm *kvm, u64 attr)
{
	u64 mpidr = (attr >> 56) << 32 | ((attr >> 32) & 0xffffff);
	struct kvm_vcpu *vcpu;
	unsigned long i;

	/* What kvm_vcpu_get_mpidr_aff() calls is not exported everywhere. */
	kvm_for_each_vcpu (i, vcpu, kvm) {
		u64 reg = __vcpu_sys_reg(vcpu, MPIDR_EL1);

		if ((reg & MPIDR_HWID_BITMASK) == mpidr)
			return vcpu;
	}
	return NULL;
}

static u64 run_handlers(struct kvm_dev_arm_vgic_batch_entry *reg,
			struct kvm_vcpu **vcpu, u32 count, bool write)
{
	mmio_handler *dist_fn = (void *)dist, *redist_fn = (void *)redist;
	sysreg_handler *sysreg_fn = (void *)sysregs;
	level_handler *level_fn = (void *)level;
	u64 start = ktime_get_ns();

	for (; count; count--, reg++, vcpu++) {
		switch (reg->group) {
		case KVM_DEV_ARM_VGIC_GRP_DIST_REGS:
			reg->error = dist_fn(*vcpu, write, reg->attr,
					     &reg->val);
			break;
		case KVM_DEV_ARM_VGIC_GRP_REDIST_REGS:
			reg->error = redist_fn(*vcpu, write, reg->attr,
					       &reg->val);
			break;
		case KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS:
			reg->error = sysreg_fn(*vcpu, write, reg);
			break;
		default:
			reg->error = level_fn(*vcpu, write, reg->attr & 0x3ff,
					      &reg->val);
		}
	}

	return ktime_get_ns() - start;
}

static int limit_run(struct kvm *kvm, struct vgic_limit_run *run,
		     struct kvm_dev_arm_vgic_batch_entry *regs,
		     struct kvm_vcpu **vcpus)
{
	u32 i;

	for (i = 0; i < run->count; i++) {
		if (regs[i].group == KVM_DEV_ARM_VGIC_GRP_DIST_REGS)
			vcpus[i] = kvm_get_vcpu(kvm, 0);
		else if (i && regs[i].attr >> 32 == regs[i - 1].attr >> 32)
			vcpus[i] = vcpus[i - 1];
		else
			vcpus[i] = find_vcpu(kvm, regs[i].attr);
		if (!vcpus[i])
			return -EINVAL;
	}

	run->ns = run_handlers(regs, vcpus, run->count, run->write);
	return 0;
}

static long limit_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct kvm_dev_arm_vgic_batch_entry *regs = NULL;
	void __user *uregs;
	struct vgic_limit_run run;
	struct kvm_vcpu **vcpus = NULL;
	struct file *vm;
	size_t size;
	long ret;

	if (cmd != VGIC_LIMIT_RUN)
		return -ENOTTY;
	if (copy_from_user(&run, (void __user *)arg, sizeof(run)))
		return -EFAULT;

	vm = fget(run.vm_fd);
	if (!vm)
		return -EBADF;

	size = array_size(run.count, sizeof(*regs));
	uregs = (void __user *)(unsigned long)run.entries;
	regs = kvmalloc(size, GFP_KERNEL_ACCOUNT);
	vcpus = kvcalloc(run.count, sizeof(*vcpus), GFP_KERNEL_ACCOUNT);
	ret = -ENOMEM;
	if (!regs || !vcpus)
		goto out;

	ret = -EFAULT;
	if (copy_from_user(regs, uregs, size))
		goto out;

	ret = limit_run(vm->private_data, &run, regs, vcpus);
	if (ret)
		goto out;

	if (copy_to_user(uregs, regs, size) ||
	    copy_to_user((void __user *)arg, &run, sizeof(run)))
		ret = -EFAULT;
out:
	kvfree(vcpus);
	kvfree(regs);
	fput(vm);
	return ret;
}

static const struct file_operations limit_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = limit_ioctl,
};

static struct miscdevice limit_dev = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vgic_limit",
	.fops = &limit_fops,
};

static int __init limit_init(void)
{
	if (!dist || !redist || !sysregs || !level)
		return -EINVAL;

	return misc_register(&limit_dev);
}
module_init(limit_init);

static void __exit limit_exit(void)
{
	misc_deregister(&limit_dev);
}
module_exit(limit_exit);

MODULE_DESCRIPTION("Cost of the VGICv3 register handlers");
MODULE_LICENSE("GPL");
