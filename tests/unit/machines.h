/* SPDX-License-Identifier: MIT */
/* Machines of every kind, and states of them that are always the same */
#ifndef SWIFTGIC_TESTS_UNIT_MACHINES_H
#define SWIFTGIC_TESTS_UNIT_MACHINES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "internal.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* KVM's own: 16 vCPUs in Aff0 */
static uint64_t kvm_mpidrs[SGIC_MAX_VCPUS];

/* All affinity fields, in no order */
static const uint64_t sparse_mpidrs[] = { 0x1200345678, 0, 0xff00ffffff };

static const struct machine {
	const char *name;
	struct sgic_shape shape;
} machines[] = {
	{ "small",
	  { .nr_vcpus = 2,
	    .mpidrs = kvm_mpidrs,
	    .nr_irqs = 64,
	    .pri_bits = 5 } },
	{ "its",
	  { .nr_vcpus = 3,
	    .mpidrs = sparse_mpidrs,
	    .nr_irqs = 96,
	    .pri_bits = 5,
	    .lpis = true,
	    .nr_its = 2 } },
	/* has each row of the register table */
	{ "nested",
	  { .nr_vcpus = 2,
	    .mpidrs = kvm_mpidrs,
	    .nr_irqs = 64,
	    .pri_bits = 6,
	    .lpis = true,
	    .nr_its = 1,
	    .el2 = true,
	    .nr_lrs = 4 } },
	{ "160-vcpus",
	  { .nr_vcpus = 160,
	    .mpidrs = kvm_mpidrs,
	    .nr_irqs = 288,
	    .pri_bits = 5,
	    .lpis = true,
	    .nr_its = 1 } },
	{ "largest",
	  { .nr_vcpus = SGIC_MAX_VCPUS,
	    .mpidrs = kvm_mpidrs,
	    .nr_irqs = SGIC_MAX_IRQS,
	    .pri_bits = 7,
	    .lpis = true,
	    .nr_its = SGIC_MAX_ITS,
	    .el2 = true,
	    .nr_lrs = SGIC_MAX_LRS } },
};

static inline int fill_kvm_mpidrs(void **state)
{
	(void)state;
	for (size_t i = 0; i < SGIC_MAX_VCPUS; i++)
		kvm_mpidrs[i] = i % 16 | i / 16 << 8;
	return 0;
}

static inline uint64_t splitmix64(uint64_t *x)
{
	uint64_t z = *x += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/*
 * Values that KVM could have, as far as their width goes. They are made from
 * what the registers are, whatever their order.
 */
static inline void fill_values(struct sgic_state *state, uint64_t seed)
{
	const struct sgic_reg *reg;
	uint64_t x;

	for (size_t i = 0; i < state->nr; i++) {
		reg = &state->regs[i];
		x = seed << 32 | reg->group << 16 | reg->its;
		x = splitmix64(&x) ^ reg->attr;
		state->values[i] = splitmix64(&x);
		if (!sgic_reg_wide(reg))
			state->values[i] >>= 32;
	}
}

static inline struct sgic_state *new_machine(const struct sgic_shape *shape,
					     uint64_t seed)
{
	struct sgic_state *state = sgic_state_new();

	assert_non_null(state);
	assert_null(sgic_shape_check(shape));
	assert_int_equal(sgic_state_shape(state, shape), 0);
	fill_values(state, seed);
	return state;
}

/* A shape that KVM could have; @mpidrs has room for SGIC_MAX_VCPUS. */
static inline struct sgic_shape random_shape(uint64_t *seed, uint64_t *mpidrs)
{
	struct sgic_shape shape = {
		.nr_vcpus = 1 + splitmix64(seed) % 40,
		.mpidrs = mpidrs,
		.nr_irqs = 32 * (2 + splitmix64(seed) % 30),
		.pri_bits = 5 + splitmix64(seed) % 3,
		.lpis = splitmix64(seed) % 2,
		.el2 = splitmix64(seed) % 2,
	};

	if (shape.lpis)
		shape.nr_its = splitmix64(seed) % (SGIC_MAX_ITS + 1);
	if (shape.el2)
		shape.nr_lrs = 1 + splitmix64(seed) % SGIC_MAX_LRS;
	/* distinct by their low byte */
	for (uint32_t i = 0; i < shape.nr_vcpus; i++)
		mpidrs[i] = (splitmix64(seed) & SGIC_MPIDR_MASK & ~0xffULL) | i;
	return shape;
}

#endif
