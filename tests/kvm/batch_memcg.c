// SPDX-License-Identifier: MIT
/*
 * A batch's memory is charged to the caller's cgroup. What a cgroup is
 * charged goes up in steps of many pages, so one call says nothing: many are
 * held in the middle, at the first fault of their entries' copy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

#define CGROUPS	   "/sys/fs/cgroup"
#define CGROUP	   CGROUPS "/swiftgic-test"
#define NR_CALLS   64
#define MAX	   KVM_DEV_ARM_VGIC_BATCH_MAX
#define CALL_BYTES (MAX * sizeof(entry_t))

static struct calls {
	struct vm *vm;
	struct stuck stuck[NR_CALLS];
	pthread_t threads[NR_CALLS];
	pthread_barrier_t start;
} calls;

static long long charged(void)
{
	long long bytes = -1;
	FILE *f = fopen(CGROUP "/memory.current", "r");

	if (f && fscanf(f, "%lld", &bytes) != 1)
		bytes = -1;
	if (f)
		fclose(f);
	return bytes;
}

static void enter_cgroup(void)
{
	test_write_file(CGROUPS "/cgroup.subtree_control", "+memory");
	mkdir(CGROUP, 0755);
	if (charged() < 0)
		test_skip("no memory cgroup here");
	if (!test_write_file(CGROUP "/cgroup.procs", "0"))
		test_skip("cannot enter a memory cgroup");
}

static void leave_cgroup(void)
{
	test_write_file(CGROUPS "/cgroup.procs", "0");
	rmdir(CGROUP);
}

static void *call_thread(void *arg)
{
	struct stuck *stuck = arg;

	pthread_barrier_wait(&calls.start);
	vm_batch(calls.vm, false, stuck->mem, MAX);
	return NULL;
}

static void charge(void)
{
	const long long want = NR_CALLS * CALL_BYTES;
	const struct timespec settle = { .tv_nsec = 200000000 };
	long long before, during;
	size_t i;

	calls.vm = plain_vm(1);
	enter_cgroup();
	pthread_barrier_init(&calls.start, NULL, NR_CALLS + 1);
	for (i = 0; i < NR_CALLS; i++) {
		stuck_create(&calls.stuck[i], CALL_BYTES, false);
		REQUIRE(!pthread_create(&calls.threads[i], NULL, call_thread,
					&calls.stuck[i]),
			"no thread");
	}
	nanosleep(&settle, NULL); /* stacks are charged as they are used */
	before = charged();
	pthread_barrier_wait(&calls.start);
	for (i = 0; i < NR_CALLS; i++)
		CHECK(stuck_wait(&calls.stuck[i]), "call %zu does not wait", i);
	during = charged();

	for (i = 0; i < NR_CALLS; i++)
		stuck_release(&calls.stuck[i]);
	for (i = 0; i < NR_CALLS; i++)
		pthread_join(calls.threads[i], NULL);
	leave_cgroup();

	test_diag("%d calls hold %lld bytes; charged: %lld", NR_CALLS, want,
		  during - before);
	CHECK(during - before >= want / 4 * 3, "charged only %lld of %lld",
	      during - before, want);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "the caller's memory cgroup is charged", charge },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
