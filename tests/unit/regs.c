// SPDX-License-Identifier: MIT
/* The register table, expanded for machines of all shapes */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regs.h"

#define GRP_DIST   1
#define GRP_REDIST 5
#define GRP_SYSREG 6
#define GRP_LEVEL  7

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Registers that a restore does not write, because the machine has them */
static const char *const read_only[] = { NULL };

struct list {
	struct sgic_reg *regs;
	size_t n;
};

/* KVM's own MPIDRs: 16 vCPUs in Aff0 */
static uint64_t kvm_mpidrs[SGIC_MAX_VCPUS];

static int fill_kvm_mpidrs(void **state)
{
	(void)state;
	for (size_t i = 0; i < SGIC_MAX_VCPUS; i++)
		kvm_mpidrs[i] = i % 16 | i / 16 << 8;
	return 0;
}

static struct sgic_shape plain_shape(uint32_t nr_vcpus)
{
	return (struct sgic_shape){
		.nr_vcpus = nr_vcpus,
		.mpidrs = kvm_mpidrs,
		.nr_irqs = 288,
		.pri_bits = 5,
		.lpis = true,
	};
}

static struct list expand(const struct sgic_shape *shape, enum sgic_dir dir)
{
	struct list list = { .n = sgic_regs_count(shape, dir) };

	/* one more, to see that it stays within its count */
	list.regs = malloc((list.n + 1) * sizeof(*list.regs));
	assert_non_null(list.regs);
	memset(&list.regs[list.n], 0xa5, sizeof(*list.regs));
	assert_int_equal(sgic_regs_fill(shape, dir, list.regs), list.n);
	assert_int_equal(list.regs[list.n].group, 0xa5a5a5a5);
	return list;
}

static const char *name(const struct sgic_reg *reg)
{
	static char buf[64];
	int len = sgic_reg_name(reg, buf, sizeof(buf));

	assert_in_range(len, 1, sizeof(buf) - 1);
	return buf;
}

/* Known machines */

static void counts(void **state)
{
	struct sgic_shape shape = plain_shape(160);

	(void)state;
	assert_null(sgic_shape_check(&shape));
	/* 30 a vCPU; 633 of the distributor and its GICD_IIDR */
	assert_int_equal(sgic_regs_count(&shape, SGIC_SAVE), 160 * 30 + 634);
	/*
	 * the restore clears ICENABLER and ICACTIVER, of vCPUs and SPIs, and
	 * GICR_CTLR
	 */
	assert_int_equal(sgic_regs_count(&shape, SGIC_RESTORE),
			 160 * 33 + 634 + 2 * 8);

	shape.lpis = false;
	assert_int_equal(sgic_regs_count(&shape, SGIC_SAVE), 160 * 26 + 634);
	shape.pri_bits = 7;
	assert_int_equal(sgic_regs_count(&shape, SGIC_SAVE), 160 * 32 + 634);
	shape.el2 = true;
	shape.nr_lrs = 16;
	assert_int_equal(sgic_regs_count(&shape, SGIC_SAVE),
			 160 * (32 + 4 + 8 + 16) + 634);
	shape = plain_shape(1);
	shape.nr_irqs = 64;
	assert_int_equal(sgic_regs_count(&shape, SGIC_SAVE), 30 + 2 + 79);
}

/* The @nth register of the list that has this group and offset */
static const struct sgic_reg *find(const struct list *list, uint32_t group,
				   uint64_t attr)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->regs[i].group == group && list->regs[i].attr == attr)
			return &list->regs[i];
	fail_msg("no register %u %#llx", group, (unsigned long long)attr);
	return NULL;
}

