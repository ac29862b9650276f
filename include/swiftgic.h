/* SPDX-License-Identifier: MIT */
/*
 * libswiftgic: save and restore the GICv3 and the ITS of a KVM/arm64 VM.
 *
 * The VMM keeps its own file descriptors; the library reads and writes the
 * interrupt controller's state through them, in batches where the kernel has
 * KVM_DEV_ARM_VGIC_GRP_BATCH_REGS and one register a call where it has not.
 *
 *	struct sgic_device_config config = {
 *		.size = sizeof(config),
 *		.gic_fd = gic_fd, .its_fds = &its_fd, .nr_its = 1,
 *		.mpidrs = mpidrs, .nr_vcpus = nr_vcpus,
 *	};
 *	struct sgic_device *device;
 *	struct sgic_state *state = sgic_state_new();
 *	struct sgic_error error;
 *
 *	if (sgic_device_new(&config, &device, &error) ||
 *	    sgic_device_save(device, state, &error) ||
 *	    sgic_state_write(state, file, &error))
 *		fprintf(stderr, "%s\n", error.message);
 *
 * Return values: functions that return int return 0, or a negative errno;
 * those that say otherwise, say so. The library prints nothing, never exits,
 * and has no globals.
 *
 * Errors: the last argument of a call that can fail in more than one way. It
 * may be NULL. It is written on failure only.
 *
 * Threads: calls on different objects may run at the same time. Calls on one
 * object have to be serialised by the caller, except that any number of
 * threads may read one state.
 */
#ifndef SWIFTGIC_H
#define SWIFTGIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sgic_device;
struct sgic_state;

/**
 * sgic_version() - the library's version, "MAJOR.MINOR.PATCH"
 *
 * Return: a constant string.
 */
const char *sgic_version(void);

/* Errors */

/* What was being done when a call failed */
enum sgic_step {
	SGIC_STEP_ARGUMENT = 1,	  /* the caller's arguments */
	SGIC_STEP_MEMORY,	  /* allocating memory */
	SGIC_STEP_PROBE,	  /* asking the device what it has */
	SGIC_STEP_TOPOLOGY,	  /* MPIDRs against the redistributors */
	SGIC_STEP_SHAPE,	  /* the state's machine against the device's */
	SGIC_STEP_PENDING_TABLES, /* flushing LPI pending bits to guest memory */
	SGIC_STEP_ITS_TABLES,	  /* ITS tables to or from guest memory */
	SGIC_STEP_ITS_REGISTER,	  /* a GITS_ register */
	SGIC_STEP_REGISTER,	  /* a register of GICD, GICR, ICC or ICH */
	SGIC_STEP_FILE,		  /* reading or writing a snapshot's bytes */
	SGIC_STEP_FORMAT,	  /* a snapshot's content */
};

/**
 * struct sgic_error - why a call failed
 * @err:	the negative errno that the call returned
 * @step:	what was being done
 * @touched:	a restore had begun to write: the VGIC holds a mixture
 * @vcpu:	index of the vCPU concerned, or -1
 * @its:	index of the ITS concerned, or -1
 * @group:	KVM_DEV_ARM_VGIC_GRP_* of the register concerned, or 0
 * @attr:	the register, as struct kvm_device_attr takes it
 * @message:	one line without a line feed: step, register, vCPU, errno
 */
struct sgic_error {
	int err;
	enum sgic_step step;
	bool touched;
	int32_t vcpu;
	int32_t its;
	uint32_t group;
	uint64_t attr;
	char message[256];
};

/* The device */

enum {
	/* One register a call, on kernels with the batch call too */
	SGIC_DEVICE_NO_BATCH = 1,
};

