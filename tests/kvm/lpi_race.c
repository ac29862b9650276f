// SPDX-License-Identifier: MIT
/*
 * Two threads inject while the translations come and go. An LPI whose
 * translation stays must be pending in the end, if its injection was said to
 * have worked; the kernel's log says the rest, above all with KASAN, lockdep
 * and the reference count checks on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "its.h"

#define ROUND_MS 150
#define ROUNDS	 (6 * test_long)
#define NR_VCPUS 4
#define NR_LPIS	 128
#define NR_FDS	 32
#define NR_FEW	 4 /* LPIs, to have both threads inject the same */

#define SAVE_PENDING_TABLES KVM_DEV_ARM_VGIC_SAVE_PENDING_TABLES

struct race {
	struct vm *vm;
	struct its its;
	int (*disturb)(struct its *its);
	uint32_t nr_injected; /* LPIs */
	atomic_bool stop;
	atomic_uint disturbed;
	atomic_uint injected;
	atomic_uint refused;
	atomic_bool delivered[NR_LPIS];
};

static void sleep_ms(unsigned int ms)
{
	const struct timespec ts = { .tv_nsec = ms * 1000000L };

	nanosleep(&ts, NULL);
}

/* LPIs of odd devices come and go in the tests that unmap some. */
static bool is_churned(uint32_t lpi)
{
	return lpi / ITS_EVENTS % 2;
}

static void *inject_thread(void *arg)
{
	struct race *race = arg;
	uint32_t i;
	int ret;

	for (i = 0; !race->stop; i = (i + 7) % race->nr_injected) {
		ret = its_signal(race->vm, i);
		if (ret == 1) {
			race->delivered[i] = true;
			race->injected++;
		} else {
			CHECK(!ret || ret == -EBUSY, "LPI %u: %s", i,
			      errno_name(ret));
			race->refused++;
		}
	}
	return NULL;
}

static void *disturb_thread(void *arg)
{
	struct race *race = arg;

	while (!race->stop) {
		if (!CHECK(!race->disturb(&race->its), "disturbing failed"))
			break;
		race->disturbed++;
	}
	return NULL;
}

static void check_pending(struct race *race, bool churned_too)
{
	uint32_t i, vcpu;
	bool pending;

	CHECK_RET(vm_set(race->vm, KVM_DEV_ARM_VGIC_GRP_CTRL,
			 SAVE_PENDING_TABLES, 0),
		  0);
	for (i = 0; i < NR_LPIS; i++) {
		if (!race->delivered[i] || (is_churned(i) && !churned_too))
			continue;
		pending = false;
		for (vcpu = 0; vcpu < NR_VCPUS; vcpu++)
			pending |= its_pending_bit(&race->its, vcpu, i);
		CHECK(pending, "LPI %u was injected and is lost", i);
	}
}

static void start_vm(struct race *race)
{
	const struct vm_config config = {
		.nr_vcpus = NR_VCPUS,
		.nr_irqs = 64,
		.ram_bytes = its_ram_bytes(NR_VCPUS),
		.its = true,
	};

	race->vm = test_vm(&config);
	REQUIRE_RET(its_start(&race->its, race->vm, NR_LPIS), 0);
	REQUIRE_RET(its_map(&race->its), 0);
}

enum {
	LOSES_ALL, /* pending state is lost by what is done */
	LOSES_CHURNED,
	LOSES_NONE,
};

/* Each round has a VM of its own, where no LPI is queued yet. */
static void race_few(int (*disturb)(struct its *its), int loses, uint32_t lpis)
{
	struct race race;
	pthread_t threads[3];
	unsigned int disturbed = 0, injected = 0, refused = 0;
	unsigned int i;
	int t;

	for (i = 0; i < ROUNDS; i++) {
		memset(&race, 0, sizeof(race));
		race.disturb = disturb;
		race.nr_injected = lpis;
		start_vm(&race);
		for (t = 0; t < 3; t++)
			REQUIRE(!pthread_create(&threads[t], NULL,
						t < 2 ? inject_thread
						      : disturb_thread,
						&race),
				"no thread");
		sleep_ms(ROUND_MS);
		race.stop = true;
		for (t = 0; t < 3; t++)
			pthread_join(threads[t], NULL);
		if (loses != LOSES_ALL)
			check_pending(&race, loses == LOSES_NONE);
		test_vm_destroy(race.vm);
		disturbed += race.disturbed;
		injected += race.injected;
		refused += race.refused;
	}
	test_diag("%u times, %u injected, %u refused", disturbed, injected,
		  refused);
	CHECK(disturbed && injected, "there was no race");
}

static void race_against(int (*disturb)(struct its *its), int loses)
{
	race_few(disturb, loses, NR_LPIS);
}