static void names(void **state)
{
	static const struct {
		uint32_t group;
		uint64_t attr;
		const char *name;
	} known[] = {
		{ GRP_DIST, 0x0000, "GICD_CTLR" },
		{ GRP_DIST, 0x0008, "GICD_IIDR" },
		{ GRP_DIST, 0x010c, "GICD_ISENABLER3" },
		{ GRP_DIST, 0x0c08, "GICD_ICFGR2" },
		{ GRP_DIST, 0x0420, "GICD_IPRIORITYR8" },
		{ GRP_DIST, 0x6140, "GICD_IROUTER40[31:0]" },
		{ GRP_DIST, 0x6144, "GICD_IROUTER40[63:32]" },
		{ GRP_REDIST, 0x010100000000 + 0x10408,
		  "GICR_IPRIORITYR2 (vCPU 17)" },
		{ GRP_REDIST, 0x000500000000 + 0x7c,
		  "GICR_PENDBASER[63:32] (vCPU 5)" },
		{ GRP_SYSREG, 0xc230, "ICC_PMR_EL1 (vCPU 0)" },
		{ GRP_SYSREG, 0x000200000000 + 0xc648,
		  "ICC_AP1R0_EL1 (vCPU 2)" },
	};
	struct sgic_shape shape = plain_shape(32);
	struct list list = expand(&shape, SGIC_SAVE);
	char small[8];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		assert_string_equal(
			name(find(&list, known[i].group, known[i].attr)),
			known[i].name);
	/* as snprintf(): cut off, ended, and the whole length returned */
	assert_int_equal(
		sgic_reg_name(find(&list, GRP_DIST, 8), small, sizeof(small)),
		strlen("GICD_IIDR"));
	assert_string_equal(small, "GICD_II");
	free(list.regs);
}

static void aff3(void **state)
{
	static const uint64_t mpidrs[] = { 0x1200345678, 0xff00ffffff };
	struct sgic_shape shape = plain_shape(2);
	struct list list;
	size_t seen[2] = { 0 };

	(void)state;
	shape.mpidrs = mpidrs;
	assert_null(sgic_shape_check(&shape));
	list = expand(&shape, SGIC_SAVE);
	for (size_t i = 0; i < list.n; i++) {
		if (list.regs[i].attr >> 32 == 0x12345678) {
			assert_int_equal(list.regs[i].vcpu, 0);
			seen[0]++;
		} else if (list.regs[i].attr >> 32 == 0xffffffff) {
			assert_int_equal(list.regs[i].vcpu, 1);
			seen[1]++;
		} else {
			assert_int_equal(list.regs[i].attr >> 32, 0);
			assert_true(list.regs[i].group == GRP_DIST ||
				    list.regs[i].group == GRP_LEVEL);
		}
	}
	assert_int_equal(seen[1], 30);
	/* the lines of SPIs are vCPU 0's to read */
	assert_int_equal(seen[0], 30 + 8);
	free(list.regs);
}

static void wide(void **state)
{
	struct sgic_shape shape = plain_shape(1);
	struct list list = expand(&shape, SGIC_SAVE);

	(void)state;
	for (size_t i = 0; i < list.n; i++)
		assert_int_equal(sgic_reg_wide(&list.regs[i]),
				 list.regs[i].group == GRP_SYSREG);
	free(list.regs);
}

/* Rules that every shape must keep */

static int by_register(const void *a, const void *b)
{
	const struct sgic_reg *x = a, *y = b;

	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->attr < y->attr ? -1 : x->attr > y->attr;
}

static void check_no_duplicates(const struct list *list)
{
	struct sgic_reg *sorted = malloc(list->n * sizeof(*sorted));

	assert_non_null(sorted);
	memcpy(sorted, list->regs, list->n * sizeof(*sorted));
	qsort(sorted, list->n, sizeof(*sorted), by_register);
	for (size_t i = 1; i < list->n; i++)
		assert_int_not_equal(by_register(&sorted[i - 1], &sorted[i]),
				     0);
	free(sorted);
}

static bool is_read_only(const struct sgic_reg *reg)
{
	for (size_t i = 0; i < ARRAY_SIZE(read_only); i++)
		if (read_only[i] && !strcmp(name(reg), read_only[i]))
			return true;
	return false;
}

/* A save's slots are its entries; a restore writes each of them once. */
static void check_slots(const struct list *save, const struct list *restore)
{
	unsigned char *written = calloc(save->n, 1);
	const struct sgic_reg *from, *to;

	assert_non_null(written);
	for (size_t i = 0; i < save->n; i++)
		assert_int_equal(save->regs[i].slot, i);
	for (size_t i = 0; i < restore->n; i++) {
		to = &restore->regs[i];
		if (to->slot == SGIC_SLOT_ONES)
			continue;
		assert_in_range(to->slot, 0, save->n - 1);
		from = &save->regs[to->slot];
		assert_int_equal(by_register(from, to), 0);
		assert_int_equal(from->vcpu, to->vcpu);
		assert_int_equal(written[to->slot]++, 0);
	}
	for (size_t i = 0; i < save->n; i++)
		assert_int_equal(written[i], !is_read_only(&save->regs[i]));
	free(written);
}

