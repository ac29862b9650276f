/* SPDX-License-Identifier: MIT */
/* The lab's measure of what register handlers cost by themselves */
#ifndef SWIFTGIC_VGIC_LIMIT_H
#define SWIFTGIC_VGIC_LIMIT_H

#include <linux/ioctl.h>
#include <linux/types.h>

/**
 * struct vgic_limit_run - run the handlers of a list of registers
 * @vm_fd:	the VM; its vCPUs must not run meanwhile
 * @write:	1 to set, 0 to get
 * @entries:	address of struct kvm_dev_arm_vgic_batch_entry[@count]; a
 *		get's values and each one's error are written back
 * @count:	their number, of any size
 * @pad:	0
 * @ns:		out: CLOCK_MONOTONIC nanoseconds in the handlers
 */
struct vgic_limit_run {
	__s32 vm_fd;
	__u32 write;
	__u64 entries;
	__u32 count;
	__u32 pad;
	__u64 ns;
};

#define VGIC_LIMIT_RUN _IOWR('v', 1, struct vgic_limit_run)

#endif