static int discard_and_map(struct its *its)
{
	uint32_t i;

	for (i = 0; i < NR_LPIS; i++)
		if (is_churned(i))
			its_discard(its, i);
	for (i = 0; i < NR_LPIS; i++)
		if (is_churned(i))
			its_mapti(its, i);
	return its_run(its);
}

static int unmap_devices(struct its *its)
{
	uint32_t i;

	for (i = 1; i < NR_LPIS / ITS_EVENTS; i += 2) {
		its_mapd(its, i, false);
		its_mapd(its, i, true);
	}
	for (i = 0; i < NR_LPIS; i++)
		if (is_churned(i))
			its_mapti(its, i);
	return its_run(its);
}

static int remap_few(struct its *its)
{
	uint32_t i;

	for (i = 0; i < NR_FEW; i++) {
		its_config(its, i, false);
		its_mapti(its, i);
	}
	return its_run(its);
}

/*
 * An LPI that is cached but in no ap_list loses its last reference with its
 * mapping, while it may be about to be queued. So it is cached while it is
 * disabled, and enabled just before it is discarded. What was queued all the
 * same is flushed by disabling the vCPU's LPIs.
 */
static int discard_unqueued(struct its *its)
{
	const struct timespec to_cache_them = { .tv_nsec = 50000 };
	uint32_t i;
	int ret;

	/* The first time, they are mapped already. */
	for (i = 0; i < NR_FEW; i++)
		its_discard(its, i);
	ret = remap_few(its);
	if (ret)
		return ret;
	nanosleep(&to_cache_them, NULL);

	for (i = 0; i < NR_FEW; i++) {
		its_clear(its, i);
		its_config(its, i, true);
		its_inv(its, i);
		its_discard(its, i);
	}
	ret = its_run(its);
	for (i = 0; !ret && i < NR_VCPUS; i++) {
		ret = its_enable_lpis(its, i, false);
		if (!ret)
			ret = its_enable_lpis(its, i, true);
	}
	return ret;
}

static int move(struct its *its)
{
	uint32_t i;

	for (i = 0; i < NR_LPIS; i++)
		its_movi(its, i, (i + 1) % NR_VCPUS);
	its_movall(its, 0, 1);
	for (i = 0; i < NR_LPIS; i++)
		its_movi(its, i, i % NR_VCPUS);
	return its_run(its);
}

static int switch_its(struct its *its)
{
	int ret = its_set(its, GITS_CTLR, 0);
	uint32_t i;

	/* Nor is one from what was being cached when it was disabled. */
	for (i = 0; !ret && i < NR_LPIS; i++)
		CHECK(its_signal(its->vm, i) != 1,
		      "a disabled ITS injects MSI %u", i);
	return ret ? ret : its_set(its, GITS_CTLR, 1);
}

static int switch_lpis(struct its *its)
{
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && i < NR_VCPUS; i++) {
		ret = its_enable_lpis(its, i, false);
		if (!ret)
			ret = its_enable_lpis(its, i, true);
	}
	return ret;
}

static int save_and_restore(struct its *its)
{
	int ret = its_ctrl(its, KVM_DEV_ARM_ITS_SAVE_TABLES);

	if (!ret)
		ret = its_ctrl(its, KVM_DEV_ARM_ITS_CTRL_RESET);
	if (!ret)
		ret = its_set_registers(its);
	return ret ? ret : its_ctrl(its, KVM_DEV_ARM_ITS_RESTORE_TABLES);
}

static void race_discard(void)
{
	race_against(discard_and_map, LOSES_CHURNED);
}

static void race_mapd(void)
{
	race_against(unmap_devices, LOSES_CHURNED);
}

static void race_unqueued(void)
{
	race_few(discard_unqueued, LOSES_ALL, NR_FEW);
}

static void race_move(void)
{
	race_against(move, LOSES_NONE);
}

static void race_its(void)
{
	race_against(switch_its, LOSES_NONE);
}

static void race_lpis(void)
{
	race_against(switch_lpis, LOSES_ALL);
}

static void race_restore(void)
{
	race_against(save_and_restore, LOSES_ALL);
}

/* The end of a VM */

struct closing {
	int vm_fd;
	int fds[NR_FDS];
	atomic_bool stop;
};

static void *signal_thread(void *arg)
{
	struct closing *closing = arg;
	struct kvm_msi msi;
	uint32_t i;

	/* EBADF, in time */
	for (i = 0; !closing->stop; i = (i + 1) % NR_LPIS) {
		msi = its_msi(i);
		ioctl(closing->vm_fd, KVM_SIGNAL_MSI, &msi);
	}
	return NULL;
}