/*
 * The order of a restore. Every rule is about two kinds of register: those
 * of the first come before those of the second. "Same bank" is the same
 * vCPU, or the distributor; "same word" the same register number, too.
 */
enum scope {
	ANYWHERE,
	SAME_BANK,
	SAME_WORD,
};

struct kind {
	uint32_t group; /* 0: any */
	uint32_t first; /* offset, or system register */
	uint32_t last;
};

/* clang-format off */
#define DIST(first, last)	{ GRP_DIST, first, last }
#define SGI(first, last)	{ GRP_REDIST, 0x10000 + (first), 0x10000 + (last) }
#define REDIST(first, last)	{ GRP_REDIST, first, last }
#define SYSREG(reg)		{ GRP_SYSREG, reg, reg }

static const struct order {
	const char *why;
	enum scope scope;
	struct kind before;
	struct kind after;
} orders[] = {
	{ "the revision before what it decides on", ANYWHERE,
	  DIST(0x8, 0x8), { 0, 0, UINT32_MAX } },
	{ "the distributor is enabled before levels", ANYWHERE,
	  DIST(0, 0), { GRP_LEVEL, 0, UINT32_MAX } },
	{ "the distributor is enabled before pending SPIs", ANYWHERE,
	  DIST(0, 0), DIST(0x200, 0x27f) },
	{ "the distributor is enabled before active SPIs", ANYWHERE,
	  DIST(0, 0), DIST(0x300, 0x37f) },
	{ "the distributor is enabled before enabled SPIs", ANYWHERE,
	  DIST(0, 0), DIST(0x100, 0x17f) },
	{ "the distributor is enabled before all of a vCPU", ANYWHERE,
	  DIST(0, 0), { GRP_REDIST, 0, UINT32_MAX } },

	{ "clear enables before setting them", SAME_WORD,
	  DIST(0x180, 0x1ff), DIST(0x100, 0x17f) },
	{ "clear active before setting it", SAME_WORD,
	  DIST(0x380, 0x3ff), DIST(0x300, 0x37f) },
	{ "group before pending", SAME_BANK,
	  DIST(0x080, 0x0ff), DIST(0x200, 0x27f) },
	{ "edge or level before pending", SAME_BANK,
	  DIST(0xc00, 0xcff), DIST(0x200, 0x27f) },
	{ "priority before pending", SAME_BANK,
	  DIST(0x400, 0x7ff), DIST(0x200, 0x27f) },
	{ "routing before pending", SAME_BANK,
	  DIST(0x6000, 0x7fff), DIST(0x200, 0x27f) },
	{ "configuration before level", SAME_BANK,
	  DIST(0xc00, 0xcff), { GRP_LEVEL, 32, 1023 } },
	{ "routing before level", SAME_BANK,
	  DIST(0x6000, 0x7fff), { GRP_LEVEL, 32, 1023 } },
	{ "level before pending", SAME_BANK,
	  { GRP_LEVEL, 32, 1023 }, DIST(0x200, 0x27f) },
	{ "priority before active", SAME_BANK,
	  DIST(0x400, 0x7ff), DIST(0x300, 0x37f) },
	{ "routing before active", SAME_BANK,
	  DIST(0x6000, 0x7fff), DIST(0x300, 0x37f) },

	{ "clear enables before setting them", SAME_BANK,
	  SGI(0x180, 0x180), SGI(0x100, 0x100) },
	{ "clear active before setting it", SAME_BANK,
	  SGI(0x380, 0x380), SGI(0x300, 0x300) },
	{ "group before pending", SAME_BANK,
	  SGI(0x080, 0x080), SGI(0x200, 0x200) },
	{ "edge or level before pending", SAME_BANK,
	  SGI(0xc00, 0xc07), SGI(0x200, 0x200) },
	{ "priority before pending", SAME_BANK,
	  SGI(0x400, 0x41f), SGI(0x200, 0x200) },
	{ "level before pending", SAME_BANK,
	  { GRP_LEVEL, 0, 0 }, SGI(0x200, 0x200) },
	{ "configuration before level", SAME_BANK,
	  SGI(0x400, 0x41f), { GRP_LEVEL, 0, 0 } },
	{ "LPI configuration table before LPIs are enabled", SAME_BANK,
	  REDIST(0x70, 0x77), REDIST(0x00, 0x00) },
	{ "LPI pending table before LPIs are enabled", SAME_BANK,
	  REDIST(0x78, 0x7f), REDIST(0x00, 0x00) },

	{ "CBPR before BPR1", SAME_BANK, SYSREG(0xc664), SYSREG(0xc663) },
	{ "PRIbits before the active priorities", SAME_BANK,
	  SYSREG(0xc664), { GRP_SYSREG, 0xc644, 0xc64b } },
	{ "the CPU interface before group 0 is enabled", SAME_BANK,
	  { GRP_SYSREG, 0xc230, 0xc665 }, SYSREG(0xc666) },
	{ "the CPU interface before group 1 is enabled", SAME_BANK,
	  { GRP_SYSREG, 0xc230, 0xc665 }, SYSREG(0xc667) },
};
/* clang-format on */

