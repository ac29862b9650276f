// SPDX-License-Identifier: MIT
/*
 * A batch equals the same one-register calls in the same order: random
 * batches go to one VM, and their entries one by one to its twin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "harness.h"

#define MIN_ENTRIES	10000 /* a run has at least so many */
#define BATCHES		6     /* for each pair of VMs */
#define MAX_ENTRIES	400   /* of a batch */
#define MAX_SMALL_VCPUS 40

#define REG_MPIDR_EL1 ARM64_SYS_REG(3, 0, 0, 0, 5)

enum mpidrs {
	KVMS_OWN,
	SPARSE,	   /* bits in Aff0 to Aff3, any order */
	DUPLICATE, /* a few values for many vCPUs */
	DESCENDING,
	ALL_SAME,
};

struct scenario {
	const char *rule;
	uint32_t nr_vcpus; /* 0: a random number in each round */
	uint32_t nr_irqs;
	uint32_t rounds; /* pairs of VMs */
	enum mpidrs mpidrs;
	bool no_its;
	bool run_once;	    /* KVM has its own MPIDR table then */
	bool change_mpidrs; /* between batches */
	bool no_init;
};

struct twins {
	const struct scenario *scenario;
	struct vm *batched;
	struct vm *single;
	struct sgic_reg *regs; /* of a restore, and so of a save, too */
	size_t nr_regs;
};

static size_t total_entries;

static uint32_t below(uint32_t n)
{
	return test_random() % n;
}

static bool one_in(uint32_t n)
{
	return !below(n);
}

static uint64_t random_mpidr(void)
{
	return test_random() & SGIC_MPIDR_MASK;
}

static void fill_mpidrs(uint64_t *mpidrs, uint32_t n, enum mpidrs kind)
{
	uint64_t few[3] = { random_mpidr(), random_mpidr(), random_mpidr() };
	uint32_t i;

	for (i = 0; i < n; i++) {
		switch (kind) {
		case SPARSE:
			mpidrs[i] = random_mpidr();
			break;
		case DUPLICATE:
			mpidrs[i] = one_in(2) ? few[below(3)] : below(8);
			break;
		case DESCENDING:
			mpidrs[i] = (n - 1 - i) % 16 | (n - 1 - i) / 16 << 8;
			break;
		default:
			mpidrs[i] = few[0];
			break;
		}
	}
}

static void create_twins(struct twins *t, const struct scenario *scenario)
{
	static uint64_t mpidrs[SGIC_MAX_VCPUS];
	struct vm_config config = {
		.nr_vcpus = scenario->nr_vcpus,
		.nr_irqs = scenario->nr_irqs,
		.its = !scenario->no_its,
		.no_init = scenario->no_init,
	};
	struct sgic_shape shape;

	if (!config.nr_irqs)
		config.nr_irqs = 288;
	if (!config.nr_vcpus)
		config.nr_vcpus = 1 + below(MAX_SMALL_VCPUS);
	if (scenario->mpidrs != KVMS_OWN) {
		fill_mpidrs(mpidrs, config.nr_vcpus, scenario->mpidrs);
		config.mpidrs = mpidrs;
	}
	t->scenario = scenario;
	t->batched = batch_vm(&config);
	t->single = test_vm(&config);
	if (scenario->run_once) {
		vm_run_once(t->batched, 0);
		vm_run_once(t->single, 0);
	}

	shape = (struct sgic_shape){
		.nr_vcpus = config.nr_vcpus,
		.mpidrs = t->batched->mpidrs,
		.nr_irqs = config.nr_irqs,
		.pri_bits = 7,
		.lpis = true,
	};
	t->nr_regs = sgic_regs_count(&shape, SGIC_RESTORE);
	t->regs = calloc(t->nr_regs, sizeof(*t->regs));
	REQUIRE(t->regs, "no memory");
	sgic_regs_fill(&shape, SGIC_RESTORE, t->regs);
}

static void destroy_twins(struct twins *t)
{
	test_vm_destroy(t->batched);
	test_vm_destroy(t->single);
	free(t->regs);
}

