// SPDX-License-Identifier: MIT
#define _GNU_SOURCE /* strerrorname_np() */
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/userfaultfd.h>

#include "harness.h"
#include "state.h"

#define MAX_VMS 16

/* Lockdep has room for 48 locks of a task; others are held beside the vCPUs' */
#define MAX_LOCKDEP_VCPUS 40

unsigned int test_timeout_s = 120;
unsigned int test_long = 1;
uint32_t test_seed = 1;
size_t test_index;

static struct vm *vms[MAX_VMS];
static atomic_bool failed;
static char skip_reason[160];
static jmp_buf end_of_test;
static bool need_batch;

static void print_diag(const char *fmt, va_list ap)
{
	char buf[512];

	/* one write: other threads print, too */
	vsnprintf(buf, sizeof(buf), fmt, ap);
	printf("# %s\n", buf);
	fflush(stdout);
}

void test_diag(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_diag(fmt, ap);
	va_end(ap);
}

bool test_check(bool ok, const char *file, int line, const char *fmt, ...)
{
	char where[512];
	va_list ap;

	if (ok)
		return true;
	failed = true;
	snprintf(where, sizeof(where), "%s:%d: %s", file, line, fmt);
	va_start(ap, fmt);
	print_diag(where, ap);
	va_end(ap);
	return false;
}

const char *errno_name(int ret)
{
	const char *name = strerrorname_np(ret < 0 ? -ret : ret);

	return name ? name : "no errno";
}

bool test_check_ret(int ret, int want, const char *file, int line,
		    const char *what)
{
	return test_check(ret == want, file, line, "%s: %s, not %s", what,
			  errno_name(ret), errno_name(want));
}

void test_give_up(void)
{
	longjmp(end_of_test, 1);
}

void test_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(skip_reason, sizeof(skip_reason), fmt, ap);
	va_end(ap);
	test_give_up();
}

bool test_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t len = strlen(text);
	bool ok = fd >= 0 && write(fd, text, len) == len;

	if (fd >= 0)
		close(fd);
	return ok;
}

uint64_t test_random(void)
{
	static uint32_t n;

	return state_random(test_seed, 0, 0, n++);
}

static bool has_lockdep(void)
{
	return !access("/proc/lockdep_stats", F_OK);
}

/*
 * From 7.0 on at the latest, KVM locks the vCPUs as nested locks, which lockdep
 * counts as one.
 */
void test_need_lock_depth(uint32_t nr_vcpus)
{
	struct utsname uts;

	uname(&uts);
	if (nr_vcpus > MAX_LOCKDEP_VCPUS && has_lockdep() &&
	    strtoul(uts.release, NULL, 10) < 7)
		test_skip(
			"the lockdep of this kernel has no room for the locks of %u vCPUs",
			nr_vcpus);
}

struct vm *test_vm(const struct vm_config *config)
{
	struct vm *vm;
	size_t i;

	test_need_lock_depth(config->nr_vcpus);
	vm = malloc(sizeof(*vm));
	for (i = 0; i < MAX_VMS && vms[i]; i++)
		;
	REQUIRE(vm && i < MAX_VMS, "no room for a VM");
	if (!CHECK_RET(vm_create(vm, config), 0)) {
		CHECK(false, "%s", vm->err);
		free(vm);
		test_give_up();
	}
	vms[i] = vm;
	return vm;
}

struct vm *batch_vm(const struct vm_config *config)
{
	struct vm *vm = test_vm(config);

	if (!vm_has_batch(vm)) {
		REQUIRE(!need_batch, "this kernel has no batch call");
		test_skip("this kernel has no batch call");
	}
	return vm;
}

void test_vm_destroy(struct vm *vm)
{
	size_t i;

	for (i = 0; i < MAX_VMS; i++)
		if (vms[i] == vm)
			vms[i] = NULL;
	vm_destroy(vm);
	free(vm);
}

struct vm *plain_vm(uint32_t nr_vcpus)
{
	const struct vm_config config = {
		.nr_vcpus = nr_vcpus,
		.nr_irqs = 288,
		.its = true,
	};

	return batch_vm(&config);
}

entry_t entry(uint32_t group, uint64_t attr, uint64_t val)
{
	return (entry_t){
		.group = group,
		.attr = attr,
		.val = val,
		.val_hi = val >> 32,
		.error = STALE_ERROR,
	};
}

