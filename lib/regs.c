// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include "regs.h"
#include "vgic.h"

#define GRP_DIST   KVM_DEV_ARM_VGIC_GRP_DIST_REGS
#define GRP_REDIST KVM_DEV_ARM_VGIC_GRP_REDIST_REGS
#define GRP_SYSREG KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS
#define GRP_LEVEL  KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO
#define GRP_ITS	   KVM_DEV_ARM_VGIC_GRP_ITS_REGS

/* The "instr" field of a CPU_SYSREGS attribute. */
#define SYSREG(op0, op1, crn, crm, op2) \
	((op0) << 14 | (op1) << 11 | (crn) << 7 | (crm) << 3 | (op2))

/* GICR_ registers of the SGI frame lie 64 KiB above the RD frame. */
#define SGI(offset) (0x10000 + (offset))

/* How many 32-bit words, or system registers, a row stands for. */
enum words {
	ONE,
	HALVES, /* a 64-bit register, accessed as two words */
	EIGHT,	/* GICR_IPRIORITYR<0..7> */
	BASERS, /* GITS_BASER<0..7>, 64 bits each */
	SPIS_1, /* SPIs, at 1, 2, 8 and 64 bits an interrupt */
	SPIS_2,
	SPIS_8,
	SPIS_64,
	APRS, /* active priorities: 1, 2 or 4 registers */
	LRS,
};

enum {
	CLEAR = 1,   /* restore only: write ones, to clear */
	DISABLE = 2, /* restore only: write zero */
	LPI = 4,     /* only if the machine has LPIs */
	EL2 = 8,     /* only if the vCPUs have EL2 */
};

struct sgic_reg_desc {
	const char *name; /* '#' stands for the register's number */
	uint32_t attr;	  /* of the first word; MPIDR left out */
	uint8_t group;
	uint8_t words;
	uint8_t flags;
};

/*
 * The order of the rows is the order of a restore, and why:
 *
 * GICD_IIDR first: it selects the revision that the other writes are
 *   interpreted by (Linux, Documentation/virt/kvm/devices/arm-vgic-v3.rst).
 * Clear before set: ISENABLER and ISACTIVER only ever set bits (GICv3 spec
 *   12.9), so what the target had set before must be cleared first. ISPENDR
 *   needs no clear: a user write sets the whole latch (arm-vgic-v3.rst).
 * Configuration (group, edge or level, priority, routing) before level,
 *   pending and active state: these three may queue the interrupt to a
 *   vCPU, which is chosen and sorted by the configuration
 *   (vgic_queue_irq_unlock()). KVM does not re-evaluate the priority or the
 *   affinity of an interrupt that is queued already.
 * GICD_CTLR before these three: while the distributor is disabled KVM queues
 *   no pending interrupt (vgic_target_oracle()), and user space's write to
 *   GICD_CTLR queues none that is pending already. A guest that sleeps on one
 *   would never wake.
 * Enable after all of these: an interrupt that is both enabled and pending is
 *   queued at once, and its vCPU kicked.
 * Line level before pending: the latch and the line are separate state, and
 *   a level interrupt is pending if either is set (arm-vgic-v3.rst). With
 *   the line first, a write to ISPENDR is never seen as the whole of it.
 * GICR_PROPBASER and GICR_PENDBASER before GICR_CTLR: while EnableLPIs is
 *   set they ignore writes, and setting it reads the pending table (GICv3
 *   spec 12.11, vgic_enable_lpis()). So it is cleared first of all, which
 *   also drops the LPIs that the target had pending.
 * ICC_CTLR_EL1 before ICC_BPR1_EL1 and the active priorities: its CBPR
 *   decides if BPR1 has storage of its own, its PRIbits how many active
 *   priority registers there are (set_gic_bpr1(), vgic_v3_max_apr_idx()).
 * Group enables after all that a CPU interface needs to deliver.
 *
 * The ITSs follow (Linux, Documentation/virt/kvm/devices/arm-vgic-its.rst):
 * GITS_IIDR first: it selects the layout of the tables.
 * GITS_CBASER before GITS_CREADR, which a write to it resets.
 * GITS_CTLR last: the tables are read from guest memory before it, and an
 *   enabled ITS ignores writes to the others.
 */
