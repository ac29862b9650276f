// SPDX-License-Identifier: MIT
#define _GNU_SOURCE /* the affinity of a thread */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
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
#define LOCK_ROUNDS   4
#define LOCK_WAITS    100
#define MAX_THREADS   8
#define RATE_NS	      1000000000ULL

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

/* One in @step of the LPIs, from @first on */
static int inject_some(struct bed *bed, uint32_t first, uint32_t step)
{
	const uint32_t n = bed->what->lpis;
	const uint64_t one = 1;
	struct kvm_msi msi;
	uint32_t i;

	if (bed->what->path == INJECT_IRQFD) {
		for (i = first; i < n; i += step)
			if (write(bed->fds[i], &one, sizeof(one)) < 0)
				return fail("writing an eventfd", -errno);
		return EXIT_OK;
	}
	msi = its_msi(0);
	for (i = first; i < n; i += step) {
		msi.devid = i / ITS_EVENTS;
		msi.data = i % ITS_EVENTS;
		if (ioctl(bed->vm.fd, KVM_SIGNAL_MSI, &msi) != 1)
			return fail("KVM_SIGNAL_MSI", -errno);
	}
	return EXIT_OK;
}

static int inject_all(struct bed *bed)
{
	return inject_some(bed, 0, 1);
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

/* Lock statistics */

/*
 * Is this class of locks one that a VM has one of, or its ITS or its
 * distributor? The others are an interrupt's, a vCPU's or a CPU's. SRCU and RCU
 * are in the statistics as well, but keep nobody out.
 */
static bool is_vm_wide(const char *class)
{
	static const char *const parts[] = {
		"lpi_list_lock", "xa_lock", "kvm->", "its->", "dist->",
	};
	size_t i;

	if (strstr(class, "srcu"))
		return false;
	for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(class, parts[i]))
			return true;
	return false;
}

struct lock_counts {
	uint64_t vm_wide;
	uint64_t irq_lock; /* of the interrupts: every injection takes it */
};

/* Acquisitions since the kernel booted */
static int count_locks(struct lock_counts *counts)
{
	FILE *f = fopen("/proc/lock_stat", "r");
	unsigned long long acquired;
	char line[512], *figures;

	if (!f)
		return -errno;
	*counts = (struct lock_counts){ 0 };
	while (fgets(line, sizeof(line), f)) {
		figures = strrchr(line, ':');
		if (!figures)
			continue;
		*figures++ = '\0';
		/* the eighth figure, after what is about contention */
		if (sscanf(figures, "%*s %*s %*s %*s %*s %*s %*s %llu",
			   &acquired) != 1)
			continue;
		if (is_vm_wide(line))
			counts->vm_wide += acquired;
		else if (strstr(line, "&irq->irq_lock"))
			counts->irq_lock += acquired;
	}
	fclose(f);
	return 0;
}

static int count_round(struct bed *bed, double *locks)
{
	struct lock_counts before, after = { 0 };
	int ret, i;

	if (bed->what->state == INJECT_IDLE) {
		ret = make_idle(bed);
		if (ret)
			return fail("clearing the LPIs", ret);
	}
	ret = count_locks(&before);
	if (!ret && inject_all(bed))
		return EXIT_FAILED;
	/* What is not cached, an irqfd leaves to a workqueue. */
	for (i = 0; !ret && i < LOCK_WAITS; i++) {
		wait_for_work(bed);
		ret = count_locks(&after);
		if (!ret && after.irq_lock - before.irq_lock >= bed->what->lpis)
			break;
	}
	if (ret) {
		fail("/proc/lock_stat", ret);
		return EXIT_CANNOT;
	}
	/* Lockdep gives up counting when it has found a fault. */
	if (after.irq_lock - before.irq_lock < bed->what->lpis) {
		fprintf(stderr,
			"swiftgic: inject: the kernel's lock "
			"statistics have stopped counting\n");
		return EXIT_FAILED;
	}
	*locks = after.vm_wide - before.vm_wide;
	return EXIT_OK;
}

/* The least of some rounds: other processes take such locks, too. */
int injection_count_locks(const struct injection *injection, double *vm_locks)
{
	double locks = 0, least = 0;
	struct bed bed;
	int ret = EXIT_OK;
	int i;

	for (i = 0; !ret && i < LOCK_ROUNDS; i++) {
		bed = (struct bed){ .what = injection };
		ret = start(&bed);
		if (ret)
			return ret;
		ret = count_round(&bed, &locks);
		stop(&bed);
		if (i == 0 || locks < least)
			least = locks;
	}
	*vm_locks = least / injection->lpis;
	return ret;
}

/* In parallel */

struct injector {
	struct bed *bed;
	pthread_barrier_t *barrier;
	atomic_bool *stop;
	uint32_t first;
	uint32_t step;
	uint64_t injected;
	int ret;
};

static void *injector_thread(void *arg)
{
	struct injector *injector = arg;
	const uint32_t n = injector->bed->what->lpis;
	uint64_t each = (n - injector->first + injector->step - 1) /
			injector->step;

	pthread_barrier_wait(injector->barrier);
	while (!*injector->stop && !injector->ret) {
		injector->ret = inject_some(injector->bed, injector->first,
					    injector->step);
		injector->injected += each;
	}
	return NULL;
}

static int start_injector(pthread_t *thread, struct injector *injector)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int err;

	CPU_ZERO(&cpus);
	CPU_SET(injector->first, &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	err = pthread_create(thread, &attr, injector_thread, injector);
	pthread_attr_destroy(&attr);
	return err ? fail("starting a thread on a CPU of its own", -err)
		   : EXIT_OK;
}

static int run_injectors(struct bed *bed, uint32_t nr, double *per_second)
{
	const struct timespec duration = { .tv_sec = RATE_NS / 1000000000 };
	struct injector injectors[MAX_THREADS];
	pthread_t threads[MAX_THREADS];
	pthread_barrier_t barrier;
	atomic_bool stop = false;
	uint64_t begin, injected = 0;
	uint32_t i;
	int ret;

	pthread_barrier_init(&barrier, NULL, nr + 1);
	for (i = 0; i < nr; i++) {
		injectors[i] = (struct injector){
			.bed = bed,
			.barrier = &barrier,
			.stop = &stop,
			.first = i,
			.step = nr,
		};
		/* The others wait for it, until the process ends. */
		ret = start_injector(&threads[i], &injectors[i]);
		if (ret)
			return ret;
	}
	pthread_barrier_wait(&barrier);
	begin = now();
	nanosleep(&duration, NULL);
	stop = true;
	for (i = 0; i < nr; i++) {
		pthread_join(threads[i], NULL);
		injected += injectors[i].injected;
		ret = ret ? ret : injectors[i].ret;
	}
	*per_second = injected * 1e9 / (now() - begin);
	pthread_barrier_destroy(&barrier);
	return ret;
}

int injection_rate(const struct injection *injection, uint32_t threads,
		   double *per_second)
{
	struct bed bed = { .what = injection };
	int ret;

	if (threads > MAX_THREADS || threads > injection->lpis)
		return fail("the number of threads", -EINVAL);
	ret = start(&bed);
	if (ret)
		return ret;
	ret = run_injectors(&bed, threads, per_second);
	stop(&bed);
	return ret;
}
