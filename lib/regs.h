/* SPDX-License-Identifier: MIT */
/*
 * The register table: which registers make up the state of a KVM/arm64
 * GICv3, how many there are on a given machine, what they are called, and
 * in which order they are written back. Everything that moves, shows,
 * compares or counts GICv3 state walks this one table.
 */
#ifndef SWIFTGIC_REGS_H
#define SWIFTGIC_REGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SGIC_MAX_VCPUS 512 /* KVM: VGIC_V3_MAX_CPUS */
#define SGIC_MIN_IRQS  64  /* KVM: 32 private + at least 32 SPIs */
#define SGIC_MAX_IRQS  992 /* largest multiple of 32 below 1020 */
#define SGIC_MAX_LRS   16  /* GICv3 spec: ICH_LR<n>_EL2, n = 0..15 */
#define SGIC_MAX_ITS   16  /* ours; KVM has no limit but the address space */

/* MPIDR_EL1 affinity fields: Aff3 in 39:32, Aff2..Aff0 in 23:0. */
#define SGIC_MPIDR_MASK 0xff00ffffffULL

/**
 * struct sgic_shape - what decides which registers a machine has
 * @nr_vcpus:	vCPUs, 1 to SGIC_MAX_VCPUS
 * @mpidrs:	MPIDR_EL1 of each vCPU, in vCPU order; borrowed, not copied
 * @nr_irqs:	SGIs, PPIs and SPIs, as KVM_DEV_ARM_VGIC_GRP_NR_IRQS takes it
 * @nr_its:	ITSs, 0 to SGIC_MAX_ITS
 * @pri_bits:	priority bits, ICC_CTLR_EL1.PRIbits + 1: 5, 6 or 7
 * @nr_lrs:	list registers of a nested guest; used if @el2
 * @lpis:	the redistributors have LPIs (GICR_TYPER.PLPIS)
 * @el2:	the vCPUs have EL2 (nested virtualisation)
 */
struct sgic_shape {
	uint32_t nr_vcpus;
	const uint64_t *mpidrs;
	uint32_t nr_irqs;
	uint32_t nr_its;
	uint8_t pri_bits;
	uint8_t nr_lrs;
	bool lpis;
	bool el2;
};

enum sgic_dir {
	SGIC_SAVE,
	SGIC_RESTORE,
};

/* Slots from the lower of these on stand for a constant, not a saved value. */
#define SGIC_SLOT_ONES UINT32_MAX
#define SGIC_SLOT_ZERO (UINT32_MAX - 1)

struct sgic_reg_desc;

/**
 * struct sgic_reg - one access of a save or a restore
 * @desc:	the table's row
 * @attr:	as struct kvm_device_attr takes it
 * @group:	KVM_DEV_ARM_VGIC_GRP_*
 * @slot:	which of the save's values this is: a save's entry i has slot
 *		i; a restore's entry names the slot it writes back, or is
 *		SGIC_SLOT_ONES for a write of 0xffffffff (clear before set), or
 *		SGIC_SLOT_ZERO for one of 0 (disable)
 * @vcpu:	the vCPU it belongs to; 0 for the distributor and the ITSs
 * @its:	the ITS it belongs to; 0 for all others
 * @index:	which 32-bit word of a banked register, counted from the
 *		architecture's register 0 (GICD_ISENABLER<index>)
 */
struct sgic_reg {
	const struct sgic_reg_desc *desc;
	uint64_t attr;
	uint32_t group;
	uint32_t slot;
	uint16_t vcpu;
	uint16_t its;
	uint16_t index;
};

/**
 * sgic_shape_check() - is this a machine the table can describe?
 *
 * Return: NULL if so, else what is wrong with it (a constant string).
 * Duplicate MPIDRs and bits outside the affinity fields are refused.
 */
const char *sgic_shape_check(const struct sgic_shape *shape);

/**
 * sgic_regs_count() - number of accesses of a whole save or restore
 */
size_t sgic_regs_count(const struct sgic_shape *shape, enum sgic_dir dir);

/**
 * sgic_regs_fill() - expand the table for one machine and direction
 * @regs:	room for sgic_regs_count() entries, owned by the caller
 *
 * Return: the number of entries written.
 */
size_t sgic_regs_fill(const struct sgic_shape *shape, enum sgic_dir dir,
		      struct sgic_reg *regs);

/**
 * sgic_reg_value() - what an entry of a restore writes
 * @values:	the saved values, by slot
 */
static inline uint64_t sgic_reg_value(const struct sgic_reg *reg,
				      const uint64_t *values)
{
	if (reg->slot == SGIC_SLOT_ONES)
		return UINT32_MAX;
	return reg->slot == SGIC_SLOT_ZERO ? 0 : values[reg->slot];
}

/**
 * sgic_vcpu_attr() - the attribute of a vCPU's register
 *
 * Aff3..Aff0 are in 63:32 (Linux, Documentation/virt/kvm/devices/
 * arm-vgic-v3.rst), the register below.
 */
static inline uint64_t sgic_vcpu_attr(uint64_t mpidr, uint32_t reg)
{
	return (mpidr >> 32 & 0xff) << 56 | (mpidr & 0xffffff) << 32 | reg;
}

/**
 * sgic_reg_wide() - is the value 64 bits (CPU_SYSREGS, ITS_REGS) or 32?
 */
bool sgic_reg_wide(const struct sgic_reg *reg);

/**
 * sgic_reg_has_vcpu(), sgic_reg_has_its() - is it one of a vCPU, of an ITS?
 *
 * What is neither is the distributor's.
 */
bool sgic_reg_has_vcpu(const struct sgic_reg *reg);
bool sgic_reg_has_its(const struct sgic_reg *reg);

/**
 * sgic_reg_name() - "GICD_ISENABLER3", "GICR_IPRIORITYR2 (vCPU 5)",
 *		     "GICD_IROUTER40[63:32]", "ICC_PMR_EL1 (vCPU 0)",
 *		     "GITS_BASER1 (ITS 0)"
 *
 * Return: as snprintf().
 */
int sgic_reg_name(const struct sgic_reg *reg, char *buf, size_t len);

#endif
