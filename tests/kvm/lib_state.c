// SPDX-License-Identifier: MIT
/*
 * The library's save and restore, batched and one by one. Cases old-kernel,
 * stale-or, other-irq-count.
 */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "its.h"

static const struct vm_config machines[] = {
	{ .nr_vcpus = 1, .nr_irqs = 64 },
	{ .nr_vcpus = 5, .nr_irqs = 96, .its = true, .ram_bytes = 1 << 20 },
	{ .nr_vcpus = 17, .nr_irqs = 288, .its = true, .ram_bytes = 1 << 20 },
	{ .nr_vcpus = 33, .nr_irqs = 992 },
};

/* An ITS has memory for its tables, which a guest has told it of. */
static struct vm *filled_vm(const struct vm_config *config, uint32_t seed)
{
	struct vm *vm = batch_vm(config);
	struct its its = { .vm = vm };

	test_fill(vm, seed);
	if (config->its)
		REQUIRE_RET(its_set_registers(&its), 0);
	return vm;
}

/* Against KVM_GET_DEVICE_ATTR of each register that the state names */
static void check_oracle(const struct vm *vm, const struct sgic_state *state)
{
	struct sgic_value value;
	uint64_t val;
	size_t i;

	for (i = 0; i < sgic_state_count(state); i++) {
		REQUIRE_RET(sgic_state_value(state, i, &value), 0);
		if (value.its >= 0)
			continue;
		REQUIRE_RET(vm_get(vm, value.group, value.attr, &val), 0);
		if (!CHECK(val == value.val, "%s: %#llx, saved as %#llx",
			   value.name, (unsigned long long)val,
			   (unsigned long long)value.val))
			return;
	}
	CHECK(i > 600 || vm->config.nr_irqs < 288, "%zu registers", i);
}

static void oracle(void)
{
	struct sgic_device *device;
	struct sgic_state *state;
	struct vm *vm;

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		vm = filled_vm(&machines[i], test_random());
		for (uint32_t flags = 0; flags < 2; flags++) {
			device = test_device(vm, flags);
			state = test_save(device);
			check_oracle(vm, state);
			sgic_state_free(state);
			sgic_device_free(device);
		}
		test_vm_destroy(vm);
	}
}

/* Saved and restored by any path, into a new VM or over another state */
static void round_trips(bool over)
{
	struct sgic_state *states[2], *again;
	struct sgic_device *device;
	struct vm *vm;

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		vm = filled_vm(&machines[i], test_random());
		for (uint32_t flags = 0; flags < 2; flags++) {
			device = test_device(vm, flags);
			states[flags] = test_save(device);
			sgic_device_free(device);
		}
		test_vm_destroy(vm);
		CHECK_EQUAL(states[0], states[1], "batched and one by one");

		for (uint32_t flags = 0; flags < 2; flags++) {
			vm = over ? filled_vm(&machines[i], test_random())
				  : batch_vm(&machines[i]);
			device = test_device(vm, flags);
			test_restore(device, states[!flags]);
			again = test_save(device);
			CHECK_EQUAL(states[flags], again, "restored");
			sgic_state_free(again);
			sgic_device_free(device);
			test_vm_destroy(vm);
		}
		sgic_state_free(states[0]);
		sgic_state_free(states[1]);
	}
}

static void into_new(void)
{
	round_trips(false);
}

static void over_another(void)
{
	round_trips(true);
}

