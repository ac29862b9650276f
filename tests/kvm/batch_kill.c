// SPDX-License-Identifier: MIT
/*
 * A batch whose every entry walks all LPIs, and whose caller is killed: it
 * ends after the entry at hand, not after all 4096.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"
#include "its.h"

#define GICR_INVALLR 0xb0
#define NR_LPIS	     4096

/* One entry takes up to half a second here, all of them half a minute. */
#define LIMIT_S 5

static void fill_and_batch(int ready)
{
	static entry_t entries[KVM_DEV_ARM_VGIC_BATCH_MAX];
	struct vm_config config = {
		.nr_vcpus = 1,
		.nr_irqs = 288,
		.its = true,
		.ram_bytes = its_ram_bytes(1),
	};
	struct its its;
	struct vm vm;
	size_t i;

	if (vm_create(&vm, &config) || its_start(&its, &vm, NR_LPIS) ||
	    its_map(&its))
		_exit(1);

	for (i = 0; i < ARRAY_SIZE(entries); i++)
		entries[i] = entry(REDIST, vcpu_attr(&vm, 0, GICR_INVALLR), 1);
	/* It works, with one, before it is to take long. */
	if (vm_batch(&vm, true, entries, 1) || write(ready, "", 1) != 1)
		_exit(1);
	vm_batch(&vm, true, entries, ARRAY_SIZE(entries));
	_exit(1);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void killed(void)
{
	const struct timespec in_the_midst = { .tv_nsec = 200000000 };
	int fds[2], status;
	double start;
	pid_t child;
	char byte;

	plain_vm(1);
	REQUIRE(!pipe(fds), "no pipe");
	child = fork();
	REQUIRE(child >= 0, "no process");
	if (!child)
		fill_and_batch(fds[1]);
	close(fds[1]);
	REQUIRE(read(fds[0], &byte, 1) == 1, "the batch cannot be set up");
	close(fds[0]);

	nanosleep(&in_the_midst, NULL);
	start = now_s();
	kill(child, SIGKILL);
	REQUIRE(waitpid(child, &status, 0) == child, "no child");
	CHECK(WIFSIGNALED(status), "the batch had ended before");
	CHECK(now_s() - start < LIMIT_S, "it took %.1f s to end",
	      now_s() - start);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "a caller that is killed leaves after the entry at hand",
		  killed },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