static void *eventfd_thread(void *arg)
{
	struct closing *closing = arg;
	const uint64_t one = 1;
	uint32_t i;

	for (i = 0; !closing->stop; i = (i + 1) % NR_FDS)
		if (write(closing->fds[i], &one, sizeof(one)) < 0)
			CHECK(errno == EAGAIN, "eventfd: %s", strerror(errno));
	return NULL;
}

static void add_irqfds(struct vm *vm, struct closing *closing)
{
	struct {
		struct kvm_irq_routing head;
		struct kvm_irq_routing_entry entries[NR_FDS];
	} routing = { .head.nr = NR_FDS };
	struct kvm_msi msi;
	uint32_t i;

	for (i = 0; i < NR_FDS; i++) {
		msi = its_msi(i);
		routing.entries[i] = (struct kvm_irq_routing_entry){
			.gsi = i,
			.type = KVM_IRQ_ROUTING_MSI,
			.flags = msi.flags,
			.u.msi.address_lo = msi.address_lo,
			.u.msi.data = msi.data,
			.u.msi.devid = msi.devid,
		};
	}
	REQUIRE(!ioctl(vm->fd, KVM_SET_GSI_ROUTING, &routing),
		"KVM_SET_GSI_ROUTING: %s", strerror(errno));
	for (i = 0; i < NR_FDS; i++) {
		struct kvm_irqfd irqfd = { .fd = closing->fds[i], .gsi = i };

		REQUIRE(!ioctl(vm->fd, KVM_IRQFD, &irqfd), "KVM_IRQFD: %s",
			strerror(errno));
	}
}

static void close_one(struct closing *closing)
{
	static struct race race;
	pthread_t threads[2];

	memset(&race, 0, sizeof(race));
	start_vm(&race);
	add_irqfds(race.vm, closing);
	closing->vm_fd = race.vm->fd;
	closing->stop = false;
	REQUIRE(!pthread_create(&threads[0], NULL, signal_thread, closing) &&
			!pthread_create(&threads[1], NULL, eventfd_thread,
					closing),
		"no thread");
	sleep_ms(10);
	test_vm_destroy(race.vm);
	closing->stop = true;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
}

static void race_close(void)
{
	struct closing closing;
	int i;

	for (i = 0; i < NR_FDS; i++) {
		closing.fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		REQUIRE(closing.fds[i] >= 0, "eventfd: %s", strerror(errno));
	}
	for (i = 0; i < 40 * (int)test_long; i++)
		close_one(&closing);
	for (i = 0; i < NR_FDS; i++)
		close(closing.fds[i]);
}

/* Memory */

static long free_kib(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	char line[128];
	long kib = -1;

	if (!f)
		return -1;
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "MemFree: %ld kB", &kib);
	fclose(f);
	return kib;
}

static void use_and_destroy(unsigned int times)
{
	static struct race race;
	uint32_t i;

	while (times--) {
		memset(&race, 0, sizeof(race));
		start_vm(&race);
		for (i = 0; i < NR_LPIS; i++)
			CHECK(its_signal(race.vm, i) == 1, "not injected");
		CHECK(!discard_and_map(&race.its), "remapping failed");
		for (i = 0; i < NR_LPIS; i++)
			CHECK(its_signal(race.vm, i) == 1, "not injected");
		test_vm_destroy(race.vm);
	}
	/* RCU frees some of it later. */
	sleep_ms(500);
}

/*
 * One interrupt leaked a VM and LPI would be several MiB. Memory has settled
 * at once, but for KASAN: it keeps what is freed back, up to one part in 32, and
 * may still be filling that up.
 */
static void memory_comes_back(void)
{
	long before, after, last, gone;
	int i;

	use_and_destroy(20);
	before = free_kib();
	if (before < 0)
		test_skip("no /proc/meminfo");
	for (i = 0, last = before + 4096; last - before > 512 && i < 40; i++) {
		last = before;
		use_and_destroy(20);
		before = free_kib();
	}
	/* What leaks does so each time. */
	for (i = 0, gone = 4096; gone >= 4096 && i < 5; i++) {
		use_and_destroy(200);
		after = free_kib();
		test_diag("%ld KiB free before, %ld after", before, after);
		gone = before - after;
		before = after;
	}
	CHECK(gone < 4096, "%ld KiB are gone, again and again", gone);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "injection against DISCARD and MAPTI", race_discard },
		{ "injection against MAPD", race_mapd },
		{ "injection against DISCARD of what no vCPU has queued",
		  race_unqueued },
		{ "injection against MOVI and MOVALL", race_move },
		{ "injection against the ITS disabled and enabled", race_its },
		{ "injection against LPIs disabled and enabled", race_lpis },
		{ "injection against tables saved, reset and restored",
		  race_restore },
		{ "injection against the end of the VM", race_close },
		{ "memory comes back", memory_comes_back },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
