/* SPDX-License-Identifier: MIT */
/*
 * An ITS with mapped LPIs, driven without a guest: the tables and the command
 * queue are in the VM's memory, and writing GITS_CWRITER as a device attribute
 * runs the commands, as the guest's write does. No vCPU may be in an ioctl.
 *
 * LPI number i is event i % ITS_EVENTS of device i / ITS_EVENTS, INTID 8192 + i,
 * in the collection of vCPU i % the number of vCPUs.
 *
 * Functions that return int return 0 or a negative errno.
 */
#ifndef SWIFTGIC_TOOLS_ITS_H
#define SWIFTGIC_TOOLS_ITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vm.h"

#define ITS_EVENTS     32   /* a device; a power of 2 */
#define ITS_MAX_LPIS   8192 /* of the 57344 that 16 bits of INTID have room for */
#define ITS_FIRST_LPI  8192
#define ITS_TRANSLATER (VM_ITS_BASE + 0x10040)

/* Registers: GICv3 architecture specification (IHI 0069), 12.18 */
#define GITS_CTLR    0x0000
#define GITS_CBASER  0x0080
#define GITS_CWRITER 0x0088
#define GITS_CREADR  0x0090
#define GITS_BASER0  0x0100
#define GITS_BASER1  0x0108

struct its {
	struct vm *vm;
	uint32_t nr_lpis;
	uint32_t tail; /* where the next command goes, bytes in the queue */
	int err;       /* of the first command that could not be given */
};

/* How much memory the VM needs for its_start() */
size_t its_ram_bytes(uint32_t nr_vcpus);

/*
 * Set up the tables, enable the distributor, the redistributors' LPIs and the
 * ITS, and map a collection for each vCPU. Nothing is mapped to an LPI yet;
 * its_map() does that, for all of them.
 */
int its_start(struct its *its, struct vm *vm, uint32_t nr_lpis);
int its_map(struct its *its);

/* Registers of the ITS, and KVM_DEV_ARM_ITS_* of its control group */
int its_get(const struct its *its, uint32_t offset, uint64_t *val);
int its_set(const struct its *its, uint32_t offset, uint64_t val);
int its_ctrl(const struct its *its, uint64_t attr);

/* After a reset of the ITS: its registers again, and enabled */
int its_set_registers(struct its *its);

/* GICR_CTLR.EnableLPIs */
int its_enable_lpis(const struct its *its, uint32_t vcpu, bool enable);

/*
 * Give a command. They are run when the queue is full, and by its_run(), which
 * returns what went wrong since the last time. An error of the ITS is none:
 * KVM does not report it.
 */
void its_mapd(struct its *its, uint32_t device, bool valid);
void its_mapc(struct its *its, uint32_t collection, uint32_t vcpu, bool valid);
void its_mapti(struct its *its, uint32_t lpi);
void its_movi(struct its *its, uint32_t lpi, uint32_t collection);
void its_movall(struct its *its, uint32_t from, uint32_t to);
void its_discard(struct its *its, uint32_t lpi);
void its_clear(struct its *its, uint32_t lpi);
void its_inv(struct its *its, uint32_t lpi);
int its_run(struct its *its);

/* The enable bit of an LPI in the table; its_inv() has KVM read it */
void its_config(struct its *its, uint32_t lpi, bool enabled);

/* The bit of an LPI in a vCPU's pending table, and the table emptied */
bool its_pending_bit(const struct its *its, uint32_t vcpu, uint32_t lpi);
void its_clear_pending_table(struct its *its, uint32_t vcpu);

/* The MSI of an LPI; KVM_SIGNAL_MSI, which is 1 if it was injected */
struct kvm_msi its_msi(uint32_t lpi);
int its_signal(const struct vm *vm, uint32_t lpi);

#endif