/* clang-format off */
static const struct sgic_reg_desc dist_regs[] = {
	{ "GICD_IIDR",		0x0008, GRP_DIST, ONE, 0 },
	{ "GICD_ICENABLER#",	0x0180, GRP_DIST, SPIS_1, CLEAR },
	{ "GICD_ICACTIVER#",	0x0380, GRP_DIST, SPIS_1, CLEAR },
	{ "GICD_IGROUPR#",	0x0080, GRP_DIST, SPIS_1, 0 },
	{ "GICD_ICFGR#",	0x0c00, GRP_DIST, SPIS_2, 0 },
	{ "GICD_IPRIORITYR#",	0x0400, GRP_DIST, SPIS_8, 0 },
	{ "GICD_IROUTER#",	0x6000, GRP_DIST, SPIS_64, 0 },
	{ "GICD_CTLR",		0x0000, GRP_DIST, ONE, 0 },
	{ "LEVEL_INFO#",	0,	GRP_LEVEL, SPIS_1, 0 },
	{ "GICD_ISPENDR#",	0x0200, GRP_DIST, SPIS_1, 0 },
	{ "GICD_ISACTIVER#",	0x0300, GRP_DIST, SPIS_1, 0 },
	{ "GICD_ISENABLER#",	0x0100, GRP_DIST, SPIS_1, 0 },
};

static const struct sgic_reg_desc vcpu_regs[] = {
	{ "GICR_CTLR",		0x00,	    GRP_REDIST, ONE, LPI | DISABLE },
	{ "GICR_ICENABLER0",	SGI(0x180), GRP_REDIST, ONE, CLEAR },
	{ "GICR_ICACTIVER0",	SGI(0x380), GRP_REDIST, ONE, CLEAR },
	{ "GICR_IGROUPR0",	SGI(0x080), GRP_REDIST, ONE, 0 },
	{ "GICR_ICFGR1",	SGI(0xc04), GRP_REDIST, ONE, 0 },
	{ "GICR_IPRIORITYR#",	SGI(0x400), GRP_REDIST, EIGHT, 0 },
	{ "LEVEL_INFO0",	0,	    GRP_LEVEL, ONE, 0 },
	{ "GICR_ISPENDR0",	SGI(0x200), GRP_REDIST, ONE, 0 },
	{ "GICR_ISACTIVER0",	SGI(0x300), GRP_REDIST, ONE, 0 },
	{ "GICR_ISENABLER0",	SGI(0x100), GRP_REDIST, ONE, 0 },
	{ "GICR_STATUSR",	0x10,	    GRP_REDIST, ONE, 0 },
	{ "GICR_WAKER",		0x14,	    GRP_REDIST, ONE, 0 },
	{ "GICR_PROPBASER",	0x70,	    GRP_REDIST, HALVES, LPI },
	{ "GICR_PENDBASER",	0x78,	    GRP_REDIST, HALVES, LPI },
	{ "GICR_CTLR",		0x00,	    GRP_REDIST, ONE, 0 },

	{ "ICC_SRE_EL1",     SYSREG(3, 0, 12, 12, 5), GRP_SYSREG, ONE, 0 },
	{ "ICC_CTLR_EL1",    SYSREG(3, 0, 12, 12, 4), GRP_SYSREG, ONE, 0 },
	{ "ICC_PMR_EL1",     SYSREG(3, 0,  4,  6, 0), GRP_SYSREG, ONE, 0 },
	{ "ICC_BPR0_EL1",    SYSREG(3, 0, 12,  8, 3), GRP_SYSREG, ONE, 0 },
	{ "ICC_BPR1_EL1",    SYSREG(3, 0, 12, 12, 3), GRP_SYSREG, ONE, 0 },
	{ "ICC_AP0R#_EL1",   SYSREG(3, 0, 12,  8, 4), GRP_SYSREG, APRS, 0 },
	{ "ICC_AP1R#_EL1",   SYSREG(3, 0, 12,  9, 0), GRP_SYSREG, APRS, 0 },
	{ "ICC_IGRPEN0_EL1", SYSREG(3, 0, 12, 12, 6), GRP_SYSREG, ONE, 0 },
	{ "ICC_IGRPEN1_EL1", SYSREG(3, 0, 12, 12, 7), GRP_SYSREG, ONE, 0 },

	{ "ICC_SRE_EL2",     SYSREG(3, 4, 12,  9, 5), GRP_SYSREG, ONE, EL2 },
	{ "ICH_VTR_EL2",     SYSREG(3, 4, 12, 11, 1), GRP_SYSREG, ONE, EL2 },
	{ "ICH_VMCR_EL2",    SYSREG(3, 4, 12, 11, 7), GRP_SYSREG, ONE, EL2 },
	{ "ICH_AP0R#_EL2",   SYSREG(3, 4, 12,  8, 0), GRP_SYSREG, APRS, EL2 },
	{ "ICH_AP1R#_EL2",   SYSREG(3, 4, 12,  9, 0), GRP_SYSREG, APRS, EL2 },
	{ "ICH_LR#_EL2",     SYSREG(3, 4, 12, 12, 0), GRP_SYSREG, LRS, EL2 },
	{ "ICH_HCR_EL2",     SYSREG(3, 4, 12, 11, 0), GRP_SYSREG, ONE, EL2 },
};

