/* SPDX-License-Identifier: MIT */
/* What the VMM and its guest have to agree about; the guest is assembly. */
#ifndef SWIFTGIC_EXAMPLES_GUEST_H
#define SWIFTGIC_EXAMPLES_GUEST_H

/* Addresses of the guest. The image is at the beginning of its memory. */
#define GICD_BASE      0x08000000
#define ITS_BASE       0x08080000
#define GICR_BASE      0x080a0000
#define REPORT_BASE    0x09000000 /* a write of 8 bytes: LPIs, timer interrupts */
#define RAM_BASE       0x40000000
#define RAM_BYTES      0x70000
#define VECTORS_OFFSET 0x800
#define START_OFFSET   0x1000 /* in the image: the first instruction */
#define DEVICE_TABLE   (RAM_BASE + 0x10000)
#define COLLECTIONS    (RAM_BASE + 0x20000)
#define LPI_CONFIG     (RAM_BASE + 0x30000)
#define LPI_PENDING    (RAM_BASE + 0x40000)
#define ITT	       (RAM_BASE + 0x50000)
#define COUNTS	       (RAM_BASE + 0x60000) /* timer interrupts, LPIs */

#define GITS_TRANSLATER 0x10040 /* in the ITS: where a device writes an MSI */
#define DEVICE_ID	7
#define EVENT_ID	3
#define LPI_INTID	8192
#define TIMER_INTID	27 /* the virtual timer's PPI */

#endif