static void random_register(const struct twins *t, entry_t *e)
{
	const struct sgic_reg *reg = &t->regs[below(t->nr_regs)];
	uint32_t nr_vcpus = t->batched->config.nr_vcpus;

	e->group = reg->group;
	e->attr = reg->attr;
	if (one_in(2))
		return;

	/* mostly not the vCPU that the table has for it */
	if (one_in(10))
		e->attr = (uint32_t)e->attr | vm_attr(random_mpidr(), 0);
	else
		e->attr = (uint32_t)e->attr |
			  vcpu_attr(t->batched, below(nr_vcpus), 0);
	if (!one_in(3))
		return;

	/* a register that may not exist */
	switch (below(4)) {
	case 0:
		e->attr ^= 1ULL << below(32);
		break;
	case 1:
		e->attr = (e->attr & ~0xffffULL) | (uint16_t)test_random();
		break;
	case 2:
		e->group = one_in(2) ? below(12) : (uint32_t)test_random();
		break;
	default:
		e->attr = test_random();
		break;
	}
}

static void random_batch(const struct twins *t, entry_t *e, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		e[i].error = test_random();
		if (i && one_in(10)) {
			e[i].group = e[i - 1].group;
			e[i].attr = e[i - 1].attr;
		} else {
			random_register(t, &e[i]);
		}
		e[i].val = one_in(4) ? UINT32_MAX * one_in(2) : test_random();
		e[i].val_hi = one_in(e[i].group == SYSREGS ? 2 : 20)
				      ? test_random()
				      : 0;
	}
}

/* What the contract says of one entry, by a one-register call */
static int oracle(const struct vm *vm, bool write, entry_t *e)
{
	uint64_t val = vm_entry_val(e);
	int ret;

	switch (e->group) {
	case DIST:
	case REDIST:
	case LEVEL:
		if (write && e->val_hi)
			return -EINVAL;
		break;
	case SYSREGS:
		break;
	default:
		return -EINVAL;
	}
	if (write)
		return vm_set(vm, e->group, e->attr, val);
	ret = vm_get(vm, e->group, e->attr, &val);
	e->val = val;
	e->val_hi = val >> 32;
	return ret;
}

static bool check_batch(const struct twins *t)
{
	static entry_t in[MAX_ENTRIES], out[MAX_ENTRIES], want[MAX_ENTRIES];
	size_t n = 1 + below(one_in(4) ? 4 : MAX_ENTRIES), i;
	bool write = !one_in(3), ok;
	int ret, first = 0;

	random_batch(t, in, n);
	memcpy(out, in, sizeof(in));
	memcpy(want, in, sizeof(in));
	ret = vm_batch(t->batched, write, out, n);
	for (i = 0; i < n; i++) {
		want[i].error = oracle(t->single, write, &want[i]);
		if (!first)
			first = want[i].error;
	}
	total_entries += n;

	ok = CHECK(ret == first, "%s of %zu returned %s, not %s",
		   write ? "set" : "get", n, errno_name(ret),
		   errno_name(first));
	for (i = 0; ok && i < n; i++)
		ok = CHECK(
			!memcmp(&out[i], &want[i], sizeof(*out)),
			"%s %zu of %zu, group %u, attr %#llx, value %#llx: %#llx and %s, one register %#llx and %s",
			write ? "set" : "get", i, n, in[i].group,
			(unsigned long long)in[i].attr,
			(unsigned long long)vm_entry_val(&in[i]),
			(unsigned long long)vm_entry_val(&out[i]),
			errno_name(out[i].error),
			(unsigned long long)vm_entry_val(&want[i]),
			errno_name(want[i].error));
	return ok;
}

/* Every register of both, one by one unless that takes too long */
static void check_state(const struct twins *t)
{
	bool few = t->batched->config.nr_vcpus <= MAX_SMALL_VCPUS;
	entry_t a, b;
	uint64_t val;
	char name[64];
	size_t i;

	for (i = 0; i < t->nr_regs; i++) {
		if (!few && !one_in(16))
			continue;
		a = entry(t->regs[i].group, t->regs[i].attr, 0);
		b = a;
		val = 0;
		a.error = vm_get(t->batched, a.group, a.attr, &val);
		a.val = val;
		a.val_hi = val >> 32;
		val = 0;
		b.error = vm_get(t->single, b.group, b.attr, &val);
		b.val = val;
		b.val_hi = val >> 32;
		sgic_reg_name(&t->regs[i], name, sizeof(name));
		if (!CHECK(!memcmp(&a, &b, sizeof(a)),
			   "%s: %#llx and %s, its twin %#llx and %s", name,
			   (unsigned long long)vm_entry_val(&a),
			   errno_name(a.error),
			   (unsigned long long)vm_entry_val(&b),
			   errno_name(b.error)))
			break;
	}
}

