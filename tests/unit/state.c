// SPDX-License-Identifier: MIT
/* States: what is in them, by number, by name and by interrupt */
#include <errno.h>
#include <stdio.h>

#include "machines.h"

static void empty(void **unused)
{
	struct sgic_state *state = sgic_state_new();
	struct sgic_state *other = sgic_state_new();
	struct sgic_machine machine = { .nr_vcpus = 1 };
	struct sgic_value value;
	struct sgic_irq irq;
	struct sgic_error error;

	(void)unused;
	assert_non_null(state);
	assert_non_null(other);
	sgic_state_machine(state, &machine);
	assert_int_equal(machine.nr_vcpus, 0);
	assert_int_equal(sgic_state_count(state), 0);
	assert_int_equal(sgic_state_value(state, 0, &value), -ERANGE);
	assert_int_equal(sgic_state_find(state, "GICD_CTLR", &value), -ENOENT);
	assert_int_equal(sgic_state_find(state, "GICR_CTLR (vCPU 0)", &value),
			 -ENOENT);
	assert_int_equal(sgic_state_irq(state, 0, 0, &irq), -ERANGE);
	assert_int_equal(sgic_state_irq(state, 32, 0, &irq), -ERANGE);
	assert_true(sgic_state_mpidr(state, 0) == UINT64_MAX);
	assert_int_equal(sgic_state_compare(state, other, NULL, NULL, NULL), 0);

	/* against one that is not */
	assert_int_equal(sgic_state_shape(other, &machines[0].shape), 0);
	assert_int_equal(sgic_state_compare(state, other, NULL, NULL, &error),
			 -EXDEV);
	assert_non_null(strstr(error.message, "no machine"));
	sgic_state_free(other);
	sgic_state_free(state);
	sgic_state_free(NULL);
}

static void of_machine(void **unused)
{
	(void)unused;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		const struct sgic_shape *shape = &machines[m].shape;
		struct sgic_state *state = new_machine(shape, m);
		struct sgic_machine machine;

		sgic_state_machine(state, &machine);
		assert_int_equal(machine.nr_vcpus, shape->nr_vcpus);
		assert_int_equal(machine.nr_irqs, shape->nr_irqs);
		assert_int_equal(machine.nr_its, shape->nr_its);
		assert_int_equal(machine.pri_bits, shape->pri_bits);
		assert_int_equal(machine.nr_lrs, shape->nr_lrs);
		assert_int_equal(machine.lpis, shape->lpis);
		assert_int_equal(machine.el2, shape->el2);
		for (uint32_t v = 0; v < shape->nr_vcpus; v++)
			assert_true(sgic_state_mpidr(state, v) ==
				    shape->mpidrs[v]);
		assert_true(sgic_state_mpidr(state, shape->nr_vcpus) ==
			    UINT64_MAX);
		sgic_state_free(state);
	}
}

/* Every register has its number and its name, and is itself by either. */
static void walk(void **unused)
{
	(void)unused;
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		const struct sgic_shape *shape = &machines[m].shape;
		struct sgic_state *state = new_machine(shape, m);
		size_t n = sgic_state_count(state);
		struct sgic_value value, found;

		assert_int_equal(n, sgic_regs_count(shape, SGIC_SAVE));
		assert_int_equal(sgic_state_value(state, n, &value), -ERANGE);
		/* all of a large one would take long */
		for (size_t i = 0; i < n; i += 1 + n / 3000) {
			memset(&value, 0xa5, sizeof(value));
			memset(&found, 0x5a, sizeof(found));
			assert_int_equal(sgic_state_value(state, i, &value), 0);
			assert_true(value.val == state->values[i]);
			assert_int_equal(
				sgic_state_find(state, value.name, &found), 0);
			assert_int_equal(found.group, value.group);
			assert_true(found.attr == value.attr);
			assert_true(found.val == value.val);
			assert_int_equal(found.vcpu, value.vcpu);
			assert_int_equal(found.its, value.its);
			assert_string_equal(found.name, value.name);
			if (strstr(value.name, "(vCPU "))
				assert_int_equal(value.vcpu,
						 atoi(strchr(value.name, '(') +
						      strlen("(vCPU ")));
			else
				assert_int_equal(value.vcpu, -1);
			if (strstr(value.name, "(ITS "))
				assert_int_equal(value.its,
						 atoi(strchr(value.name, '(') +
						      strlen("(ITS ")));
			else
				assert_int_equal(value.its, -1);
		}
		sgic_state_free(state);
	}
}

static void no_such_name(void **unused)
{
	static const char *const names[] = {
		"",
		"GICD_CTLR ",
		"gicd_ctlr",
		"GICR_CTLR",
		"GICR_CTLR (vCPU )",
		"GICR_CTLR (vCPU 00)",
		"GICR_CTLR (vCPU 2)",
		"GICR_CTLR (vCPU -1)",
		"GICR_CTLR (vCPU 4294967296)",
		"GICR_CTLR (vCPU 0) (vCPU 0)",
		"GICD_CTLR (vCPU 0)",
		"GITS_CTLR (ITS 0)",
		" (vCPU 0)",
	};
	struct sgic_state *state = new_machine(&machines[0].shape, 1);
	struct sgic_value value;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (sgic_state_find(state, names[i], &value) != -ENOENT)
			fail_msg("found: '%s'", names[i]);
	sgic_state_free(state);
}

