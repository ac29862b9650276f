// SPDX-License-Identifier: MIT
/*
 * An ITS with LPIs that are mapped, and some pending: saved, and restored into
 * another VM or the same one. Case tables-missing.
 */
#include <string.h>
#include <sys/ioctl.h>

#include "harness.h"
#include "its.h"

#define NR_VCPUS 4
#define NR_LPIS	 128

static struct vm *its_vm(void)
{
	const struct vm_config config = {
		.nr_vcpus = NR_VCPUS,
		.nr_irqs = 64,
		.ram_bytes = its_ram_bytes(NR_VCPUS),
		.its = true,
	};

	return batch_vm(&config);
}

/* A VM whose guest has mapped LPIs; those of @pending are, one in @step */
static struct vm *lpi_vm(struct its *its, uint32_t nr_lpis, uint32_t step)
{
	struct vm *vm = its_vm();
	uint32_t i;

	REQUIRE_RET(its_start(its, vm, nr_lpis), 0);
	REQUIRE_RET(its_map(its), 0);
	for (i = 0; i < nr_lpis; i += step)
		CHECK(its_signal(vm, i) == 1, "LPI %u: not injected", i);
	return vm;
}

static void copy_ram(struct vm *to, const struct vm *from)
{
	memcpy(to->ram, from->ram, from->config.ram_bytes);
}

/* Each of the LPIs is pending, or not, on the vCPU that it is for. */
static void check_pending(struct vm *vm, uint32_t nr_lpis, uint32_t step)
{
	struct its its = { .vm = vm };
	uint32_t i, vcpu;
	bool want;

	for (vcpu = 0; vcpu < NR_VCPUS; vcpu++)
		its_clear_pending_table(&its, vcpu);
	CHECK_RET(vm_set(vm, KVM_DEV_ARM_VGIC_GRP_CTRL,
			 KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES, 0),
		  0);
	for (i = 0; i < nr_lpis; i++) {
		for (vcpu = 0; vcpu < NR_VCPUS; vcpu++) {
			want = step && i % step == 0 && vcpu == i % NR_VCPUS;
			CHECK(its_pending_bit(&its, vcpu, i) == want,
			      "LPI %u, vCPU %u: %s pending", i, vcpu,
			      want ? "not" : "is");
		}
	}
}

/* All LPIs can be injected, and no others. */
static void check_injection(struct vm *vm, uint32_t nr_lpis)
{
	uint32_t i;

	for (i = 0; i < nr_lpis; i++)
		CHECK(its_signal(vm, i) == 1, "LPI %u: not injected", i);
	CHECK_RET(its_signal(vm, nr_lpis), 0);
	check_pending(vm, nr_lpis, 1);
}

static void move(uint32_t save_flags, uint32_t restore_flags)
{
	struct its its;
	struct vm *from = lpi_vm(&its, NR_LPIS, 3), *to = its_vm();
	struct sgic_device *source = test_device(from, save_flags);
	struct sgic_device *target = test_device(to, restore_flags);
	struct sgic_state *state = test_save(source), *again;

	copy_ram(to, from);
	test_restore(target, state);
	again = test_save(target);
	CHECK_EQUAL(state, again, "restored");
	check_pending(to, NR_LPIS, 3);
	check_injection(to, NR_LPIS);
	/* and the source can go on */
	check_pending(from, NR_LPIS, 3);
	check_injection(from, NR_LPIS);
	sgic_state_free(state);
	sgic_state_free(again);
	sgic_device_free(source);
	sgic_device_free(target);
	test_vm_destroy(from);
	test_vm_destroy(to);
}

static void into_new(void)
{
	move(0, 0);
	move(0, SGIC_DEVICE_NO_BATCH);
	move(SGIC_DEVICE_NO_BATCH, 0);
}

