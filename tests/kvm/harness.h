/* SPDX-License-Identifier: MIT */
/*
 * What the kernel tests share: TAP, VMs that a test need not clean up, and a
 * guest that spins. A program is a table of rules; each is one line of TAP,
 * and the last line is that the kernel had nothing to log.
 */
#ifndef SWIFTGIC_TESTS_HARNESS_H
#define SWIFTGIC_TESTS_HARNESS_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/kvm.h>

#include <swiftgic.h>

#include "gic.h"
#include "vm.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define DIST	KVM_DEV_ARM_VGIC_GRP_DIST_REGS
#define REDIST	KVM_DEV_ARM_VGIC_GRP_REDIST_REGS
#define SYSREGS KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS
#define LEVEL	KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO

/* What is in an entry's error before the call: no errno, and not 0 */
#define STALE_ERROR 0x5a5a5a5a

/* Any affinity that no test gives to a vCPU */
#define UNKNOWN_MPIDR 0xee00eeeeeeULL

typedef struct kvm_dev_arm_vgic_batch_entry entry_t;

struct test {
	const char *rule;
	void (*run)(void);
};

/*
 * Options: --seed N, --long N, and --need-batch, with which a kernel without
 * KVM, VGICv3 or the batch call is a failure and no reason to skip.
 * Returns the program's exit status.
 */
int run_tests(int argc, char **argv, const struct test *tests, size_t n);

/*
 * Seconds until the program gives up; 120 unless it says otherwise. Times
 * test_long, and ten if the kernel checks its locks: that is a slow one.
 */
extern unsigned int test_timeout_s;

/* How many times as long as usual to try to provoke a fault; 1, or --long */
extern unsigned int test_long;

/* Which test runs, for one function that is many tests */
extern size_t test_index;

/* From --seed, or fixed: the same run each time */
extern uint32_t test_seed;

/* Write @text to an existing file, in one write; false if that fails */
bool test_write_file(const char *path, const char *text);

/* Random numbers from test_seed */
uint64_t test_random(void);

/* A line of TAP that is for people */
void test_diag(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* In a test, from any thread: note a failure and go on */
bool test_check(bool ok, const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool test_check_ret(int ret, int want, const char *file, int line,
		    const char *what);

#define CHECK(ok, ...) test_check(ok, __FILE__, __LINE__, __VA_ARGS__)
#define CHECK_RET(call, want) \
	test_check_ret(call, want, __FILE__, __LINE__, #call)

/* In a test, from its main thread: end it */
_Noreturn void test_give_up(void);
_Noreturn void test_skip(const char *fmt, ...)
	__attribute__((format(printf, 1, 2)));

/* Skip if lockdep has no room for the locks of so many vCPUs; VMs of ours ask. */
void test_need_lock_depth(uint32_t nr_vcpus);

#define REQUIRE(ok, ...)                     \
	do {                                 \
		if (!CHECK(ok, __VA_ARGS__)) \
			test_give_up();      \
	} while (0)
#define REQUIRE_RET(call, want)             \
	do {                                \
		if (!CHECK_RET(call, want)) \
			test_give_up();     \
	} while (0)

/* "EINVAL" for -EINVAL, "0" for 0 */
const char *errno_name(int ret);

/* A VM that lives until the test ends; batch_vm() also needs the batch call */
struct vm *test_vm(const struct vm_config *config);
struct vm *batch_vm(const struct vm_config *config);

/* End one before that, to have its memory back. */
void test_vm_destroy(struct vm *vm);

/* A batch_vm() of @nr_vcpus vCPUs, 288 interrupts and an ITS */
struct vm *plain_vm(uint32_t nr_vcpus);

entry_t entry(uint32_t group, uint64_t attr, uint64_t val);

/* Attribute of a register of one of the VM's vCPUs */
uint64_t vcpu_attr(const struct vm *vm, uint32_t vcpu, uint32_t offset);

/* Have the VM "run", without an instruction of the guest's. */
void vm_run_once(struct vm *vm, uint32_t vcpu);

/* The library's view of a VM; the test ends if that fails. */
struct sgic_device *test_device(const struct vm *vm, uint32_t flags);
struct sgic_state *test_save(struct sgic_device *device);
void test_restore(struct sgic_device *device, const struct sgic_state *state);

/* The state of a VM, with a device that is there for this only */
struct sgic_state *test_state(const struct vm *vm);

/* Equal, to the byte of their snapshots? If not, say what differs first. */
bool test_check_equal(const struct sgic_state *a, const struct sgic_state *b,
		      const char *file, int line, const char *what);

#define CHECK_EQUAL(a, b, what) test_check_equal(a, b, __FILE__, __LINE__, what)

/* Put a value of its own into each register that the guest can choose. */
void test_fill(struct vm *vm, uint32_t seed);

/* A vCPU that executes a branch to itself, in a thread */
struct guest {
	struct vm *vm;
	struct kvm_run *run;
	pthread_t thread;
	int vcpu_fd;
	atomic_bool stop;
	int err;
};

/*
 * The VM needs guest memory. guest_start() returns when the vCPU is in
 * KVM_RUN, which is when a one-register call says so.
 */
void guest_start(struct guest *guest, struct vm *vm, uint32_t vcpu);
void guest_stop(struct guest *guest);

/* Memory behind a userfaultfd that nobody serves */
struct stuck {
	int fd;
	void *mem;
	size_t bytes;
};

/*
 * @write_protected: the memory can be read, and only a write is stuck; else
 * any access is. Skips the test if this kernel or user may not.
 */
void stuck_create(struct stuck *stuck, size_t bytes, bool write_protected);

/* Wait until an access is stuck; false after ten seconds. */
bool stuck_wait(const struct stuck *stuck);

/* Let all accesses go on. */
void stuck_release(struct stuck *stuck);

#endif