uint64_t vcpu_attr(const struct vm *vm, uint32_t vcpu, uint32_t offset)
{
	return vm_attr(vm->mpidrs[vcpu], offset);
}

/* The library */

struct sgic_device *test_device(const struct vm *vm, uint32_t flags)
{
	const struct sgic_device_config config = {
		.size = sizeof(config),
		.flags = flags,
		.gic_fd = vm->gic_fd,
		.its_fds = &vm->its_fd,
		.nr_its = vm->config.its,
		.mpidrs = vm->mpidrs,
		.nr_vcpus = vm->config.nr_vcpus,
	};
	struct sgic_device *device;
	struct sgic_error error;

	REQUIRE(!sgic_device_new(&config, &device, &error), "%s",
		error.message);
	return device;
}

struct sgic_state *test_save(struct sgic_device *device)
{
	struct sgic_state *state = sgic_state_new();
	struct sgic_error error;

	REQUIRE(state, "no memory");
	REQUIRE(!sgic_device_save(device, state, &error), "%s", error.message);
	return state;
}

void test_restore(struct sgic_device *device, const struct sgic_state *state)
{
	struct sgic_error error;

	REQUIRE(!sgic_device_restore(device, state, &error), "%s",
		error.message);
}

struct sgic_state *test_state(const struct vm *vm)
{
	struct sgic_device *device = test_device(vm, 0);
	struct sgic_state *state = test_save(device);

	sgic_device_free(device);
	return state;
}

static int show_first(const struct sgic_value *a, const struct sgic_value *b,
		      void *data)
{
	(void)data;
	test_diag("%s: %#llx and %#llx", a->name, (unsigned long long)a->val,
		  (unsigned long long)b->val);
	return 1;
}

static void *snapshot(const struct sgic_state *state, size_t *size)
{
	void *bytes;

	*size = sgic_state_size(state);
	bytes = malloc(*size);
	REQUIRE(bytes, "no memory");
	REQUIRE_RET(sgic_state_store(state, bytes, *size, NULL), 0);
	return bytes;
}

bool test_check_equal(const struct sgic_state *a, const struct sgic_state *b,
		      const char *file, int line, const char *what)
{
	int ret = sgic_state_compare(a, b, show_first, NULL, NULL);
	void *bytes_a, *bytes_b;
	size_t size_a, size_b;
	bool equal;

	if (!test_check(!ret, file, line, "%s: not equal", what))
		return false;
	bytes_a = snapshot(a, &size_a);
	bytes_b = snapshot(b, &size_b);
	equal = size_a == size_b && !memcmp(bytes_a, bytes_b, size_a);
	free(bytes_a);
	free(bytes_b);
	return test_check(equal, file, line, "%s: other bytes", what);
}

void test_fill(struct vm *vm, uint32_t seed)
{
	struct sgic_shape shape;
	struct sgic_reg *regs;
	entry_t *entries;
	size_t nr, n = 0;
	uint64_t val;

	REQUIRE(!vm_shape(vm, &shape), "%s", vm->err);
	nr = sgic_regs_count(&shape, SGIC_RESTORE);
	regs = calloc(nr, sizeof(*regs));
	entries = calloc(nr, sizeof(*entries));
	REQUIRE(regs && entries, "no memory");
	sgic_regs_fill(&shape, SGIC_RESTORE, regs);
	for (size_t i = 0; i < nr; i++)
		if (state_value(&shape, seed, &regs[i], &val) != STATE_KEEP)
			entries[n++] = entry(regs[i].group, regs[i].attr, val);
	REQUIRE_RET(vm_batch_all(vm, true, entries, n, NULL), 0);
	free(regs);
	free(entries);
}

/* Running vCPUs */

static struct kvm_run *map_run(struct vm *vm, uint32_t vcpu)
{
	int size = ioctl(vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct kvm_run *run;

	run = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
		   vm->vcpu_fds[vcpu], 0);
	REQUIRE(run != MAP_FAILED, "mapping kvm_run: %s", strerror(errno));
	return run;
}

static void unmap_run(struct vm *vm, struct kvm_run *run)
{
	munmap(run, ioctl(vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0));
}