/* Over a guest that had other LPIs mapped, all of them pending */
static void over_another(void)
{
	struct its its, others;
	struct vm *from = lpi_vm(&its, ITS_EVENTS, 2);
	struct vm *to = lpi_vm(&others, NR_LPIS, 1);
	struct sgic_device *device = test_device(to, 0);
	struct sgic_state *state = test_state(from);

	copy_ram(to, from);
	test_restore(device, state);
	check_pending(to, ITS_EVENTS, 2);
	check_injection(to, ITS_EVENTS);
	sgic_state_free(state);
	sgic_device_free(device);
}

/* Back to what it was, in the same VM */
static void back(void)
{
	static uint8_t ram[1 << 21];
	struct its its;
	struct vm *vm = lpi_vm(&its, NR_LPIS, 3);
	struct sgic_device *device = test_device(vm, 0);
	struct sgic_state *state = test_save(device);
	uint32_t i;

	REQUIRE(vm->config.ram_bytes <= sizeof(ram), "no room");
	memcpy(ram, vm->ram, vm->config.ram_bytes);
	for (i = 0; i < NR_LPIS; i++)
		its_signal(vm, i);
	its_discard(&its, 5);
	its_movi(&its, 6, 0);
	CHECK_RET(its_run(&its), 0);

	memcpy(vm->ram, ram, vm->config.ram_bytes);
	test_restore(device, state);
	check_pending(vm, NR_LPIS, 3);
	check_injection(vm, NR_LPIS);
	sgic_state_free(state);
	sgic_device_free(device);
}

static void check_error(int ret, const struct sgic_error *error,
			enum sgic_step step, int32_t its, bool touched,
			const char *what)
{
	CHECK_RET(ret, -EFAULT);
	CHECK(error->err == -EFAULT && error->step == step &&
		      error->its == its && error->touched == touched,
	      "errno %d, step %d, ITS %d, touched %d", error->err, error->step,
	      error->its, error->touched);
	CHECK(strstr(error->message, what) && strstr(error->message, "memory"),
	      "no '%s' in: %s", what, error->message);
	test_diag("%s", error->message);
}

/* The snapshot tool left the pages of the tables out. */
static void tables_missing(void)
{
	struct its its;
	struct vm *from = lpi_vm(&its, NR_LPIS, 3);
	const struct vm_config config = {
		.nr_vcpus = NR_VCPUS,
		.nr_irqs = 64,
		.its = true,
	};
	struct vm *to = batch_vm(&config);
	struct sgic_device *source = test_device(from, 0);
	struct sgic_device *target = test_device(to, 0);
	struct sgic_state *state = test_save(source), *before;
	struct kvm_userspace_memory_region none = {
		.guest_phys_addr = VM_RAM_BASE,
	};
	struct sgic_error error;
	uint64_t val;

	check_error(sgic_device_restore(target, state, &error), &error,
		    SGIC_STEP_ITS_TABLES, 0, true, "ITS 0");
	/* the ITS is off: no MSI goes by tables that are not there */
	to->ram = NULL;
	its.vm = to;
	CHECK_RET(its_get(&its, GITS_CTLR, &val), 0);
	CHECK(!(val & 1), "the ITS is enabled");

	/* of the source, a save fails, too, and says of what */
	before = test_save(source);
	REQUIRE(!ioctl(from->fd, KVM_SET_USER_MEMORY_REGION, &none),
		"removing guest memory");
	check_error(sgic_device_save(source, state, &error), &error,
		    SGIC_STEP_PENDING_TABLES, -1, false, "LPI pending");
	CHECK_EQUAL(state, before, "after a save that failed");
	sgic_state_free(state);
	sgic_state_free(before);
	sgic_device_free(source);
	sgic_device_free(target);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "LPIs, mapped and pending, go into a new VM", into_new },
		{ "LPIs replace those of a VM that had others", over_another },
		{ "LPIs go back to what they were, in the same VM", back },
		{ "guest memory that is missing is named", tables_missing },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