/**
 * struct sgic_device_config - the VMM's VGIC
 * @size:	sizeof(struct sgic_device_config), so that fields can be added
 * @flags:	SGIC_DEVICE_*
 * @gic_fd:	the KVM_DEV_TYPE_ARM_VGIC_V3 device, initialised
 *		(KVM_DEV_ARM_VGIC_CTRL_INIT); borrowed: it has to stay open
 *		until sgic_device_free(), which does not close it
 * @its_fds:	the KVM_DEV_TYPE_ARM_VGIC_ITS devices, borrowed likewise
 * @nr_its:	how many; 0 if the VM has none. One that is left out is not
 *		part of the state, and a restore leaves it alone.
 * @mpidrs:	MPIDR_EL1 of each vCPU as KVM_GET_ONE_REG reads it, in an order
 *		that is the same at save and restore; bits outside of the
 *		affinity fields are ignored. Copied.
 * @nr_vcpus:	how many: all vCPUs of the VM, 1 to 512
 */
struct sgic_device_config {
	size_t size;
	uint32_t flags;
	int gic_fd;
	const int *its_fds;
	uint32_t nr_its;
	const uint64_t *mpidrs;
	uint32_t nr_vcpus;
};

/**
 * sgic_device_new() - the interrupt controller of one VM
 *
 * Finds out the number of interrupts, the priority bits, and whether there
 * are LPIs, EL2 and the batch call; checks each MPIDR against GICR_TYPER of
 * the redistributor that KVM finds by it. Changes nothing. All memory that a
 * save or a restore needs is allocated here.
 *
 * Return: 0 and the device in *@device, to be freed by sgic_device_free();
 *	-EINVAL	the arguments: an MPIDR twice, no vCPU, too many, a bad flag;
 *	-EINVAL, -ENXIO	the kernel knows no vCPU of one of the MPIDRs;
 *	-EXDEV	GICR_TYPER has another affinity than the MPIDR, or a vCPU is
 *		missing: the processor numbers in GICR_TYPER are not 0 to
 *		@nr_vcpus - 1, or no redistributor is the last (nor is one if
 *		they have no address yet);
 *	-EBUSY	a vCPU is in an ioctl, or the VGIC is not initialised;
 *	-ENODEV	@gic_fd is no VGICv3, or one of @its_fds no ITS;
 *	-EOPNOTSUPP	the kernel's VGIC is none that the library knows;
 *	-ENOMEM	out of memory.
 */
int sgic_device_new(const struct sgic_device_config *config,
		    struct sgic_device **device, struct sgic_error *error);

/* Frees what the library allocated; NULL is fine. Closes nothing. */
void sgic_device_free(struct sgic_device *device);

/**
 * sgic_device_batch_limit() - entries a batch call takes on this kernel
 *
 * Return: the limit, or 0 if the kernel has no batch call.
 */
uint32_t sgic_device_batch_limit(const struct sgic_device *device);

/**
 * sgic_device_save() - read the whole state
 *
 * Flushes the LPI pending bits and the ITS tables to guest memory, then reads
 * all registers. Guest memory has to be saved after this call, for it is part
 * of the state. All vCPUs have to be out of KVM_RUN, and no device may raise
 * an interrupt meanwhile: it might be in a part of the state only.
 *
 * A save into a state that held one of the same machine allocates nothing.
 *
 * Return: 0, or on failure, with @state as it was:
 *	-EBUSY	a vCPU is running (or in another ioctl);
 *	-EXDEV	the affinity in a GICR_TYPER is not the MPIDR that was used;
 *	-EFAULT	memory is missing where the LPI or ITS tables are;
 *	-ENOMEM	out of memory;
 *	and whatever KVM answers, named by the error.
 */
int sgic_device_save(struct sgic_device *device, struct sgic_state *state,
		     struct sgic_error *error);

