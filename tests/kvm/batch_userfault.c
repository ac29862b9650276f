// SPDX-License-Identifier: MIT
/* Case user-fault: the entries' memory makes the call wait, and nobody else */
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define ISENABLER1 (GIC_ISENABLER + 4)
#define VALUE	   0x40

#define REG_MPIDR_EL1 ARM64_SYS_REG(3, 0, 0, 0, 5)

struct call {
	struct vm *vm;
	struct stuck stuck;
	pthread_t thread;
	bool write;
	int ret;
	atomic_bool done;
};

static void *call_thread(void *arg)
{
	struct call *call = arg;

	call->ret = vm_batch(call->vm, call->write, call->stuck.mem, 1);
	call->done = true;
	return NULL;
}

static void start_call(struct call *call, struct vm *vm, bool write,
		       bool stuck_at_copy_out)
{
	memset(call, 0, sizeof(*call));
	call->vm = vm;
	call->write = write;
	stuck_create(&call->stuck, getpagesize(), stuck_at_copy_out);
	REQUIRE(!pthread_create(&call->thread, NULL, call_thread, call),
		"no thread");
	REQUIRE(stuck_wait(&call->stuck), "the call does not wait");
}

static int end_call(struct call *call)
{
	CHECK(!call->done, "the call did not wait");
	stuck_release(&call->stuck);
	pthread_join(call->thread, NULL);
	return call->ret;
}

/* All that another thread may want of the VM; the watchdog is the limit. */
static void check_vm_alive(struct vm *vm)
{
	uint64_t val;
	struct kvm_one_reg reg = {
		.id = REG_MPIDR_EL1,
		.addr = (uintptr_t)&val,
	};
	entry_t e = entry(DIST, ISENABLER1, VALUE);

	CHECK_RET(vm_get(vm, DIST, ISENABLER1, &val), 0);
	CHECK_RET(vm_set(vm, DIST, ISENABLER1, VALUE), 0);
	CHECK_RET(vm_batch(vm, true, &e, 1), 0);
	CHECK_RET(vm_batch(vm, false, &e, 1), 0);
	CHECK(e.val == VALUE, "%#x", e.val);
	CHECK(!ioctl(vm->vcpu_fds[0], KVM_GET_ONE_REG, &reg),
	      "KVM_GET_ONE_REG: %s", strerror(errno));
	vm_run_once(vm, 0);
}

static void copy_in(void)
{
	struct vm *vm = plain_vm(2);
	struct call call;

	start_call(&call, vm, true, false);
	check_vm_alive(vm);
	/* an array of zeroes: no group, so an error in the entry */
	CHECK_RET(end_call(&call), -EINVAL);
	check_vm_alive(vm);
}

static void copy_in_get(void)
{
	struct vm *vm = plain_vm(2);
	struct call call;

	start_call(&call, vm, false, false);
	check_vm_alive(vm);
	CHECK_RET(end_call(&call), -EINVAL);
}

static void copy_out(void)
{
	struct vm *vm = plain_vm(2);
	struct call call;

	start_call(&call, vm, false, true);
	check_vm_alive(vm);
	CHECK_RET(end_call(&call), -EINVAL);
	check_vm_alive(vm);
}

/*
 * A process of its own, as its death is the test: it tells when its call is
 * stuck, and then waits for ever.
 */
static void stuck_child(struct vm *vm, int tell, bool at_copy_out)
{
	struct call call;
	char ok = 1;

	(void)vm;
	/* a VM belongs to the process that created it */
	start_call(&call, plain_vm(2), false, at_copy_out);
	if (write(tell, &ok, 1) == 1)
		pause();
	_exit(1);
}

static void check_kill(bool at_copy_out)
{
	struct vm *vm = plain_vm(1);
	struct stuck probe;
	int pipe_fds[2], status = 0;
	pid_t pid;
	char ok = 0;

	stuck_create(&probe, getpagesize(), at_copy_out);
	stuck_release(&probe);
	REQUIRE(!pipe(pipe_fds), "no pipe");
	pid = fork();
	REQUIRE(pid >= 0, "no process");
	if (!pid)
		stuck_child(vm, pipe_fds[1], at_copy_out);
	close(pipe_fds[1]);
	CHECK(read(pipe_fds[0], &ok, 1) == 1 && ok, "the call is not stuck");
	kill(pid, SIGKILL);
	/* a task that cannot be killed is for the watchdog */
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status),
	      "status %#x", status);
	close(pipe_fds[0]);
}

static void kill_copy_in(void)
{
	check_kill(false);
}

static void kill_copy_out(void)
{
	check_kill(true);
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "other calls go through while a set waits for its entries",
		  copy_in },
		{ "other calls go through while a get waits for its entries",
		  copy_in_get },
		{ "other calls go through while a get waits to write back",
		  copy_out },
		{ "a call that waits for its entries can be killed",
		  kill_copy_in },
		{ "a call that waits to write back can be killed",
		  kill_copy_out },
	};

	test_timeout_s = 60;
	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