/* The interrupts against the registers' names in the architecture */

static uint32_t named(const struct sgic_state *state, int vcpu,
		      const char *array, uint32_t index)
{
	bool dist = vcpu < 0;
	struct sgic_value value;
	char name[64], whose[32] = "";

	if (!dist)
		snprintf(whose, sizeof(whose), " (vCPU %d)", vcpu);
	snprintf(name, sizeof(name), "%s%s%u%s",
		 !strcmp(array, "LEVEL_INFO") ? ""
		 : dist			      ? "GICD_"
					      : "GICR_",
		 array, index, whose);
	if (sgic_state_find(state, name, &value))
		fail_msg("no %s", name);
	return value.val;
}

static void check_irq(const struct sgic_state *state, uint32_t intid,
		      uint32_t vcpu)
{
	int whose = intid < 32 ? (int)vcpu : -1;
	uint32_t bit = 1U << intid % 32;
	struct sgic_irq irq;
	struct sgic_value low, high;
	char name[64];

	memset(&irq, 0xa5, sizeof(irq));
	assert_int_equal(sgic_state_irq(state, intid, vcpu, &irq), 0);
	assert_int_equal(irq.intid, intid);
	assert_int_equal(irq.vcpu, whose);
	assert_int_equal(irq.group1,
			 !!(named(state, whose, "IGROUPR", intid / 32) & bit));
	assert_int_equal(
		irq.enabled,
		!!(named(state, whose, "ISENABLER", intid / 32) & bit));
	assert_int_equal(irq.latched,
			 !!(named(state, whose, "ISPENDR", intid / 32) & bit));
	assert_int_equal(
		irq.active,
		!!(named(state, whose, "ISACTIVER", intid / 32) & bit));
	assert_int_equal(irq.priority,
			 named(state, whose, "IPRIORITYR", intid / 4) >>
					 8 * (intid % 4) &
				 0xff);
	/* SGIs are edge-triggered, whatever */
	assert_int_equal(irq.edge,
			 intid < 16 ||
				 (named(state, whose, "ICFGR", intid / 16) >>
					  (2 * (intid % 16) + 1) &
				  1));
	/* INTID / 32 as the table counts it */
	assert_int_equal(
		irq.line,
		!!(named(state, whose, "LEVEL_INFO", intid / 32) & bit));
	if (whose >= 0) {
		assert_false(irq.any);
		assert_true(irq.target == 0);
		return;
	}
	snprintf(name, sizeof(name), "GICD_IROUTER%u[31:0]", intid);
	assert_int_equal(sgic_state_find(state, name, &low), 0);
	snprintf(name, sizeof(name), "GICD_IROUTER%u[63:32]", intid);
	assert_int_equal(sgic_state_find(state, name, &high), 0);
	assert_int_equal(irq.any, low.val >> 31 & 1);
	assert_true(irq.target ==
		    ((high.val & 0xff) << 32 | (low.val & 0xffffff)));
}

static void interrupts(void **unused)
{
	(void)unused;
	for (size_t m = 0; m < 3; m++) {
		const struct sgic_shape *shape = &machines[m].shape;
		struct sgic_state *state = new_machine(shape, 77 + m);
		struct sgic_irq irq;

		for (uint32_t i = 0; i < shape->nr_irqs; i++)
			for (uint32_t v = 0; v < shape->nr_vcpus; v++)
				check_irq(state, i, v);
		assert_int_equal(sgic_state_irq(state, shape->nr_irqs, 0, &irq),
				 -ERANGE);
		assert_int_equal(
			sgic_state_irq(state, 31, shape->nr_vcpus, &irq),
			-ERANGE);
		/* an SPI is of no vCPU */
		assert_int_equal(sgic_state_irq(state, 32, UINT32_MAX, &irq),
				 0);
		sgic_state_free(state);
	}
}

/* Comparison */

struct seen {
	size_t n;
	size_t stop_after;
	struct sgic_value a;
	struct sgic_value b;
};

static int see(const struct sgic_value *a, const struct sgic_value *b,
	       void *data)
{
	struct seen *seen = data;

	assert_string_equal(a->name, b->name);
	assert_true(a->val != b->val);
	seen->a = *a;
	seen->b = *b;
	return ++seen->n == seen->stop_after ? -ECANCELED : 0;
}

