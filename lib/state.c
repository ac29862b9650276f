// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "vgic.h"

#define GRP_DIST   KVM_DEV_ARM_VGIC_GRP_DIST_REGS
#define GRP_REDIST KVM_DEV_ARM_VGIC_GRP_REDIST_REGS
#define GRP_LEVEL  KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO

/*
 * Of interrupt 0; GICv3 spec (IHI 0069) 12.8. Those of the private interrupts
 * are in the redistributor, at the same offsets in its SGI frame.
 */
#define IGROUPR	   0x0080
#define ISENABLER  0x0100
#define ISPENDR	   0x0200
#define ISACTIVER  0x0300
#define IPRIORITYR 0x0400
#define ICFGR	   0x0c00
#define IROUTER	   0x6000
#define SGI_FRAME  0x10000

#define IROUTER_ANY (1U << 31) /* Interrupt_Routing_Mode */

struct sgic_state *sgic_state_new(void)
{
	return calloc(1, sizeof(struct sgic_state));
}

void sgic_state_free(struct sgic_state *state)
{
	if (!state)
		return;
	free(state->regs);
	free(state->values);
	free(state);
}

int sgic_state_shape(struct sgic_state *state, const struct sgic_shape *shape)
{
	size_t nr = sgic_regs_count(shape, SGIC_SAVE);
	struct sgic_reg *regs;
	uint64_t *values;

	if (sgic_shape_equal(&state->shape, shape)) {
		memset(state->values, 0, nr * sizeof(*values));
		return 0;
	}
	if (nr > state->room) {
		regs = malloc(nr * sizeof(*regs));
		values = malloc(nr * sizeof(*values));
		if (!regs || !values) {
			free(regs);
			free(values);
			return -ENOMEM;
		}
		free(state->regs);
		free(state->values);
		state->regs = regs;
		state->values = values;
		state->room = nr;
	}

	memcpy(state->mpidrs, shape->mpidrs,
	       shape->nr_vcpus * sizeof(*shape->mpidrs));
	state->shape = *shape;
	state->shape.mpidrs = state->mpidrs;
	if (!shape->el2)
		state->shape.nr_lrs = 0;
	state->nr = sgic_regs_fill(&state->shape, SGIC_SAVE, state->regs);
	memset(state->values, 0, nr * sizeof(*state->values));

	state->first_vcpu = state->nr;
	state->per_vcpu = 0;
	state->per_its = 0;
	for (size_t i = state->nr; i--;) {
		if (sgic_reg_has_vcpu(&state->regs[i])) {
			state->first_vcpu = i;
			state->per_vcpu += !state->regs[i].vcpu;
		} else if (sgic_reg_has_its(&state->regs[i])) {
			state->per_its += !state->regs[i].its;
		}
	}

	return 0;
}

/* Shapes */

/* 0 without EL2; with it there is one at least */
static uint32_t list_registers(const struct sgic_shape *shape)
{
	return shape->el2 ? shape->nr_lrs : 0;
}

/* Everything but the MPIDRs */
static bool kind_equal(const struct sgic_shape *a, const struct sgic_shape *b)
{
	return a->nr_vcpus == b->nr_vcpus && a->nr_irqs == b->nr_irqs &&
	       a->nr_its == b->nr_its && a->pri_bits == b->pri_bits &&
	       a->lpis == b->lpis && list_registers(a) == list_registers(b);
}

bool sgic_shape_equal(const struct sgic_shape *a, const struct sgic_shape *b)
{
	/* a shape of no vCPUs has no MPIDRs to point to */
	return kind_equal(a, b) &&
	       (!a->nr_vcpus || !memcmp(a->mpidrs, b->mpidrs,
					a->nr_vcpus * sizeof(*a->mpidrs)));
}