/* Edge to level, pending to not, with the same object and a new one */
static void second_save(void)
{
	struct vm *vm = filled_vm(&machines[2], test_random());
	struct sgic_device *device = test_device(vm, 0);
	struct sgic_state *state = test_save(device), *first, *fresh;

	first = test_save(device);
	CHECK_RET(vm_set(vm, DIST, GICD_ICFGR + 8, UINT32_MAX), 0);
	CHECK_RET(sgic_device_save(device, state, NULL), 0);
	CHECK_RET(vm_set(vm, DIST, GICD_ICFGR + 8, 0), 0);
	CHECK_RET(vm_set(vm, DIST, GIC_ISPENDR + 4, 0), 0);
	CHECK_RET(vm_set(vm, DIST, GIC_ICENABLER + 4, UINT32_MAX), 0);
	CHECK_RET(sgic_device_save(device, state, NULL), 0);
	fresh = test_save(device);
	CHECK_EQUAL(state, fresh, "the same object and a new one");
	CHECK(sgic_state_compare(state, first, NULL, NULL, NULL) == 1,
	      "nothing has changed");
	sgic_state_free(state);
	sgic_state_free(first);
	sgic_state_free(fresh);
	sgic_device_free(device);
}

/* What is there is not touched, and the message has both shapes. */
static void check_refused(const struct sgic_state *state,
			  const struct vm_config *config, const char *ours,
			  const char *theirs)
{
	struct vm *vm = filled_vm(config, test_random());
	struct sgic_device *device = test_device(vm, 0);
	struct sgic_state *before = test_save(device), *after;
	struct sgic_error error = { 0 };

	CHECK_RET(sgic_device_restore(device, state, &error), -EXDEV);
	CHECK(error.step == SGIC_STEP_SHAPE && !error.touched, "%d, %d",
	      error.step, error.touched);
	CHECK(strstr(error.message, ours) && strstr(error.message, theirs),
	      "no '%s' or no '%s' in: %s", ours, theirs, error.message);
	after = test_save(device);
	CHECK_EQUAL(before, after, "before and after");
	sgic_state_free(before);
	sgic_state_free(after);
	sgic_device_free(device);
	test_vm_destroy(vm);
}

static void other_shape(void)
{
	struct vm_config config = machines[1];
	struct vm *vm = filled_vm(&config, test_random());
	struct sgic_state *state = test_state(vm);
	uint64_t mpidrs[5] = { 0, 1, 2, 0x100, 4 };

	config.nr_irqs = 64;
	check_refused(state, &config, "64 interrupts", "96 interrupts");
	config = machines[1];
	config.nr_vcpus = 4;
	check_refused(state, &config, "4 vCPUs", "5 vCPUs");
	config = machines[1];
	config.its = false;
	check_refused(state, &config, "5 vCPUs", "1 ITS");
	config = machines[1];
	config.mpidrs = mpidrs;
	check_refused(state, &config, "vCPU 3", "0x100");
	sgic_state_free(state);
}

/* The most vCPUs: as few calls as the limit allows */
static void calls(void)
{
	const struct vm_config config = { .nr_vcpus = 512, .nr_irqs = 64 };
	struct vm *vm = batch_vm(&config);
	struct sgic_device *device = test_device(vm, 0);
	struct sgic_state *state;
	struct sgic_stats stats;
	size_t n;

	CHECK(sgic_device_batch_limit(device) == 4096, "limit %u",
	      sgic_device_batch_limit(device));
	test_fill(vm, test_random());
	state = test_save(device);
	n = sgic_state_count(state);
	sgic_device_stats(device, &stats);
	CHECK(stats.batched && stats.registers == n + 512, "%u of %zu",
	      stats.registers, n);
	CHECK(stats.calls == (n + 512 + 4095) / 4096, "%u calls", stats.calls);
	CHECK(stats.ns > stats.tables_ns, "time");
	test_restore(device, state);
	sgic_device_stats(device, &stats);
	CHECK(stats.calls == (stats.registers + 4095) / 4096, "%u calls",
	      stats.calls);
	sgic_state_free(state);
	sgic_device_free(device);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "a state is what one-register calls read, batched or not",
		  oracle },
		{ "saved and restored by any path, a state is equal to the byte",
		  into_new },
		{ "so it is over another state", over_another },
		{ "a second save on the same object equals a fresh one",
		  second_save },
		{ "another shape is refused, with both in the message",
		  other_shape },
		{ "512 vCPUs: as few calls as the limit allows", calls },
	};

	test_timeout_s = 300;
	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
