/* SPDX-License-Identifier: MIT */
/* What the files of the library share, and nobody else sees. */
#ifndef SWIFTGIC_INTERNAL_H
#define SWIFTGIC_INTERNAL_H

#include "regs.h"
#include "swiftgic.h"

/**
 * struct sgic_state - see swiftgic.h
 * @shape:	the machine; @shape.mpidrs is @mpidrs
 * @mpidrs:	owned, @shape.nr_vcpus of them; room for SGIC_MAX_VCPUS
 * @regs:	sgic_regs_fill() of @shape for a save; owned
 * @values:	of each register, by slot
 * @nr:		registers; 0 if the state is empty
 * @room:	registers that @regs and @values have room for
 * @first_vcpu:	slot of vCPU 0's first register
 * @per_vcpu:	registers of each vCPU, which follow one another
 * @per_its:	registers of each ITS, likewise
 */
struct sgic_state {
	struct sgic_shape shape;
	uint64_t mpidrs[SGIC_MAX_VCPUS];
	struct sgic_reg *regs;
	uint64_t *values;
	size_t nr;
	size_t room;
	size_t first_vcpu;
	size_t per_vcpu;
	size_t per_its;
};

/*
 * Make @state one of @shape, with all values 0. Allocates only if @state has
 * less room than it takes. On failure (-ENOMEM) @state is as it was.
 */
int sgic_state_shape(struct sgic_state *state, const struct sgic_shape *shape);

/* The same machine? MPIDRs too. */
bool sgic_shape_equal(const struct sgic_shape *a, const struct sgic_shape *b);

/*
 * Fill @error, which may be NULL, with how the shapes differ, and return
 * -EXDEV. @whose_a and @whose_b: "the snapshot", "this machine".
 */
int sgic_fail_shape(struct sgic_error *error, const struct sgic_shape *a,
		    const char *whose_a, const struct sgic_shape *b,
		    const char *whose_b);

/* "160 vCPUs, 288 interrupts, 5 priority bits, LPIs, 1 ITS" */
void sgic_shape_describe(const struct sgic_shape *shape, char *buf, size_t len);

/* The Makefile and sgic_version() take it from here. */
#define SGIC_VERSION "0.1.0"

/* Fill @error, which may be NULL, and return @err. No register is named. */
int sgic_fail(struct sgic_error *error, enum sgic_step step, int err,
	      const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same; the message ends with ": " and the text of the errno. */
int sgic_fail_errno(struct sgic_error *error, enum sgic_step step, int err,
		    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * The same, about a register: the message is "<what> <its name>: <errno>".
 */
int sgic_fail_reg(struct sgic_error *error, enum sgic_step step, int err,
		  const struct sgic_reg *reg, const char *what);

#endif