void sgic_shape_describe(const struct sgic_shape *shape, char *buf, size_t len)
{
	char el2[40] = "", its[24] = "";

	if (!shape->nr_vcpus) {
		snprintf(buf, len, "no machine");
		return;
	}
	if (shape->el2)
		snprintf(el2, sizeof(el2), ", EL2 with %u list register%s",
			 shape->nr_lrs, shape->nr_lrs == 1 ? "" : "s");
	if (shape->nr_its)
		snprintf(its, sizeof(its), ", %u ITS%s", shape->nr_its,
			 shape->nr_its == 1 ? "" : "s");
	snprintf(buf, len, "%u vCPU%s, %u interrupts, %u priority bits%s%s%s",
		 shape->nr_vcpus, shape->nr_vcpus == 1 ? "" : "s",
		 shape->nr_irqs, shape->pri_bits, shape->lpis ? ", LPIs" : "",
		 its, el2);
}

int sgic_fail_shape(struct sgic_error *error, const struct sgic_shape *a,
		    const char *whose_a, const struct sgic_shape *b,
		    const char *whose_b)
{
	char of_a[96], of_b[96];
	uint32_t i = 0;

	if (!error)
		return -EXDEV;
	if (!kind_equal(a, b)) {
		sgic_shape_describe(a, of_a, sizeof(of_a));
		sgic_shape_describe(b, of_b, sizeof(of_b));
		return sgic_fail(error, SGIC_STEP_SHAPE, -EXDEV,
				 "%s has %s; %s has %s", whose_a, of_a, whose_b,
				 of_b);
	}
	while (i + 1 < a->nr_vcpus && a->mpidrs[i] == b->mpidrs[i])
		i++;
	sgic_fail(error, SGIC_STEP_SHAPE, -EXDEV,
		  "vCPU %u has MPIDR %#llx in %s, %#llx in %s", i,
		  (unsigned long long)a->mpidrs[i], whose_a,
		  (unsigned long long)b->mpidrs[i], whose_b);
	error->vcpu = i;
	return -EXDEV;
}

void sgic_state_machine(const struct sgic_state *state,
			struct sgic_machine *machine)
{
	*machine = (struct sgic_machine){
		.nr_vcpus = state->shape.nr_vcpus,
		.nr_irqs = state->shape.nr_irqs,
		.nr_its = state->shape.nr_its,
		.pri_bits = state->shape.pri_bits,
		.nr_lrs = state->shape.nr_lrs,
		.lpis = state->shape.lpis,
		.el2 = state->shape.el2,
	};
}

uint64_t sgic_state_mpidr(const struct sgic_state *state, uint32_t vcpu)
{
	return vcpu < state->shape.nr_vcpus ? state->mpidrs[vcpu] : UINT64_MAX;
}

/* Registers */

size_t sgic_state_count(const struct sgic_state *state)
{
	return state->nr;
}

static void fill_value(const struct sgic_state *state, size_t i,
		       struct sgic_value *value)
{
	const struct sgic_reg *reg = &state->regs[i];

	value->group = reg->group;
	value->attr = reg->attr;
	value->val = state->values[i];
	value->vcpu = sgic_reg_has_vcpu(reg) ? reg->vcpu : -1;
	value->its = sgic_reg_has_its(reg) ? reg->its : -1;
	sgic_reg_name(reg, value->name, sizeof(value->name));
}

int sgic_state_value(const struct sgic_state *state, size_t i,
		     struct sgic_value *value)
{
	if (i >= state->nr)
		return -ERANGE;
	fill_value(state, i, value);
	return 0;
}

/* Slots @first up to @end are those that can have that name. */
static void name_range(const struct sgic_state *state, const char *name,
		       size_t *first, size_t *end)
{
	const char *whose = strstr(name, " (vCPU ");
	uint32_t vcpu;

	*first = 0;
	*end = state->nr;
	if (!whose)
		return;
	vcpu = strtoul(whose + strlen(" (vCPU "), NULL, 10);
	*end = 0;
	if (vcpu >= state->shape.nr_vcpus)
		return;
	*first = state->first_vcpu + vcpu * state->per_vcpu;
	*end = *first + state->per_vcpu;
}

int sgic_state_find(const struct sgic_state *state, const char *name,
		    struct sgic_value *value)
{
	char buf[sizeof(value->name)];
	size_t i, end;