static void compare(void **unused)
{
	(void)unused;
	for (size_t m = 0; m < 3; m++) {
		const struct sgic_shape *shape = &machines[m].shape;
		struct sgic_state *a = new_machine(shape, m);
		struct sgic_state *b = new_machine(shape, m);
		struct seen seen = { 0 };

		assert_int_equal(sgic_state_compare(a, b, see, &seen, NULL), 0);
		assert_int_equal(seen.n, 0);
		for (size_t i = 0; i < a->nr; i++) {
			b->values[i] ^= 1;
			seen.n = 0;
			assert_int_equal(
				sgic_state_compare(a, b, NULL, NULL, NULL), 1);
			assert_int_equal(
				sgic_state_compare(a, b, see, &seen, NULL), 1);
			assert_int_equal(seen.n, 1);
			assert_int_equal(seen.a.attr, a->regs[i].attr);
			assert_true(seen.a.val == a->values[i]);
			assert_true(seen.b.val == b->values[i]);
			b->values[i] ^= 1;
		}

		/* all differ, in order; the walk can be ended */
		fill_values(b, 1000);
		seen = (struct seen){ .stop_after = 3 };
		assert_int_equal(sgic_state_compare(a, b, see, &seen, NULL),
				 -ECANCELED);
		assert_int_equal(seen.n, 3);
		assert_int_equal(seen.a.attr, a->regs[2].attr);
		sgic_state_free(b);
		sgic_state_free(a);
	}
}

static void other_shape(struct sgic_shape shape, const char *a, const char *b)
{
	struct sgic_state *x = new_machine(&machines[2].shape, 0);
	struct sgic_state *y = new_machine(&shape, 0);
	struct sgic_error error;

	memset(&error, 0xa5, sizeof(error));
	assert_int_equal(sgic_state_compare(x, y, NULL, NULL, NULL), -EXDEV);
	assert_int_equal(sgic_state_compare(x, y, NULL, NULL, &error), -EXDEV);
	assert_int_equal(error.err, -EXDEV);
	assert_int_equal(error.step, SGIC_STEP_SHAPE);
	assert_false(error.touched);
	if (!strstr(error.message, a) || !strstr(error.message, b))
		fail_msg("no '%s' and '%s' in: %s", a, b, error.message);
	sgic_state_free(y);
	sgic_state_free(x);
}

/* Both machines are in the message. */
static void other_shapes(void **unused)
{
	static const uint64_t mpidrs[] = { 0, 0x10000 };
	struct sgic_shape shape = machines[2].shape;

	(void)unused;
	shape.nr_vcpus = 1;
	other_shape(shape, "the first state has 2 vCPUs, 64 interrupts",
		    "the second has 1 vCPU, 64");
	shape = machines[2].shape;
	shape.nr_irqs = 96;
	other_shape(shape, "64 interrupts, 6 priority bits, LPIs, 1 ITS",
		    "96 interrupts");
	shape = machines[2].shape;
	shape.pri_bits = 5;
	other_shape(shape, "6 priority bits", "5 priority bits");
	shape = machines[2].shape;
	shape.nr_its = 2;
	other_shape(shape, "1 ITS,", "2 ITSs,");
	shape.nr_its = 0;
	shape.lpis = false;
	other_shape(shape, "LPIs", "6 priority bits, EL2");
	shape = machines[2].shape;
	shape.nr_lrs = 1;
	other_shape(shape, "EL2 with 4 list registers",
		    "EL2 with 1 list register");
	shape = machines[2].shape;
	shape.el2 = false;
	other_shape(shape, "EL2 with 4 list registers", "1 ITS");
	shape = machines[0].shape;
	shape.lpis = true;
	assert_false(sgic_shape_equal(&shape, &machines[0].shape));
	shape = machines[2].shape;
	shape.mpidrs = mpidrs;
	other_shape(shape, "vCPU 1 has MPIDR 0x1 in the first state",
		    "0x10000 in the second");
}

/* Without EL2 the list registers are not there to be counted. */
static void no_list_registers(void **unused)
{
	struct sgic_shape shape = machines[0].shape;
	struct sgic_state *state;

	(void)unused;
	shape.nr_lrs = 4;
	state = new_machine(&shape, 0);
	assert_int_equal(state->shape.nr_lrs, 0);
	assert_true(sgic_shape_equal(&shape, &machines[0].shape));
	sgic_state_free(state);
}

/* A state that was of another machine is like a new one of this. */
static void reused(void **unused)
{
	struct sgic_state *state = sgic_state_new();

	(void)unused;
	assert_non_null(state);
	for (size_t i = 0; i < 20; i++) {
		const struct sgic_shape *shape =
			&machines[i * 7 % ARRAY_SIZE(machines)].shape;
		struct sgic_state *fresh = new_machine(shape, i);

		assert_int_equal(sgic_state_shape(state, shape), 0);
		for (size_t r = 0; r < state->nr; r++)
			assert_true(state->values[r] == 0);
		fill_values(state, i);
		assert_int_equal(
			sgic_state_compare(state, fresh, NULL, NULL, NULL), 0);
		sgic_state_free(fresh);

		/* the same machine again: all 0 again */
		assert_int_equal(sgic_state_shape(state, shape), 0);
		assert_true(state->values[state->nr - 1] == 0);
	}
	sgic_state_free(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty),
		cmocka_unit_test(of_machine),
		cmocka_unit_test(walk),
		cmocka_unit_test(no_such_name),
		cmocka_unit_test(interrupts),
		cmocka_unit_test(compare),
		cmocka_unit_test(other_shapes),
		cmocka_unit_test(no_list_registers),
		cmocka_unit_test(reused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("states", tests, fill_kvm_mpidrs,
					   NULL);
}
