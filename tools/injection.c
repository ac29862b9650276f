// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <linux/kvm.h>

#include "injection.h"
#include "its.h"
#include "swiftgic.h"

#define NR_IRQS	      64
#define TIMED_ROUNDS  5
#define MIN_TIMED     32 /* injections a round: reading the clock costs, too */
#define WORK_DELAY_NS 50000000

struct bed {
	const struct injection *what;
	struct vm vm;
	struct its its;
	int *fds; /* an eventfd for each LPI */
};

static int fail(const char *step, int err)
{
	fprintf(stderr, "swiftgic: inject: %s: %s\n", step, strerror(-err));
	return EXIT_FAILED;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void close_fds(struct bed *bed)
{
	uint32_t i;

	for (i = 0; bed->fds && i < bed->what->lpis; i++)
		if (bed->fds[i] >= 0)
			close(bed->fds[i]);
	free(bed->fds);
}

/* MSI routes, and an irqfd on each; GSI and LPI number are the same. */
static int open_irqfds(struct bed *bed)
{
	const uint32_t n = bed->what->lpis;
	const struct rlimit limit = { n + 1024, n + 1024 };
	struct kvm_irq_routing *routing;
	struct kvm_irqfd irqfd;
	struct kvm_msi msi;
	uint32_t i;
	int ret;

	setrlimit(RLIMIT_NOFILE, &limit);
	bed->fds = malloc(n * sizeof(*bed->fds));
	routing = calloc(1, sizeof(*routing) + n * sizeof(routing->entries[0]));
	if (!bed->fds || !routing) {
		free(routing);
		free(bed->fds);
		bed->fds = NULL;
		return fail("allocating the routes", -ENOMEM);
	}
	memset(bed->fds, -1, n * sizeof(*bed->fds));

	routing->nr = n;
	for (i = 0; i < n; i++) {
		msi = its_msi(i);
		routing->entries[i] = (struct kvm_irq_routing_entry){
			.gsi = i,
			.type = KVM_IRQ_ROUTING_MSI,
			.flags = msi.flags,
			.u.msi = {
				.address_lo = msi.address_lo,
				.address_hi = msi.address_hi,
				.data = msi.data,
				.devid = msi.devid,
			},
		};
	}
	ret = ioctl(bed->vm.fd, KVM_SET_GSI_ROUTING, routing) ? -errno : 0;
	free(routing);
	if (ret)
		return fail("KVM_SET_GSI_ROUTING", ret);

	for (i = 0; i < n; i++) {
		bed->fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (bed->fds[i] < 0)
			return fail("eventfd", -errno);
		irqfd = (struct kvm_irqfd){ .fd = bed->fds[i], .gsi = i };
		if (ioctl(bed->vm.fd, KVM_IRQFD, &irqfd))
			return fail("KVM_IRQFD", -errno);
	}
	return EXIT_OK;
}

static int inject_all(struct bed *bed)
{
	const uint32_t n = bed->what->lpis;
	const uint64_t one = 1;
	struct kvm_msi msi;
	uint32_t i;

	if (bed->what->path == INJECT_IRQFD) {
		for (i = 0; i < n; i++)
			if (write(bed->fds[i], &one, sizeof(one)) < 0)
				return fail("writing an eventfd", -errno);
		return EXIT_OK;
	}
	msi = its_msi(0);
	for (i = 0; i < n; i++) {
		msi.devid = i / ITS_EVENTS;
		msi.data = i % ITS_EVENTS;
		if (ioctl(bed->vm.fd, KVM_SIGNAL_MSI, &msi) != 1)
			return fail("KVM_SIGNAL_MSI", -errno);
	}
	return EXIT_OK;
}

/*
 * An irqfd whose translation is not cached injects from a workqueue; wait for
 * that.
 */
static void wait_for_work(const struct bed *bed)
{
	const struct timespec delay = { .tv_nsec = WORK_DELAY_NS };

	if (bed->what->path == INJECT_IRQFD)
		nanosleep(&delay, NULL);
}

/* Have KVM see the same configuration of each LPI. */
static int configure(struct bed *bed, bool enabled)
{
	uint32_t i;

	for (i = 0; i < bed->what->lpis; i++) {
		its_config(&bed->its, i, enabled);
		its_inv(&bed->its, i);
	}
	return its_run(&bed->its);
}

/*
 * An LPI that is disabled becomes pending, but is not queued to a vCPU: so
 * its pending state can be cleared without one that runs. CLEAR and INV leave
 * the cached translation alone.
 */
static int make_idle(struct bed *bed)
{
	uint32_t i;
	int ret;

	for (i = 0; i < bed->what->lpis; i++)
		its_clear(&bed->its, i);
	ret = its_run(&bed->its);
	return ret ? ret : configure(bed, true);
}

/* Every translation is in the cache after this. */
static int cache_all(struct bed *bed)
{
	int ret;

	if (bed->what->state == INJECT_IDLE) {
		ret = configure(bed, false);
		if (ret)
			return fail("disabling the LPIs", ret);
	}
	ret = inject_all(bed);
	wait_for_work(bed);
	return ret;
}

static int time_pending(struct bed *bed, double *insns)
{
	uint32_t passes = 1 + (MIN_TIMED - 1) / bed->what->lpis, i;
	uint64_t start, end;
	int ret = EXIT_OK;

	start = now();
	for (i = 0; !ret && i < passes; i++)
		ret = inject_all(bed);
	end = now();
	*insns = (double)(end - start) / ((uint64_t)passes * bed->what->lpis);
	return ret;
}

static int time_idle(struct bed *bed, double *insns)
{
	uint64_t start, end;
	int ret;

	ret = make_idle(bed);
	if (ret)
		return fail("clearing the LPIs", ret);
	start = now();
	ret = inject_all(bed);
	end = now();
	*insns = (double)(end - start) / bed->what->lpis;
	return ret;
}

static int start(struct bed *bed)
{
	const struct vm_config config = {
		.nr_vcpus = bed->what->vcpus,
		.nr_irqs = NR_IRQS,
		.ram_bytes = its_ram_bytes(bed->what->vcpus),
		.its = true,
	};
	int ret;

	ret = vm_create(&bed->vm, &config);
	if (ret) {
		fprintf(stderr, "swiftgic: inject: %s\n", bed->vm.err);
		return ret == -ENODEV ? EXIT_CANNOT : EXIT_FAILED;
	}
	ret = its_start(&bed->its, &bed->vm, bed->what->lpis);
	if (!ret)
		ret = its_map(&bed->its);
	if (ret)
		ret = fail("mapping the LPIs", ret);
	else if (bed->what->path == INJECT_IRQFD)
		ret = open_irqfds(bed);
	if (!ret)
		ret = cache_all(bed);
	if (ret) {
		close_fds(bed);
		vm_destroy(&bed->vm);
	}
	return ret;
}

static void stop(struct bed *bed)
{
	close_fds(bed);
	vm_destroy(&bed->vm);
}

/*
 * The least of some rounds: the timer of the host's kernel interrupts some of
 * them. A queued LPI stays queued, so each idle round has a VM of its own.
 */
int injection_measure(const struct injection *injection, double *insns)
{
	struct bed bed = { .what = injection };
	double round_insns = 0;
	int ret = EXIT_OK;
	int i;

	for (i = 0; !ret && i < TIMED_ROUNDS; i++) {
		if (i == 0 || injection->state == INJECT_IDLE) {
			bed = (struct bed){ .what = injection };
			ret = start(&bed);
			if (ret)
				return ret;
		}
		if (injection->state == INJECT_IDLE) {
			ret = time_idle(&bed, &round_insns);
			stop(&bed);
		} else {
			ret = time_pending(&bed, &round_insns);
		}
		if (i == 0 || round_insns < *insns)
			*insns = round_insns;
	}
	if (injection->state == INJECT_PENDING)
		stop(&bed);
	return ret;
}
