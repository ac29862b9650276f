/* SPDX-License-Identifier: MIT */
/* Registers that the benchmark and the tests know by name. */
#ifndef SWIFTGIC_TOOLS_GIC_H
#define SWIFTGIC_TOOLS_GIC_H

/* Offsets: GICv3 architecture specification (IHI 0069), 12.8 and 12.10 */
#define GICD_CTLR      0x0000
#define GICD_IIDR      0x0008
#define GIC_IGROUPR    0x0080
#define GIC_ISENABLER  0x0100
#define GIC_ICENABLER  0x0180
#define GIC_ISPENDR    0x0200
#define GIC_ICPENDR    0x0280
#define GIC_ISACTIVER  0x0300
#define GIC_ICACTIVER  0x0380
#define GIC_IPRIORITYR 0x0400
#define GIC_ITARGETSR  0x0800
#define GICD_ICFGR     0x0c00
#define GICD_IGRPMODR  0x0d00
#define GICD_IROUTER   0x6000
#define GICR_TYPER     0x0008
#define GICR_PROPBASER 0x0070
#define GICR_PENDBASER 0x0078
#define GICR_SGI_BASE  0x10000

/* The "instr" field of a CPU_SYSREGS attribute */
#define SYSREG_EL(op1, crn, crm, op2) \
	(3U << 14 | (op1) << 11 | (crn) << 7 | (crm) << 3 | (op2))
#define SYSREG(crn, crm, op2) SYSREG_EL(0, crn, crm, op2)
#define ICC_PMR_EL1	      SYSREG(4, 6, 0)
#define ICC_BPR0_EL1	      SYSREG(12, 8, 3)
#define ICC_AP0R0_EL1	      SYSREG(12, 8, 4)
#define ICC_AP0R3_EL1	      SYSREG(12, 8, 7)
#define ICC_AP1R0_EL1	      SYSREG(12, 9, 0)
#define ICC_AP1R3_EL1	      SYSREG(12, 9, 3)
#define ICC_BPR1_EL1	      SYSREG(12, 12, 3)
#define ICC_IGRPEN0_EL1	      SYSREG(12, 12, 6)
#define ICC_IGRPEN1_EL1	      SYSREG(12, 12, 7)
#define ICC_CTLR_EL1	      SYSREG(12, 12, 4)
#define ICC_SRE_EL1	      SYSREG(12, 12, 5)
#define ICH_VTR_EL2	      SYSREG_EL(4, 12, 11, 1)
#define ICH_LR0_EL2	      SYSREG_EL(4, 12, 12, 0)

#endif