static const struct sgic_reg_desc its_regs[] = {
	{ "GITS_IIDR",		0x0004, GRP_ITS, ONE, 0 },
	{ "GITS_CBASER",	0x0080, GRP_ITS, ONE, 0 },
	{ "GITS_CREADR",	0x0090, GRP_ITS, ONE, 0 },
	{ "GITS_CWRITER",	0x0088, GRP_ITS, ONE, 0 },
	{ "GITS_BASER#",	0x0100, GRP_ITS, BASERS, 0 },
	{ "GITS_CTLR",		0x0000, GRP_ITS, ONE, 0 },
};

/* clang-format on */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static bool has_row(const struct sgic_shape *shape, enum sgic_dir dir,
		    const struct sgic_reg_desc *desc)
{
	if ((desc->flags & (CLEAR | DISABLE)) && dir == SGIC_SAVE)
		return false;
	if ((desc->flags & LPI) && !shape->lpis)
		return false;
	return !(desc->flags & EL2) || shape->el2;
}

/* The first word that exists, and how many there are from it on. */
static void row_words(const struct sgic_shape *shape,
		      const struct sgic_reg_desc *desc, uint32_t *first,
		      uint32_t *count)
{
	uint32_t bits = 0;

	*first = 0;
	switch ((enum words)desc->words) {
	case ONE:
		*count = 1;
		return;
	case HALVES:
		*count = 2;
		return;
	case EIGHT:
	case BASERS:
		*count = 8;
		return;
	case APRS:
		/* vgic_v3_max_apr_idx() + 1 */
		*count = 1U << (shape->pri_bits - 5);
		return;
	case LRS:
		*count = shape->nr_lrs;
		return;
	case SPIS_1:
		bits = 1;
		break;
	case SPIS_2:
		bits = 2;
		break;
	case SPIS_8:
		bits = 8;
		break;
	case SPIS_64:
		bits = 64;
		break;
	}

	/* The words of INTIDs 0 to 31 are in the redistributors. */
	*first = bits;
	*count = (shape->nr_irqs - 32) / 32 * bits;
}

static uint32_t word_step(const struct sgic_reg_desc *desc)
{
	switch (desc->group) {
	case GRP_SYSREG:
		return 1; /* the next Op2, and from it to CRm */
	case GRP_LEVEL:
		return 32; /* INTIDs */
	case GRP_ITS:
		return 8; /* bytes */
	default:
		return 4; /* bytes */
	}
}

static size_t fill_rows(const struct sgic_shape *shape, enum sgic_dir dir,
			const struct sgic_reg_desc *desc, size_t nr_desc,
			uint32_t vcpu, uint32_t its, uint32_t *slot,
			struct sgic_reg *regs)
{
	uint64_t mpidr = sgic_vcpu_attr(shape->mpidrs[vcpu], 0);
	struct sgic_reg *reg = regs;
	uint32_t first, count;

	for (; nr_desc; nr_desc--, desc++) {
		if (!has_row(shape, dir, desc))
			continue;

		row_words(shape, desc, &first, &count);
		for (uint32_t i = first; i < first + count; i++, reg++) {
			reg->desc = desc;
			reg->group = desc->group;
			reg->attr = desc->attr + i * word_step(desc);
			if (desc->group != GRP_DIST && desc->group != GRP_ITS)
				reg->attr |= mpidr;
			reg->vcpu = vcpu;
			reg->its = its;
			reg->index = i;
			if (desc->flags & CLEAR)
				reg->slot = SGIC_SLOT_ONES;
			else if (desc->flags & DISABLE)
				reg->slot = SGIC_SLOT_ZERO;
			else
				reg->slot = (*slot)++;
		}
	}

	return reg - regs;
}

