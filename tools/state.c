// SPDX-License-Identifier: MIT
#include <linux/kvm.h>

#include "gic.h"
#include "state.h"

/* ARE_NS, DS and EnableGrp1: what KVM reports of an enabled distributor */
#define GICD_CTLR_ENABLED 0x52

/* KVM keeps five bits of each priority, and the upper bit of each ICFGR pair */
#define PRIORITY_MASK 0xf8f8f8f8
#define ICFGR_MASK    0xaaaaaaaa

/* state_random()'s kinds; registers use their offset, which is above these */
enum {
	RANDOM_LEVEL = 1,
	RANDOM_BASE,
};

uint64_t state_random(uint32_t seed, uint32_t kind, uint32_t vcpu,
		      uint32_t index)
{
	uint64_t x = (uint64_t)seed << 32 | kind;
	int i;

	/* The finaliser of splitmix64, once for each coordinate */
	for (i = 0; i < 3; i++) {
		x += 0x9e3779b97f4a7c15ULL + (i ? (i == 1 ? vcpu : index) : 0);
		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
		x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
		x ^= x >> 31;
	}
	return x;
}

static uint32_t random32(uint32_t seed, uint32_t kind, uint32_t vcpu,
			 uint32_t index)
{
	return state_random(seed, kind, vcpu, index);
}

static uint32_t icfgr(uint32_t seed, uint32_t index)
{
	return random32(seed, GICD_ICFGR, 0, index) & ICFGR_MASK;
}

/* The registers that the distributor and the redistributors lay out alike */
static enum state_kind banked_value(uint32_t seed, uint32_t offset,
				    uint32_t vcpu, uint64_t *val)
{
	*val = random32(seed, offset, vcpu, 0);

	if (offset >= GIC_IPRIORITYR && offset < GIC_ITARGETSR) {
		*val &= PRIORITY_MASK;
		return STATE_EXACT;
	}
	if ((offset >= GIC_IGROUPR && offset < GIC_ICENABLER) ||
	    (offset >= GIC_ISPENDR && offset < GIC_ICPENDR) ||
	    (offset >= GIC_ISACTIVER && offset < GIC_ICACTIVER))
		return STATE_EXACT;
	return STATE_KEEP;
}

static enum state_kind dist_value(const struct sgic_shape *shape, uint32_t seed,
				  uint32_t offset, uint64_t *val)
{
	uint32_t target;

	if (offset == GICD_CTLR) {
		*val = GICD_CTLR_ENABLED;
		return STATE_EXACT;
	}
	if (offset >= GICD_ICFGR && offset < GICD_IGRPMODR) {
		*val = icfgr(seed, (offset - GICD_ICFGR) / 4);
		return STATE_EXACT;
	}
	if (offset >= GICD_IROUTER) {
		if (offset & 4)
			return STATE_KEEP;
		/* KVM keeps Aff2..Aff0 */
		target = random32(seed, offset, 0, 0) % shape->nr_vcpus;
		*val = shape->mpidrs[target] & 0xffffff;
		return STATE_EXACT;
	}
	return banked_value(seed, offset, 0, val);
}

static enum state_kind redist_value(uint32_t seed, uint32_t offset,
				    uint32_t vcpu, uint64_t *val)
{
	/* Some address of 48 bits; LPIs stay disabled, so nothing reads it. */
	if (offset >= GICR_PROPBASER && offset < GICR_PENDBASER + 8) {
		*val = random32(seed, RANDOM_BASE, vcpu, offset);
		*val &= offset & 4 ? 0xff : 0xffff0000;
		return STATE_LOOSE;
	}
	if (offset < GICR_SGI_BASE)
		return STATE_KEEP;
	return banked_value(seed, offset - GICR_SGI_BASE, vcpu, val);
}

static enum state_kind sysreg_value(uint32_t seed, uint32_t sysreg,
				    uint32_t vcpu, uint64_t *val)
{
	*val = random32(seed, sysreg, vcpu, 0);

	if (sysreg == ICC_PMR_EL1)
		*val &= 0xf8;
	else if (sysreg == ICC_BPR0_EL1 || sysreg == ICC_BPR1_EL1)
		*val &= 7;
	else if (sysreg == ICC_IGRPEN0_EL1 || sysreg == ICC_IGRPEN1_EL1)
		*val &= 1;
	else if (!(sysreg >= ICC_AP0R0_EL1 && sysreg <= ICC_AP0R3_EL1) &&
		 !(sysreg >= ICC_AP1R0_EL1 && sysreg <= ICC_AP1R3_EL1))
		return STATE_KEEP;
	return STATE_EXACT;
}

/* KVM reports the line of level-triggered interrupts only. */
static enum state_kind level_value(uint32_t seed, uint32_t intid, uint32_t vcpu,
				   uint64_t *val)
{
	uint64_t config;
	int i;

	*val = random32(seed, RANDOM_LEVEL, vcpu, intid);
	if (intid < 32) {
		*val &= 0xffff0000; /* SGIs have no line */
		return STATE_EXACT;
	}
	config = (uint64_t)icfgr(seed, intid / 16 + 1) << 32 |
		 icfgr(seed, intid / 16);
	for (i = 0; i < 32; i++)
		if (config >> (2 * i + 1) & 1)
			*val &= ~(1ULL << i);
	return STATE_EXACT;
}

enum state_kind state_value(const struct sgic_shape *shape, uint32_t seed,
			    const struct sgic_reg *reg, uint64_t *val)
{
	uint32_t offset = reg->attr;

	/* Cleared first: a vCPU's SGIs are enabled from reset on. */
	if (reg->slot >= SGIC_SLOT_ZERO) {
		*val = sgic_reg_value(reg, NULL);
		return STATE_LOOSE;
	}
	switch (reg->group) {
	case KVM_DEV_ARM_VGIC_GRP_DIST_REGS:
		return dist_value(shape, seed, offset, val);
	case KVM_DEV_ARM_VGIC_GRP_REDIST_REGS:
		return redist_value(seed, offset, reg->vcpu, val);
	case KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS:
		return sysreg_value(seed, offset, reg->vcpu, val);
	case KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO:
		return level_value(
			seed, offset & KVM_DEV_ARM_VGIC_LINE_LEVEL_INTID_MASK,
			reg->vcpu, val);
	}
	return STATE_KEEP;
}
