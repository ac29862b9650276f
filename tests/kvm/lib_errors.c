// SPDX-License-Identifier: MIT
/*
 * What the library says when KVM refuses. Cases wrong-vcpu, running-vcpu,
 * half-way.
 */
#include <string.h>

#include "harness.h"
#include "internal.h"

#define NR_VCPUS 4

static const struct vm_config plain = {
	.nr_vcpus = NR_VCPUS,
	.nr_irqs = 96,
	.ram_bytes = 1 << 16,
};

/* Which vCPUs the device is told of; all of them if NULL */
static int new_device(const struct vm *vm, const uint64_t *mpidrs,
		      uint32_t nr_vcpus, struct sgic_error *error)
{
	const struct sgic_device_config config = {
		.size = sizeof(config),
		.gic_fd = vm->gic_fd,
		.mpidrs = mpidrs ? mpidrs : vm->mpidrs,
		.nr_vcpus = nr_vcpus,
	};
	struct sgic_device *device;
	int ret = sgic_device_new(&config, &device, error);

	if (!ret)
		sgic_device_free(device);
	return ret;
}

static void check_error(const struct sgic_error *error, enum sgic_step step,
			int32_t vcpu, const char *part)
{
	CHECK(error->step == step && error->vcpu == vcpu,
	      "step %d, vCPU %d: %s", error->step, error->vcpu, error->message);
	CHECK(strstr(error->message, part), "no '%s' in: %s", part,
	      error->message);
}

static void wrong_mpidrs(void)
{
	struct vm *vm = batch_vm(&plain);
	struct sgic_error error = { 0 };
	uint64_t mpidrs[NR_VCPUS];

	CHECK_RET(new_device(vm, NULL, NR_VCPUS, &error), 0);

	/* all under vCPU 0's */
	memset(mpidrs, 0, sizeof(mpidrs));
	CHECK_RET(new_device(vm, mpidrs, NR_VCPUS, &error), -EINVAL);
	check_error(&error, SGIC_STEP_ARGUMENT, 1, "vCPUs 0 and 1");
	/* one that no vCPU has */
	memcpy(mpidrs, vm->mpidrs, sizeof(mpidrs));
	mpidrs[2] = UNKNOWN_MPIDR;
	CHECK_RET(new_device(vm, mpidrs, NR_VCPUS, &error), -EINVAL);
	check_error(&error, SGIC_STEP_TOPOLOGY, 2, "vCPU 2");
	/* one missing, in the middle or at the end */
	memcpy(mpidrs, vm->mpidrs, sizeof(mpidrs));
	mpidrs[1] = mpidrs[NR_VCPUS - 1];
	CHECK_RET(new_device(vm, mpidrs, NR_VCPUS - 1, &error), -EXDEV);
	check_error(&error, SGIC_STEP_TOPOLOGY, 1, "a vCPU is missing");
	CHECK_RET(new_device(vm, NULL, NR_VCPUS - 1, &error), -EXDEV);
	check_error(&error, SGIC_STEP_TOPOLOGY, -1, "a vCPU is missing");
	CHECK_RET(new_device(vm, NULL, 1, &error), -EXDEV);
}

static void other_devices(void)
{
	struct vm_config config = plain;
	struct vm *vm = batch_vm(&config);
	int gic_fd = vm->gic_fd;
	struct sgic_error error = { 0 };

	vm->gic_fd = vm->fd;
	CHECK_RET(new_device(vm, NULL, NR_VCPUS, &error), -ENODEV);
	check_error(&error, SGIC_STEP_PROBE, -1, "is no VGICv3");
	vm->gic_fd = -1;
	CHECK_RET(new_device(vm, NULL, NR_VCPUS, &error), -ENODEV);
	vm->gic_fd = gic_fd;

	config.no_init = true;
	vm = batch_vm(&config);
	CHECK_RET(new_device(vm, NULL, NR_VCPUS, &error), -EBUSY);
	check_error(&error, SGIC_STEP_TOPOLOGY, -1, "_CTRL_INIT");
}

static int is_others(const struct sgic_value *a, const struct sgic_value *b,
		     void *data)
{
	const int32_t *vcpu = data;

	if (a->vcpu == *vcpu)
		return 0;
	CHECK(false, "%s: %#llx and %#llx", a->name, (unsigned long long)a->val,
	      (unsigned long long)b->val);
	return 1;
}