/**
 * sgic_device_restore() - write the whole state
 *
 * The machine has to be of the state's shape: the same MPIDRs in the same
 * order, interrupts, priority bits, ITSs. What it holds is replaced: it may
 * be a new VM, or one that has run. Guest memory has to be there already. All
 * vCPUs have to be out of KVM_RUN, and no device may raise an interrupt.
 *
 * Order (kernel documents arm-vgic-v3.rst and arm-vgic-its.rst): each ITS is
 * reset; distributor, redistributors and CPU interfaces; then for
 * each ITS its registers, its tables, GITS_CTLR.
 *
 * A register that cannot be written does not keep the other registers of its
 * device from it, as in a batch call; the error is that of the first. The ITSs
 * then stay as reset, disabled, and so does an ITS whose tables cannot be read
 * and those after it.
 *
 * Return: 0, or on failure:
 *	-EINVAL	@state is empty;
 *	-EXDEV	the shapes differ; nothing has been written;
 *	-EBUSY	a vCPU is running;
 *	-EFAULT	memory is missing where the ITS tables are;
 *	and whatever KVM answers, named by the error. Nothing has been written
 *	unless @error->touched.
 */
int sgic_device_restore(struct sgic_device *device,
			const struct sgic_state *state,
			struct sgic_error *error);

/**
 * struct sgic_stats - the last save or restore that succeeded or failed
 * @batched:	it used the batch call
 * @calls:	ioctls for registers
 * @registers:	registers read or written; in a save with GICR_TYPER of each
 *		vCPU, which tells whose registers they are
 * @ns:		nanoseconds (CLOCK_MONOTONIC), all in all
 * @tables_ns:	of these, flushing or reading tables in guest memory
 */
struct sgic_stats {
	bool batched;
	uint32_t calls;
	uint32_t registers;
	uint64_t ns;
	uint64_t tables_ns;
};

void sgic_device_stats(const struct sgic_device *device,
		       struct sgic_stats *stats);

/* A state: the values of all registers of one machine */

/**
 * sgic_state_new() - an empty state
 *
 * Return: NULL if out of memory.
 */
struct sgic_state *sgic_state_new(void);
void sgic_state_free(struct sgic_state *state);

/**
 * struct sgic_machine - what a state is of
 * @nr_vcpus:	vCPUs; 0 if the state is empty
 * @nr_irqs:	SGIs, PPIs and SPIs
 * @nr_its:	ITSs
 * @pri_bits:	priority bits of a CPU interface
 * @nr_lrs:	list registers of a nested guest; 0 if !@el2
 * @lpis:	the redistributors have LPIs
 * @el2:	the vCPUs have EL2
 */
struct sgic_machine {
	uint32_t nr_vcpus;
	uint32_t nr_irqs;
	uint32_t nr_its;
	uint32_t pri_bits;
	uint32_t nr_lrs;
	bool lpis;
	bool el2;
};

void sgic_state_machine(const struct sgic_state *state,
			struct sgic_machine *machine);

/* The affinity of a vCPU, as in MPIDR_EL1; UINT64_MAX if there is none. */
uint64_t sgic_state_mpidr(const struct sgic_state *state, uint32_t vcpu);

/**
 * struct sgic_value - one register's value
 * @group:	KVM_DEV_ARM_VGIC_GRP_*
 * @attr:	as struct kvm_device_attr takes it
 * @val:	32 bits, or 64 of a CPU interface's register or an ITS's
 * @vcpu:	index of its vCPU, or -1
 * @its:	index of its ITS, or -1
 * @name:	"GICD_ISENABLER3", "GICR_CTLR (vCPU 5)", "GITS_BASER1 (ITS 0)"
 */
struct sgic_value {
	uint32_t group;
	uint64_t attr;
	uint64_t val;
	int32_t vcpu;
	int32_t its;
	char name[56];
};

/* How many registers a state has; 0 if it is empty. */
size_t sgic_state_count(const struct sgic_state *state);

/* Register number @i, in the order of a save. -ERANGE beyond the last. */
int sgic_state_value(const struct sgic_state *state, size_t i,
		     struct sgic_value *value);

/* The register of that name, as sgic_value.name spells it. -ENOENT if none. */
int sgic_state_find(const struct sgic_state *state, const char *name,
		    struct sgic_value *value);