void vm_run_once(struct vm *vm, uint32_t vcpu)
{
	CHECK(!vm_enter_once(vm, vcpu), "%s", vm->err);
}

static void ignore_signal(int sig)
{
	(void)sig;
}

static void *guest_thread(void *arg)
{
	struct guest *guest = arg;

	while (!guest->stop) {
		if (ioctl(guest->vcpu_fd, KVM_RUN, 0) < 0 && errno != EINTR) {
			guest->err = errno;
			break;
		}
	}
	return NULL;
}

static void wait_until_running(struct vm *vm)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	uint64_t val;
	int i;

	for (i = 0; i < 10000; i++) {
		if (vm_get(vm, DIST, GICD_CTLR, &val) == -EBUSY)
			return;
		nanosleep(&ms, NULL);
	}
	REQUIRE(false, "the vCPU does not run");
}

void guest_start(struct guest *guest, struct vm *vm, uint32_t vcpu)
{
	const uint32_t branch_to_self = 0x14000000;
	const struct sigaction action = { .sa_handler = ignore_signal };
	uint64_t pc = VM_RAM_BASE;
	struct kvm_one_reg reg = {
		.id = KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |
		      KVM_REG_ARM_CORE_REG(regs.pc),
		.addr = (uintptr_t)&pc,
	};

	memset(guest, 0, sizeof(*guest));
	guest->vm = vm;
	guest->vcpu_fd = vm->vcpu_fds[vcpu];
	guest->run = map_run(vm, vcpu);
	memcpy(vm->ram, &branch_to_self, sizeof(branch_to_self));
	REQUIRE(!ioctl(guest->vcpu_fd, KVM_SET_ONE_REG, &reg),
		"setting the PC: %s", strerror(errno));

	sigaction(SIGUSR1, &action, NULL);
	REQUIRE(!pthread_create(&guest->thread, NULL, guest_thread, guest),
		"no thread for the vCPU");
	wait_until_running(vm);
}

void guest_stop(struct guest *guest)
{
	/*
	 * immediate_exit is for a signal that comes between the thread's
	 * look at ->stop and KVM_RUN.
	 */
	guest->stop = true;
	guest->run->immediate_exit = 1;
	pthread_kill(guest->thread, SIGUSR1);
	pthread_join(guest->thread, NULL);
	guest->run->immediate_exit = 0;
	CHECK(!guest->err, "KVM_RUN: %s", strerror(guest->err));
	unmap_run(guest->vm, guest->run);
}

/* Stuck memory */

void stuck_create(struct stuck *stuck, size_t bytes, bool write_protected)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.mode = write_protected ? UFFDIO_REGISTER_MODE_WP
					: UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_writeprotect wp = {
		.mode = UFFDIO_WRITEPROTECT_MODE_WP,
	};

	stuck->bytes = bytes;
	stuck->mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(stuck->mem != MAP_FAILED, "no memory");
	stuck->fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (stuck->fd < 0)
		test_skip("userfaultfd: %s", strerror(errno));
	REQUIRE(!ioctl(stuck->fd, UFFDIO_API, &api), "UFFDIO_API: %s",
		strerror(errno));
	if (write_protected && !(api.features & UFFD_FEATURE_PAGEFAULT_FLAG_WP))
		test_skip("this kernel's userfaultfd has no write protection");

	if (write_protected)
		memset(stuck->mem, 0, bytes);
	reg.range.start = wp.range.start = (uintptr_t)stuck->mem;
	reg.range.len = wp.range.len = bytes;
	REQUIRE(!ioctl(stuck->fd, UFFDIO_REGISTER, &reg), "UFFDIO_REGISTER: %s",
		strerror(errno));
	if (write_protected)
		REQUIRE(!ioctl(stuck->fd, UFFDIO_WRITEPROTECT, &wp),
			"UFFDIO_WRITEPROTECT: %s", strerror(errno));
}

bool stuck_wait(const struct stuck *stuck)
{
	struct pollfd pollfd = { .fd = stuck->fd, .events = POLLIN };

	return poll(&pollfd, 1, 10000) == 1;
}

void stuck_release(struct stuck *stuck)
{
	/* Without its userfaultfd it is memory like any other. */
	close(stuck->fd);
}

/* The kernel log */

static int open_kmsg(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0)
		lseek(fd, 0, SEEK_END);
	return fd;
}

