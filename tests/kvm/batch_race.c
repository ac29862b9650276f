// SPDX-License-Identifier: MIT
/* Batches while all else goes on, for a bounded while */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define SECONDS	 3
#define NR_VCPUS 8
#define NR_IRQS	 288

struct race {
	struct vm *vm;
	struct sgic_reg *regs;
	size_t nr_regs;
	atomic_bool stop;
	atomic_uint done; /* batches that went through */
	atomic_uint busy;
};

static void sleep_ms(unsigned int ms)
{
	const struct timespec ts = { .tv_nsec = ms * 1000000L };

	nanosleep(&ts, NULL);
}

/* The whole state, again and again; what is put is what was got. */
static void run_batches(struct race *race, bool write)
{
	static _Thread_local entry_t entries[KVM_DEV_ARM_VGIC_BATCH_MAX];
	size_t n = race->nr_regs, i;
	int ret;

	for (i = 0; i < n; i++)
		entries[i] = entry(race->regs[i].group, race->regs[i].attr, 0);
	while (!race->stop) {
		ret = vm_batch(race->vm, false, entries, n);
		if (!ret && write)
			ret = vm_batch(race->vm, true, entries, n);
		CHECK(!ret || ret == -EBUSY, "batch: %s", errno_name(ret));
		if (ret)
			race->busy++;
		else
			race->done++;
	}
}

static void *get_thread(void *arg)
{
	run_batches(arg, false);
	return NULL;
}

static void *put_thread(void *arg)
{
	run_batches(arg, true);
	return NULL;
}

static void *inject_thread(void *arg)
{
	struct race *race = arg;
	struct kvm_irq_level irq;
	struct kvm_msi msi = {
		.address_lo = VM_ITS_BASE + 0x10040, /* GITS_TRANSLATER */
		.flags = KVM_MSI_VALID_DEVID,
	};
	unsigned int i;

	for (i = 0; !race->stop; i++) {
		irq.irq = KVM_ARM_IRQ_TYPE_SPI << KVM_ARM_IRQ_TYPE_SHIFT |
			  (32 + i % (NR_IRQS - 32));
		irq.level = i / (NR_IRQS - 32) % 2;
		CHECK(!ioctl(race->vm->fd, KVM_IRQ_LINE, &irq),
		      "KVM_IRQ_LINE: %s", strerror(errno));
		/* no guest mapped it, so nobody wants it; it may not crash */
		msi.data = i;
		ioctl(race->vm->fd, KVM_SIGNAL_MSI, &msi);
	}
	return NULL;
}

static void *create_thread(void *arg)
{
	const struct vm_config config = {
		.nr_vcpus = 2,
		.nr_irqs = 64,
		.its = true,
	};
	struct race *race = arg;
	entry_t e = entry(DIST, GICD_IIDR, 0);
	struct vm vm;

	while (!race->stop) {
		if (!CHECK_RET(vm_create(&vm, &config), 0))
			break;
		CHECK_RET(vm_batch(&vm, false, &e, 1), 0);
		vm_destroy(&vm);
	}
	return NULL;
}

/* A vCPU that runs half of the time, so that both outcomes are frequent */
static void run_and_pause(struct race *race)
{
	struct timespec start, now;
	struct guest guest;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		guest_start(&guest, race->vm, 0);
		sleep_ms(5);
		guest_stop(&guest);
		sleep_ms(20);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < SECONDS * test_long);
}

static void race_all(void)
{
	static void *(*const functions[])(void *) = {
		get_thread,
		put_thread,
		inject_thread,
		create_thread,
	};
	const struct vm_config config = {
		.nr_vcpus = NR_VCPUS,
		.nr_irqs = NR_IRQS,
		.ram_bytes = 1 << 16,
		.its = true,
	};
	pthread_t threads[ARRAY_SIZE(functions)];
	static struct sgic_reg regs[KVM_DEV_ARM_VGIC_BATCH_MAX];
	struct race race = { .vm = batch_vm(&config), .regs = regs };
	struct sgic_shape shape;
	size_t i;

	REQUIRE(!vm_shape(race.vm, &shape), "%s", race.vm->err);
	race.nr_regs = sgic_regs_count(&shape, SGIC_SAVE);
	REQUIRE(race.nr_regs <= ARRAY_SIZE(regs), "too many registers");
	sgic_regs_fill(&shape, SGIC_SAVE, regs);

	for (i = 0; i < ARRAY_SIZE(threads); i++)
		REQUIRE(!pthread_create(&threads[i], NULL, functions[i], &race),
			"no thread");
	run_and_pause(&race);
	race.stop = true;
	for (i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);

	test_diag("%u batches, %u times busy", race.done, race.busy);
	CHECK(race.done, "no batch went through");
	CHECK(race.busy, "no batch met a running vCPU");
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "two threads batching, others injecting, running, creating",
		  race_all },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