/* Nothing has been touched, and the message is the same on both paths. */
static void busy(uint32_t flags)
{
	struct vm *vm = batch_vm(&plain);
	struct sgic_device *device = test_device(vm, flags);
	struct sgic_state *state, *before, *filled;
	struct sgic_error error = { 0 };
	struct guest guest;
	int32_t vcpu = 2;

	before = test_save(device);
	state = test_save(device);
	test_fill(vm, test_random());
	filled = test_save(device);

	guest_start(&guest, vm, vcpu);
	CHECK_RET(sgic_device_save(device, state, &error), -EBUSY);
	check_error(&error, SGIC_STEP_REGISTER, -1,
		    "reading the registers while a vCPU is in KVM_RUN");
	CHECK_EQUAL(state, before, "the state after a failed save");
	CHECK_RET(sgic_device_restore(device, state, &error), -EBUSY);
	check_error(&error, SGIC_STEP_REGISTER, -1,
		    "writing the registers while a vCPU is in KVM_RUN");
	CHECK(!error.touched, "touched");
	CHECK_RET(new_device(vm, NULL, NR_VCPUS, &error), -EBUSY);
	check_error(&error, SGIC_STEP_TOPOLOGY, -1, "a vCPU is in KVM_RUN");
	guest_stop(&guest);

	CHECK_RET(sgic_device_save(device, state, &error), 0);
	/* The vCPU that ran has its own state, with its timer's line. */
	sgic_state_compare(state, filled, is_others, &vcpu, NULL);
	sgic_state_free(state);
	sgic_state_free(before);
	sgic_state_free(filled);
	sgic_device_free(device);
}

static void running(void)
{
	busy(0);
	busy(SGIC_DEVICE_NO_BATCH);
}

/* With the ITS, the first call of all is another one. */
static void running_its(void)
{
	struct vm_config config = plain;
	struct sgic_error error = { 0 };
	struct sgic_device *device;
	struct sgic_state *state;
	struct guest guest;
	struct vm *vm;

	config.its = true;
	vm = batch_vm(&config);
	device = test_device(vm, 0);
	state = test_save(device);
	guest_start(&guest, vm, 0);
	CHECK_RET(sgic_device_save(device, state, &error), -EBUSY);
	check_error(&error, SGIC_STEP_PENDING_TABLES, -1, "a vCPU is in");
	CHECK_RET(sgic_device_restore(device, state, &error), -EBUSY);
	check_error(&error, SGIC_STEP_ITS_REGISTER, -1, "a vCPU is in");
	CHECK(error.its == 0 && !error.touched, "ITS %d, touched %d", error.its,
	      error.touched);
	guest_stop(&guest);
	test_restore(device, state);
	sgic_state_free(state);
	sgic_device_free(device);
}

/* A state whose register @name has another value; else as saved */
static void change(struct sgic_state *state, const char *name, uint64_t val)
{
	struct sgic_value value;
	size_t i;

	for (i = 0; i < sgic_state_count(state); i++) {
		sgic_state_value(state, i, &value);
		if (!strcmp(value.name, name)) {
			state->values[i] = val;
			return;
		}
	}
	REQUIRE(false, "no register %s", name);
}

/*
 * KVM refuses a distributor of another implementer, and a CPU interface
 * without system registers. All other registers are written.
 */
static void refused(uint32_t flags)
{
	static const struct {
		const char *name;
		uint64_t val;
		int32_t vcpu;
		uint32_t group;
	} registers[] = {
		{ "GICD_IIDR", 0x12345678, -1, DIST },
		{ "ICC_SRE_EL1 (vCPU 2)", 0, 2, SYSREGS },
	};
	struct sgic_state *good, *state, *after;
	struct vm *from = batch_vm(&plain), *to;
	struct sgic_error error = { 0 };
	struct sgic_device *device;

	test_fill(from, test_random());
	good = test_state(from);
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		to = batch_vm(&plain);
		device = test_device(to, flags);
		state = test_state(from);
		change(state, registers[i].name, registers[i].val);
		CHECK_RET(sgic_device_restore(device, state, &error), -EINVAL);
		check_error(&error, SGIC_STEP_REGISTER, registers[i].vcpu,
			    registers[i].name);
		CHECK(error.touched && error.group == registers[i].group,
		      "touched %d, group %u", error.touched, error.group);
		CHECK(strstr(error.message, "Invalid argument"), "%s",
		      error.message);
		after = test_save(device);
		CHECK_EQUAL(good, after, "all other registers");
		/* the source is as it was */
		sgic_state_free(state);
		state = test_state(from);
		CHECK_EQUAL(good, state, "the source");
		sgic_state_free(state);
		sgic_state_free(after);
		sgic_device_free(device);
		test_vm_destroy(to);
	}
	sgic_state_free(good);
}

static void half_way(void)
{
	refused(0);
	refused(SGIC_DEVICE_NO_BATCH);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "MPIDRs that are twice, unknown or missing are refused",
		  wrong_mpidrs },
		{ "what is no VGICv3, or is not ready, is refused",
		  other_devices },
		{ "EBUSY while a vCPU runs, nothing touched", running },
		{ "EBUSY while a vCPU runs, with an ITS", running_its },
		{ "a register that KVM refuses is named, the others written",
		  half_way },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