static bool is_kind(const struct sgic_reg *reg, const struct kind *kind)
{
	uint32_t offset = reg->attr;

	return (!kind->group || reg->group == kind->group) &&
	       offset >= kind->first && offset <= kind->last;
}

static void check_order(const struct list *list, const struct order *order)
{
	/* Where has an "after" been seen? In each bank, and each word of it */
	static bool bank_seen[SGIC_MAX_VCPUS + 1];
	static bool word_seen[SGIC_MAX_VCPUS + 1][SGIC_MAX_IRQS / 32];
	bool any_seen = false, before, after, seen;
	size_t bank;

	memset(bank_seen, 0, sizeof(bank_seen));
	memset(word_seen, 0, sizeof(word_seen));
	for (size_t i = 0; i < list->n; i++) {
		const struct sgic_reg *reg = &list->regs[i];

		/* the lines of SPIs belong to the distributor */
		bank = reg->vcpu + 1;
		if (reg->group == GRP_DIST ||
		    (reg->group == GRP_LEVEL && reg->index))
			bank = 0;

		before = is_kind(reg, &order->before);
		after = is_kind(reg, &order->after);
		if (before && after) {
			/* "all" means all others */
			before = order->before.group;
			after = order->after.group;
		}
		if (after) {
			any_seen = bank_seen[bank] = true;
			if (order->scope == SAME_WORD)
				word_seen[bank][reg->index] = true;
		}
		if (!before)
			continue;
		seen = order->scope == ANYWHERE ? any_seen
		       : order->scope == SAME_BANK
			       ? bank_seen[bank]
			       : word_seen[bank][reg->index];
		if (seen)
			fail_msg("%s: %s comes too late", order->why,
				 name(reg));
	}
	/* PROPBASER and PENDBASER may be missing, GICR_CTLR is not */
	if (!any_seen)
		fail_msg("%s: the rule meets no register", order->why);
}

/*
 * LPIs are disabled before all else that is a vCPU's. Takes these accesses off
 * the list: to the other rules GICR_CTLR is where it gets its value.
 */
static void check_disables(const struct sgic_shape *shape, struct list *list)
{
	uint32_t vcpus = 0;
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		const struct sgic_reg *reg = &list->regs[i];

		if (reg->slot == SGIC_SLOT_ZERO) {
			assert_int_equal(reg->group, GRP_REDIST);
			assert_int_equal((uint32_t)reg->attr, 0);
			assert_int_equal(reg->vcpu, vcpus++);
			continue;
		}
		if (shape->lpis && sgic_reg_has_vcpu(reg))
			assert_int_equal(reg->vcpu, vcpus - 1);
		list->regs[n++] = *reg;
	}
	assert_int_equal(vcpus, shape->lpis ? shape->nr_vcpus : 0);
	list->n = n;
}

static void check_shape(const struct sgic_shape *shape)
{
	struct list save, restore;

	assert_null(sgic_shape_check(shape));
	save = expand(shape, SGIC_SAVE);
	restore = expand(shape, SGIC_RESTORE);
	check_disables(shape, &restore);
	check_no_duplicates(&save);
	check_no_duplicates(&restore);
	check_slots(&save, &restore);
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		check_order(&restore, &orders[i]);
	free(save.regs);
	free(restore.regs);
}

