/* SPDX-License-Identifier: MIT */
/*
 * GICv3 state to fill a VM with: a value for each register of the table,
 * different for every vCPU and interrupt, and all of it made from one seed.
 */
#ifndef SWIFTGIC_TOOLS_STATE_H
#define SWIFTGIC_TOOLS_STATE_H

#include <stdint.h>

#include "regs.h"

enum state_kind {
	STATE_KEEP,  /* leave the register as it is */
	STATE_LOOSE, /* the kernel may keep only a part of the value */
	STATE_EXACT, /* the register must read back as this value */
};

/* A pseudo-random number made of the seed and three coordinates */
uint64_t state_random(uint32_t seed, uint32_t kind, uint32_t vcpu,
		      uint32_t index);

/* The value that @reg, an entry of a restore, is to have */
enum state_kind state_value(const struct sgic_shape *shape, uint32_t seed,
			    const struct sgic_reg *reg, uint64_t *val);

#endif