static size_t count_rows(const struct sgic_shape *shape, enum sgic_dir dir,
			 const struct sgic_reg_desc *desc, size_t nr_desc)
{
	uint32_t first, count;
	size_t n = 0;

	for (; nr_desc; nr_desc--, desc++) {
		if (!has_row(shape, dir, desc))
			continue;
		row_words(shape, desc, &first, &count);
		n += count;
	}

	return n;
}

size_t sgic_regs_count(const struct sgic_shape *shape, enum sgic_dir dir)
{
	return count_rows(shape, dir, dist_regs, ARRAY_SIZE(dist_regs)) +
	       count_rows(shape, dir, vcpu_regs, ARRAY_SIZE(vcpu_regs)) *
		       shape->nr_vcpus +
	       count_rows(shape, dir, its_regs, ARRAY_SIZE(its_regs)) *
		       shape->nr_its;
}

size_t sgic_regs_fill(const struct sgic_shape *shape, enum sgic_dir dir,
		      struct sgic_reg *regs)
{
	uint32_t slot = 0;
	size_t n;

	n = fill_rows(shape, dir, dist_regs, ARRAY_SIZE(dist_regs), 0, 0, &slot,
		      regs);
	for (uint32_t vcpu = 0; vcpu < shape->nr_vcpus; vcpu++)
		n += fill_rows(shape, dir, vcpu_regs, ARRAY_SIZE(vcpu_regs),
			       vcpu, 0, &slot, regs + n);
	for (uint32_t its = 0; its < shape->nr_its; its++)
		n += fill_rows(shape, dir, its_regs, ARRAY_SIZE(its_regs), 0,
			       its, &slot, regs + n);

	return n;
}

const char *sgic_shape_check(const struct sgic_shape *shape)
{
	if (!shape->nr_vcpus || shape->nr_vcpus > SGIC_MAX_VCPUS)
		return "the number of vCPUs is not 1 to 512";
	if (shape->nr_irqs < SGIC_MIN_IRQS || shape->nr_irqs > SGIC_MAX_IRQS ||
	    shape->nr_irqs % 32)
		return "the number of interrupts is not a multiple of 32 from 64 to 992";
	if (shape->nr_its > SGIC_MAX_ITS)
		return "the number of ITSs is not 0 to 16";
	if (shape->nr_its && !shape->lpis)
		return "there is an ITS, but the redistributors have no LPIs";
	if (shape->pri_bits < 5 || shape->pri_bits > 7)
		return "the number of priority bits is not 5 to 7";
	if (shape->el2 && (!shape->nr_lrs || shape->nr_lrs > SGIC_MAX_LRS))
		return "the number of list registers is not 1 to 16";

	for (uint32_t i = 0; i < shape->nr_vcpus; i++) {
		if (shape->mpidrs[i] & ~SGIC_MPIDR_MASK)
			return "an MPIDR has bits outside of its affinity fields";
		for (uint32_t j = 0; j < i; j++)
			if (shape->mpidrs[i] == shape->mpidrs[j])
				return "two vCPUs have the same MPIDR";
	}

	return NULL;
}

bool sgic_reg_wide(const struct sgic_reg *reg)
{
	return reg->group == GRP_SYSREG || reg->group == GRP_ITS;
}

bool sgic_reg_has_vcpu(const struct sgic_reg *reg)
{
	return reg->desc >= vcpu_regs &&
	       reg->desc < vcpu_regs + ARRAY_SIZE(vcpu_regs);
}

bool sgic_reg_has_its(const struct sgic_reg *reg)
{
	return reg->group == GRP_ITS;
}

int sgic_reg_name(const struct sgic_reg *reg, char *buf, size_t len)
{
	const struct sgic_reg_desc *desc = reg->desc;
	const char *hash = strchr(desc->name, '#');
	const char *half = "";
	char number[8] = "", whose[16] = "";
	int head = hash ? hash - desc->name : (int)strlen(desc->name);
	unsigned int n = reg->index;

	if (desc->words == HALVES || desc->words == SPIS_64) {
		half = n % 2 ? "[63:32]" : "[31:0]";
		n /= 2;
	}
	if (hash)
		snprintf(number, sizeof(number), "%u", n);
	if (sgic_reg_has_vcpu(reg))
		snprintf(whose, sizeof(whose), " (vCPU %u)", reg->vcpu);
	else if (sgic_reg_has_its(reg))
		snprintf(whose, sizeof(whose), " (ITS %u)", reg->its);

	return snprintf(buf, len, "%.*s%s%s%s%s", head, desc->name, number,
			hash ? hash + 1 : "", half, whose);
}