/**
 * struct sgic_irq - one SGI, PPI or SPI
 * @intid:	0 to nr_irqs - 1
 * @vcpu:	whose it is, if it is private (INTID below 32); else -1
 * @priority:	0 to 255, 0 the highest
 * @group1:	group 1, else group 0
 * @edge:	edge-triggered, else level
 * @enabled:	enabled
 * @latched:	its pending latch (GICD_ISPENDR) is set
 * @line:	its line is high (LEVEL_INFO)
 * @active:	active
 * @any:	GICD_IROUTER.Interrupt_Routing_Mode: to any vCPU
 * @target:	affinity that it is routed to (GICD_IROUTER), of an SPI
 */
struct sgic_irq {
	uint32_t intid;
	int32_t vcpu;
	uint8_t priority;
	bool group1;
	bool edge;
	bool enabled;
	bool latched;
	bool line;
	bool active;
	bool any;
	uint64_t target;
};

/* @vcpu is ignored from INTID 32 on. -ERANGE if there is no such interrupt. */
int sgic_state_irq(const struct sgic_state *state, uint32_t intid,
		   uint32_t vcpu, struct sgic_irq *irq);

/**
 * sgic_state_compare() - the differences of two states of one machine
 * @each:	called with each register that differs, in order; may be NULL.
 *		A return value other than 0 ends the walk and is returned.
 *
 * Return: 0 if they are equal, 1 if not; -EXDEV if they are of machines of
 * different shape, which @error then describes.
 */
int sgic_state_compare(const struct sgic_state *a, const struct sgic_state *b,
		       int (*each)(const struct sgic_value *a,
				   const struct sgic_value *b, void *data),
		       void *data, struct sgic_error *error);

/* Snapshots: the bytes of a state; swiftgic-snapshot(5) has their format */

/* Bytes of the state's snapshot; 0 if it is empty. */
size_t sgic_state_size(const struct sgic_state *state);

/**
 * sgic_state_store() - write a snapshot to memory
 * @size:	of @buf; sgic_state_size() is enough
 *
 * Equal states give equal bytes.
 *
 * Return: 0; -EINVAL if the state is empty; -ENOSPC if @size is too small.
 */
int sgic_state_store(const struct sgic_state *state, void *buf, size_t size,
		     struct sgic_error *error);

/**
 * sgic_state_load() - read a snapshot from memory
 *
 * Return: 0, or on failure, with @state as it was:
 *	-ENOMSG	no snapshot of swiftgic;
 *	-EPROTONOSUPPORT	of a newer version, or with unknown registers;
 *	-ENODATA	truncated;
 *	-EMSGSIZE	longer than it says, or than any machine's can be;
 *	-EBADMSG	corrupt: the checksum or the content is wrong;
 *	-ENOMEM	out of memory.
 */
int sgic_state_load(struct sgic_state *state, const void *buf, size_t size,
		    struct sgic_error *error);

/**
 * sgic_state_write() - write a snapshot to a file descriptor, at its offset
 *
 * Goes on after a short write or an interruption.
 *
 * Return: 0; -EINVAL if the state is empty; -ENOMEM; what write() fails with,
 * when a part of the snapshot may have been written.
 */
int sgic_state_write(const struct sgic_state *state, int fd,
		     struct sgic_error *error);

/**
 * sgic_state_read() - read a snapshot from a file descriptor
 *
 * Reads the snapshot's bytes and not one more, so that a snapshot can stand
 * in a longer stream. Goes on after a short read or an interruption, and
 * allocates nothing before the length has been checked.
 *
 * Return: as sgic_state_load(), with -ENODATA if the file ends too early; or
 * what read() fails with. A part of the file may have been read.
 */
int sgic_state_read(struct sgic_state *state, int fd, struct sgic_error *error);

#ifdef __cplusplus
}
#endif

#endif