static void limits(void **state)
{
	static const uint32_t vcpus[] = { 1, 2, SGIC_MAX_VCPUS };
	static const uint32_t irqs[] = { SGIC_MIN_IRQS, 96, SGIC_MAX_IRQS };
	struct sgic_shape shape;

	(void)state;
	for (size_t v = 0; v < ARRAY_SIZE(vcpus); v++) {
		for (size_t i = 0; i < ARRAY_SIZE(irqs); i++) {
			for (uint8_t bits = 5; bits <= 7; bits++) {
				shape = plain_shape(vcpus[v]);
				shape.nr_irqs = irqs[i];
				shape.pri_bits = bits;
				check_shape(&shape);
				shape.lpis = false;
				shape.el2 = true;
				shape.nr_lrs = bits == 5 ? 1 : SGIC_MAX_LRS;
				check_shape(&shape);
			}
		}
	}
}

static uint32_t random_state = 1;

static uint32_t random32(void)
{
	/* xorshift32: any will do, the same in each run */
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static void random_shapes(void **state)
{
	static uint64_t mpidrs[SGIC_MAX_VCPUS];
	struct sgic_shape shape;

	(void)state;
	for (int run = 0; run < 200; run++) {
		shape = (struct sgic_shape){
			.nr_vcpus = 1 + random32() % SGIC_MAX_VCPUS,
			.mpidrs = mpidrs,
			.nr_irqs = 32 * (2 + random32() % 30),
			.pri_bits = 5 + random32() % 3,
			.nr_lrs = 1 + random32() % SGIC_MAX_LRS,
			.lpis = random32() % 2,
			.el2 = random32() % 2,
		};
		/* distinct, in no order, in all four fields */
		for (uint32_t i = 0; i < shape.nr_vcpus; i++)
			mpidrs[i] = ((uint64_t)(random32() & 0xff) << 32 |
				     (random32() & 0xffffff)) ^
				    i;
		if (sgic_shape_check(&shape))
			continue; /* two were the same, for once */
		check_shape(&shape);
	}
}

/* Shapes that no machine has */

static void refused(struct sgic_shape shape, const char *why)
{
	const char *what = sgic_shape_check(&shape);

	if (!what)
		fail_msg("accepted: %s", why);
	assert_true(strlen(what) > 10);
}

static void refusals(void **state)
{
	static uint64_t mpidrs[SGIC_MAX_VCPUS + 1];
	struct sgic_shape shape = plain_shape(4);
	static const uint32_t irqs[] = { 0, 32, 63, 65, 96 + 1, 1024, 1 << 31 };
	static const uint64_t bits[] = {
		1ULL << 24,
		1ULL << 31,
		1ULL << 40,
		1ULL << 63,
	};

	(void)state;
	shape.nr_vcpus = 0;
	refused(shape, "no vCPU");
	shape.mpidrs = mpidrs;
	for (size_t i = 0; i < ARRAY_SIZE(mpidrs); i++)
		mpidrs[i] = i;
	shape.nr_vcpus = SGIC_MAX_VCPUS + 1;
	refused(shape, "513 vCPUs");

	shape = plain_shape(4);
	for (size_t i = 0; i < ARRAY_SIZE(irqs); i++) {
		shape.nr_irqs = irqs[i];
		refused(shape, "number of interrupts");
	}
	shape = plain_shape(4);
	shape.pri_bits = 4;
	refused(shape, "4 priority bits");
	shape.pri_bits = 8;
	refused(shape, "8 priority bits");

	shape = plain_shape(4);
	shape.el2 = true;
	refused(shape, "no list registers");
	shape.nr_lrs = SGIC_MAX_LRS + 1;
	refused(shape, "17 list registers");

	shape = plain_shape(4);
	shape.mpidrs = mpidrs;
	mpidrs[3] = mpidrs[0];
	refused(shape, "the first and the last MPIDR are the same");
	mpidrs[3] = 3;
	assert_null(sgic_shape_check(&shape));
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		mpidrs[3] = bits[i];
		refused(shape, "bits outside of the affinity");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),   cmocka_unit_test(names),
		cmocka_unit_test(aff3),	    cmocka_unit_test(wide),
		cmocka_unit_test(limits),   cmocka_unit_test(random_shapes),
		cmocka_unit_test(refusals),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("register table", tests,
					   fill_kvm_mpidrs, NULL);
}