	for (name_range(state, name, &i, &end); i < end; i++) {
		sgic_reg_name(&state->regs[i], buf, sizeof(buf));
		if (strcmp(buf, name))
			continue;
		fill_value(state, i, value);
		return 0;
	}

	return -ENOENT;
}

/* Interrupts */

/*
 * Slots @first up to @end are those of one vCPU or of the distributor.
 * The register is there, for the table has one of each kind for every
 * interrupt; SGIs alone have no configuration.
 */
struct bank {
	const struct sgic_state *state;
	size_t first;
	size_t end;
	bool private;
};

static uint32_t bank_value(const struct bank *bank, uint32_t group,
			   uint32_t offset)
{
	if (bank->private && group == GRP_DIST) {
		group = GRP_REDIST;
		offset += SGI_FRAME;
	}
	for (size_t i = bank->first; i < bank->end; i++)
		if (bank->state->regs[i].group == group &&
		    (uint32_t)bank->state->regs[i].attr == offset)
			return bank->state->values[i];
	return 0;
}

/* An interrupt's bits in the array of registers at @offset */
static uint32_t bank_field(const struct bank *bank, uint32_t offset,
			   uint32_t intid, uint32_t bits)
{
	uint32_t word = bank_value(bank, GRP_DIST,
				   offset + intid * bits / 32 * 4);

	return word >> intid * bits % 32 & ((1U << bits) - 1);
}

static bool bank_line(const struct bank *bank, uint32_t intid)
{
	return bank_value(bank, GRP_LEVEL, intid / 32 * 32) >> intid % 32 & 1;
}

int sgic_state_irq(const struct sgic_state *state, uint32_t intid,
		   uint32_t vcpu, struct sgic_irq *irq)
{
	struct bank bank = { .state = state, .private = intid < 32 };
	uint32_t low, high;

	if (intid >= state->shape.nr_irqs ||
	    (bank.private && vcpu >= state->shape.nr_vcpus))
		return -ERANGE;
	bank.end = state->first_vcpu;
	if (bank.private) {
		bank.first = state->first_vcpu + vcpu * state->per_vcpu;
		bank.end = bank.first + state->per_vcpu;
	}

	*irq = (struct sgic_irq){
		.intid = intid,
		.vcpu = bank.private ? (int32_t)vcpu : -1,
		.priority = bank_field(&bank, IPRIORITYR, intid, 8),
		.group1 = bank_field(&bank, IGROUPR, intid, 1),
		.edge = intid < 16 || bank_field(&bank, ICFGR, intid, 2) >> 1,
		.enabled = bank_field(&bank, ISENABLER, intid, 1),
		.latched = bank_field(&bank, ISPENDR, intid, 1),
		.line = bank_line(&bank, intid),
		.active = bank_field(&bank, ISACTIVER, intid, 1),
	};
	if (bank.private)
		return 0;
	low = bank_value(&bank, GRP_DIST, IROUTER + intid * 8);
	high = bank_value(&bank, GRP_DIST, IROUTER + intid * 8 + 4);
	irq->any = low & IROUTER_ANY;
	irq->target = ((uint64_t)high << 32 | low) & SGIC_MPIDR_MASK;
	return 0;
}

/* Comparison */

int sgic_state_compare(const struct sgic_state *a, const struct sgic_state *b,
		       int (*each)(const struct sgic_value *a,
				   const struct sgic_value *b, void *data),
		       void *data, struct sgic_error *error)
{
	struct sgic_value of_a, of_b;
	int differ = 0, ret;

	if (!sgic_shape_equal(&a->shape, &b->shape))
		return sgic_fail_shape(error, &a->shape, "the first state",
				       &b->shape, "the second");
	for (size_t i = 0; i < a->nr; i++) {
		if (a->values[i] == b->values[i])
			continue;
		differ = 1;
		if (!each)
			break;
		fill_value(a, i, &of_a);
		fill_value(b, i, &of_b);
		ret = each(&of_a, &of_b, data);
		if (ret)
			return ret;
	}

	return differ;
}
