/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What <linux/kvm.h> says of the VGICv3 and the ITS on arm64, as far as the
 * library needs it: so that it builds on any machine.
 */
#ifndef SWIFTGIC_UAPI_VGIC_H
#define SWIFTGIC_UAPI_VGIC_H

#include <linux/kvm.h>

#ifndef __aarch64__
#define KVM_DEV_ARM_VGIC_GRP_DIST_REGS	 1
#define KVM_DEV_ARM_VGIC_GRP_NR_IRQS	 3
#define KVM_DEV_ARM_VGIC_GRP_CTRL	 4
#define KVM_DEV_ARM_VGIC_GRP_REDIST_REGS 5
#define KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS 6
#define KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO	 7
#define KVM_DEV_ARM_VGIC_GRP_ITS_REGS	 8

#define KVM_DEV_ARM_VGIC_CTRL_INIT	     0
#define KVM_DEV_ARM_ITS_SAVE_TABLES	     1
#define KVM_DEV_ARM_ITS_RESTORE_TABLES	     2
#define KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES 3
#define KVM_DEV_ARM_ITS_CTRL_RESET	     4
#endif

#endif