static void set_mpidr(struct vm *vm, uint32_t vcpu, uint64_t mpidr)
{
	uint64_t val = 1ULL << 31 | mpidr;
	struct kvm_one_reg reg = {
		.id = REG_MPIDR_EL1,
		.addr = (uintptr_t)&val,
	};

	REQUIRE(!ioctl(vm->vcpu_fds[vcpu], KVM_SET_ONE_REG, &reg),
		"setting MPIDR_EL1: %s", strerror(errno));
	vm->mpidrs[vcpu] = mpidr;
}

/* To a value that is new, or that another vCPU has */
static void change_mpidr(struct twins *t)
{
	uint32_t n = t->batched->config.nr_vcpus, vcpu = below(n);
	uint64_t mpidr = one_in(2) ? random_mpidr()
				   : t->batched->mpidrs[below(n)];

	set_mpidr(t->batched, vcpu, mpidr);
	set_mpidr(t->single, vcpu, mpidr);
}

/* Fields that are 0 take what create_twins() and run_scenario() say. */
static const struct scenario scenarios[] = {
	{ .rule = "KVM's own MPIDRs" },
	{ .rule = "sparse MPIDRs, Aff0 to Aff3", .mpidrs = SPARSE },
	{ .rule = "duplicate MPIDRs", .mpidrs = DUPLICATE },
	{ .rule = "descending MPIDRs", .mpidrs = DESCENDING },
	{ .rule = "one MPIDR for all", .mpidrs = ALL_SAME },
	{ .rule = "has run, KVM's own MPIDRs", .run_once = true },
	{ .rule = "has run, sparse MPIDRs",
	  .run_once = true,
	  .mpidrs = SPARSE },
	{ .rule = "has run, duplicate MPIDRs",
	  .run_once = true,
	  .mpidrs = DUPLICATE },
	{ .rule = "has run, descending MPIDRs",
	  .run_once = true,
	  .mpidrs = DESCENDING },
	{ .rule = "MPIDRs that change", .change_mpidrs = true },
	{ .rule = "has run, MPIDRs that change",
	  .run_once = true,
	  .change_mpidrs = true,
	  .mpidrs = DESCENDING },
	{ .rule = "no ITS, 64 interrupts", .no_its = true, .nr_irqs = 64 },
	{ .rule = "992 interrupts", .nr_irqs = 992 },
	{ .rule = "VGIC not initialised", .no_init = true },
	{ .rule = "512 vCPUs", .nr_vcpus = SGIC_MAX_VCPUS, .rounds = 1 },
};

static void run_scenario(void)
{
	const struct scenario *scenario = &scenarios[test_index];
	struct twins t;
	uint32_t rounds = scenario->rounds ? scenario->rounds : 3;
	uint32_t round, batch;
	bool ok = true;

	for (round = 0; ok && round < rounds; round++) {
		create_twins(&t, scenario);
		for (batch = 0; ok && batch < BATCHES; batch++) {
			if (scenario->change_mpidrs)
				change_mpidr(&t);
			ok = check_batch(&t);
		}
		check_state(&t);
		destroy_twins(&t);
	}
}

static void enough_entries(void)
{
	test_diag("%zu entries, seed %u", total_entries, test_seed);
	if (!total_entries)
		plain_vm(1); /* skips, if there is no batch call */
	CHECK(total_entries >= MIN_ENTRIES, "too few");
}

int main(int argc, char **argv)
{
	static struct test tests[ARRAY_SIZE(scenarios) + 1];
	static char rules[ARRAY_SIZE(scenarios)][64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(scenarios); i++) {
		snprintf(rules[i], sizeof(rules[i]), "as one by one: %s",
			 scenarios[i].rule);
		tests[i] = (struct test){ rules[i], run_scenario };
	}
	tests[i] = (struct test){ "at least 10,000 entries", enough_entries };

	test_timeout_s = 300;
	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
