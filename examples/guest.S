/* SPDX-License-Identifier: MIT */
/*
 * The guest of vmm.c. It maps an LPI, starts its timer, and sleeps; it counts
 * its interrupts in memory and reports the counts after each. It has no stack:
 * nothing is in a register while it sleeps. The MMU stays off.
 *
 * Registers: GICv3 architecture specification (IHI 0069), chapter 12; commands
 * of the ITS: 5.3.
 */
#include "guest.h"

#define ICC_PMR_EL1	S3_0_C4_C6_0
#define ICC_IAR1_EL1	S3_0_C12_C12_0
#define ICC_EOIR1_EL1	S3_0_C12_C12_1
#define ICC_IGRPEN1_EL1	S3_0_C12_C12_7

#define GICD_CTLR	0x0000
#define GICR_CTLR	0x0000
#define GICR_PROPBASER	0x0070
#define GICR_PENDBASER	0x0078
#define GICR_SGI_FRAME	0x10000
#define GICR_IGROUPR0	0x0080
#define GICR_ISENABLER0	0x0100
#define GICR_IPRIORITYR	0x0400
#define GITS_CTLR	0x0000
#define GITS_CBASER	0x0080
#define GITS_CWRITER	0x0088
#define GITS_BASER0	0x0100
#define GITS_BASER1	0x0108

#define VALID		(1 << 63)
#define PAGES_64K	(2 << 8)

	.section .rodata.guest, "a"
	.balign	4096
	.globl	guest_image, guest_image_end
guest_image:
	/* The ITS's queue: at the beginning, as KVM wants it on 64 KiB */
queue:
	/* MAPD: the device, 5 bits of events, where its translations go */
	.quad	0x08 | DEVICE_ID << 32, 4, VALID | ITT, 0
	/* MAPC: collection 0 is redistributor 0 */
	.quad	0x09, 0, VALID, 0
	/* MAPTI: the device's event is the LPI, in collection 0 */
	.quad	0x0a | DEVICE_ID << 32, EVENT_ID | LPI_INTID << 32, 0, 0
queue_end:

	/* The vectors: number 5 is an IRQ at this exception level. */
	.org	guest_image + VECTORS_OFFSET
	.rept	5
	b	.
	.balign	0x80
	.endr
	b	irq
	.balign	0x80
	.rept	10
	b	.
	.balign	0x80
	.endr

	.org	guest_image + START_OFFSET
	adr	x0, guest_image + VECTORS_OFFSET
	msr	vbar_el1, x0

	ldr	x0, =GICD_BASE
	mov	w1, #0x12			/* ARE, EnableGrp1 */
	str	w1, [x0, #GICD_CTLR]

	/* LPIs; the byte is a priority and the enable bit. */
	ldr	x1, =LPI_CONFIG
	mov	w2, #0xa1
	strb	w2, [x1]
	ldr	x0, =GICR_BASE
	orr	x1, x1, #15			/* 16 bits of INTID */
	str	x1, [x0, #GICR_PROPBASER]
	ldr	x1, =LPI_PENDING
	str	x1, [x0, #GICR_PENDBASER]
	mov	w1, #1
	str	w1, [x0, #GICR_CTLR]

	/* The timer's PPI, which gives way to LPIs */
	add	x0, x0, #GICR_SGI_FRAME
	mov	w1, #0xc0
	strb	w1, [x0, #(GICR_IPRIORITYR + TIMER_INTID)]
	mov	w1, #(1 << TIMER_INTID)
	str	w1, [x0, #GICR_IGROUPR0]
	str	w1, [x0, #GICR_ISENABLER0]

	mov	x1, #0xff
	msr	ICC_PMR_EL1, x1
	mov	x1, #1
	msr	ICC_IGRPEN1_EL1, x1
	isb

	/* The ITS runs the commands below. */
	ldr	x0, =ITS_BASE
	ldr	x1, =VALID | PAGES_64K | DEVICE_TABLE
	str	x1, [x0, #GITS_BASER0]
	ldr	x1, =VALID | PAGES_64K | COLLECTIONS
	str	x1, [x0, #GITS_BASER1]
	ldr	x1, =VALID | RAM_BASE
	str	x1, [x0, #GITS_CBASER]
	mov	w1, #1
	str	w1, [x0, #GITS_CTLR]
	mov	x1, #(queue_end - queue)
	str	x1, [x0, #GITS_CWRITER]

	bl	start_timer
	msr	daifclr, #2
sleep:
	wfi
	b	sleep

start_timer:
	mrs	x0, cntfrq_el0
	lsr	x0, x0, #7			/* 8 ms */
	msr	cntv_tval_el0, x0
	mov	x0, #1
	msr	cntv_ctl_el0, x0
	isb
	ret

irq:
	mrs	x2, ICC_IAR1_EL1
	ldr	x3, =COUNTS
	cmp	w2, #TIMER_INTID
	b.eq	1f
	cmp	w2, #LPI_INTID
	b.ne	3f				/* 1023: it has gone */
	ldr	w0, [x3, #4]
	add	w0, w0, #1
	str	w0, [x3, #4]
	b	2f
1:	ldr	w0, [x3]
	add	w0, w0, #1
	str	w0, [x3]
	bl	start_timer
2:	msr	ICC_EOIR1_EL1, x2
	ldr	x0, [x3]
	ldr	x1, =REPORT_BASE
	str	x0, [x1]
3:	eret

	.ltorg

guest_image_end:

	.section .note.GNU-stack, "", %progbits