/*
 * Each read is a record, "level,sequence,...;text"; EPIPE is one that was
 * overwritten. The lines let pass are a slow emulator's and those of a machine
 * that has been up for a while, not KVM's.
 */
static bool check_kmsg(int fd)
{
	bool empty = true;
	char buf[8192];
	ssize_t len;

	while ((len = read(fd, buf, sizeof(buf) - 1)) > 0 ||
	       (len < 0 && errno == EPIPE)) {
		buf[len > 0 ? len : 0] = '\0';
		if (strstr(buf, ";hrtimer: interrupt took ") ||
		    strstr(buf, ";random: crng init done"))
			continue;
		empty = false;
		test_diag("kernel log: %.*s", (int)strcspn(buf, "\n"), buf);
	}
	return empty;
}

/* TAP */

/* The checks that kernels of the lab are built with take time. */
static bool has_checks(void)
{
	return has_lockdep() || !access("/sys/kernel/debug/kcsan", F_OK) ||
	       !access("/sys/kernel/debug/kmemleak", F_OK);
}

/*
 * A thread and not an alarm: the main thread may wait for a lock in the
 * kernel, where no signal but a deadly one reaches it.
 */
static void *watchdog_thread(void *arg)
{
	unsigned int seconds = test_timeout_s * test_long *
			       (has_checks() ? 10 : 1);
	const struct timespec timeout = { .tv_sec = seconds };
	sigset_t all;

	(void)arg;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	nanosleep(&timeout, NULL);
	printf("Bail out! No end after %u seconds\n", seconds);
	fflush(stdout);
	_exit(1);
}

static bool run_test(size_t index, const struct test *test)
{
	size_t i;

	test_index = index;
	failed = false;
	skip_reason[0] = '\0';
	if (!setjmp(end_of_test))
		test->run();
	for (i = 0; i < MAX_VMS; i++)
		if (vms[i])
			test_vm_destroy(vms[i]);

	printf("%sok %zu - %s", failed ? "not " : "", index + 1, test->rule);
	if (!failed && skip_reason[0])
		printf(" # SKIP %s", skip_reason);
	printf("\n");
	fflush(stdout);
	return !failed;
}

static bool parse_args(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "long", required_argument, NULL, 'l' },
		{ "need-batch", no_argument, NULL, 'b' },
		{}
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 's')
			test_seed = strtoul(optarg, NULL, 0);
		else if (opt == 'l')
			test_long = strtoul(optarg, NULL, 0);
		else if (opt == 'b')
			need_batch = true;
		else
			return false;
	}
	return optind == argc && test_long;
}

/* NULL if this host has KVM and a VGICv3 */
static const char *host_lacks(void)
{
	const struct vm_config config = { .nr_vcpus = 1, .nr_irqs = 64 };
	static struct vm vm;
	int ret = vm_create(&vm, &config);

	if (!ret)
		vm_destroy(&vm);
	return ret == -ENODEV ? vm.err : NULL;
}

int run_tests(int argc, char **argv, const struct test *tests, size_t n)
{
	pthread_t watchdog;
	const char *lacks;
	bool ok = true;
	int kmsg;
	size_t i;

	if (!parse_args(argc, argv)) {
		fprintf(stderr,
			"usage: %s [--seed N] [--long N] [--need-batch]\n",
			argv[0]);
		return 2;
	}
	lacks = host_lacks();
	if (lacks && need_batch) {
		printf("Bail out! %s\n", lacks);
		return 1;
	}
	if (lacks) {
		printf("1..0 # SKIP %s\n", lacks);
		return 0;
	}

	if (pthread_create(&watchdog, NULL, watchdog_thread, NULL)) {
		printf("Bail out! No thread for the watchdog\n");
		return 1;
	}
	kmsg = open_kmsg();

	printf("1..%zu\n", n + 1);
	for (i = 0; i < n; i++)
		ok &= run_test(i, &tests[i]);
	if (kmsg < 0) {
		printf("ok %zu - nothing in the kernel log # SKIP no access to it\n",
		       i + 1);
		return !ok;
	}
	if (!check_kmsg(kmsg)) {
		printf("not ");
		ok = false;
	}
	printf("ok %zu - nothing in the kernel log\n", i + 1);
	close(kmsg);
	return !ok;
}
