/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * KVM/arm64 VGICv3 batch register access: the user-space view of what
 * kernel/series adds to arch/arm64/include/uapi/asm/kvm.h. It is here
 * so that the tools build against the headers of any kernel.
 */
#ifndef SWIFTGIC_UAPI_VGIC_BATCH_H
#define SWIFTGIC_UAPI_VGIC_BATCH_H

#include <linux/types.h>

#ifndef KVM_DEV_ARM_VGIC_GRP_BATCH_REGS
#define KVM_DEV_ARM_VGIC_GRP_BATCH_REGS 10
#define KVM_DEV_ARM_VGIC_BATCH_MAX	4096

struct kvm_dev_arm_vgic_batch_entry {
	__u32 group;
	__u32 val_hi;
	__u64 attr;
	__u32 val;
	__s32 error;
};
#endif

#endif
