// SPDX-License-Identifier: MIT
/*
 * Case level-forgotten: a guest that sleeps at the save wakes after the restore
 * by what is pending then or thereafter: a line that is high, a timer, an LPI.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

#include "harness.h"
#include "its.h"

#define TIMER_INTID 27
#define PPI_INTID   23
#define SPI_INTID   40

#define LETTERBOX 0x09000000ULL /* nothing is there: a write is an exit */
#define ASLEEP	  0

/*
 * x0: the letterbox; x1: ticks that the timer runs, or 0. Interrupts stay
 * masked, as after reset: WFI wakes for them all the same.
 */
asm(".pushsection .rodata\n"
    ".globl	sleeper, sleeper_end\n"
    ".balign 4\n"
    "sleeper:\n"
    "	cbz	x1, 1f\n"
    "	msr	cntv_tval_el0, x1\n"
    "	mov	x2, #1\n"
    "	msr	cntv_ctl_el0, x2\n"
    "1:	str	wzr, [x0]\n"
    "2:	wfi\n"
    "	mrs	x2, isr_el1\n"
    "	cbz	x2, 2b\n"
    "	mrs	x2, s3_0_c12_c12_0\n" /* ICC_IAR1_EL1 */
    "	str	w2, [x0]\n"
    "3:	b	3b\n"
    "sleeper_end:\n"
    ".popsection\n");
extern const char sleeper[], sleeper_end[];

struct sleeper {
	struct vm *vm;
	struct kvm_run *run;
	size_t run_bytes;
};

static void ignore_signal(int sig)
{
	(void)sig;
}

/* A signal now and then: no KVM_RUN lasts for ever. */
static void tick(bool on)
{
	const struct sigaction action = { .sa_handler = ignore_signal };
	const struct timeval ms_200 = { .tv_usec = on ? 200000 : 0 };
	const struct itimerval timer = { ms_200, ms_200 };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

static uint64_t core_reg(size_t offset)
{
	return KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |
	       offset / sizeof(uint32_t);
}

#define CORE_REG(name) core_reg(offsetof(struct kvm_regs, name))

static int vcpu_reg(const struct vm *vm, bool write, uint64_t id, void *val)
{
	struct kvm_one_reg reg = { .id = id, .addr = (uintptr_t)val };

	return ioctl(vm->vcpu_fds[0], write ? KVM_SET_ONE_REG : KVM_GET_ONE_REG,
		     &reg)
		       ? -errno
		       : 0;
}

static void set_vcpu_reg(const struct vm *vm, uint64_t id, uint64_t val)
{
	REQUIRE_RET(vcpu_reg(vm, true, id, &val), 0);
}

/* All registers of vCPU 0 but those of its interrupt controller */
static void copy_vcpu(const struct vm *to, const struct vm *from)
{
	struct {
		uint64_t n;
		uint64_t ids[4096];
	} *list = malloc(sizeof(*list));
	uint8_t val[2048];
	uint64_t i;

	REQUIRE(list, "no memory");
	list->n = ARRAY_SIZE(list->ids);
	REQUIRE(!ioctl(from->vcpu_fds[0], KVM_GET_REG_LIST, list),
		"KVM_GET_REG_LIST: %s", strerror(errno));
	for (i = 0; i < list->n; i++) {
		REQUIRE_RET(vcpu_reg(from, false, list->ids[i], val), 0);
		CHECK(!vcpu_reg(to, true, list->ids[i], val),
		      "register %#llx: %s", (unsigned long long)list->ids[i],
		      strerror(errno));
	}
	free(list);
}

static struct sleeper sleeper_vm(void)
{
	const struct vm_config config = {
		.nr_vcpus = 1,
		.nr_irqs = 64,
		.ram_bytes = its_ram_bytes(1),
		.its = true,
	};
	struct sleeper guest = { .vm = batch_vm(&config) };

	guest.run_bytes = ioctl(guest.vm->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	guest.run = mmap(NULL, guest.run_bytes, PROT_READ | PROT_WRITE,
			 MAP_SHARED, guest.vm->vcpu_fds[0], 0);
	REQUIRE(guest.run != MAP_FAILED, "mapping kvm_run: %s",
		strerror(errno));
	return guest;
}

static void destroy(struct sleeper *guest)
{
	munmap(guest->run, guest->run_bytes);
	test_vm_destroy(guest->vm);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/* What the guest puts in the letterbox; or -1, if nothing for that long */
static int64_t run(const struct sleeper *guest, unsigned int ms)
{
	uint64_t end = now_ms() + ms;
	uint32_t letter;
	int ret;

	tick(true);
	do {
		ret = ioctl(guest->vm->vcpu_fds[0], KVM_RUN, 0) ? -errno : 0;
	} while (ret == -EINTR && now_ms() < end);
	tick(false);
	if (ret == -EINTR)
		return -1;
	REQUIRE_RET(ret, 0);
	REQUIRE(guest->run->exit_reason == KVM_EXIT_MMIO &&
			guest->run->mmio.phys_addr == LETTERBOX,
		"exit %u", guest->run->exit_reason);
	memcpy(&letter, guest->run->mmio.data, sizeof(letter));
	return letter;
}

/* A guest that sleeps until its timer fires, or for ever */
static struct sleeper fall_asleep(uint64_t ticks)
{
	struct sleeper guest = sleeper_vm();
	struct vm *vm = guest.vm;
	const uint32_t sgi = GICR_SGI_BASE;

	memcpy(vm->ram, sleeper, sleeper_end - sleeper);
	set_vcpu_reg(vm, CORE_REG(regs.pc), VM_RAM_BASE);
	set_vcpu_reg(vm, CORE_REG(regs.regs[0]), LETTERBOX);
	set_vcpu_reg(vm, CORE_REG(regs.regs[1]), ticks);

	/* What the guest's kernel does: all level, group 1, enabled */
	CHECK_RET(vm_set(vm, DIST, GICD_CTLR, 2), 0);
	CHECK_RET(vm_set(vm, DIST, GIC_IGROUPR + 4, UINT32_MAX), 0);
	CHECK_RET(vm_set(vm, DIST, GICD_ICFGR + 8, 0), 0);
	CHECK_RET(vm_set(vm, DIST, GIC_ISENABLER + 4, UINT32_MAX), 0);
	CHECK_RET(vm_set(vm, REDIST, vcpu_attr(vm, 0, sgi + GIC_IGROUPR),
			 UINT32_MAX),
		  0);
	CHECK_RET(vm_set(vm, REDIST, vcpu_attr(vm, 0, sgi + GIC_ISENABLER),
			 UINT32_MAX),
		  0);
	CHECK_RET(vm_set(vm, SYSREGS, vcpu_attr(vm, 0, ICC_PMR_EL1), 0xf8), 0);
	CHECK_RET(vm_set(vm, SYSREGS, vcpu_attr(vm, 0, ICC_IGRPEN1_EL1), 1), 0);

	REQUIRE(run(&guest, 20000) == ASLEEP, "the guest does not start");
	/* The write ends with the next entry. */
	vm_run_once(vm, 0);
	return guest;
}

/* Saved here, restored in another VM, the guest wakes, and says by what. */
static void check_wakes(struct sleeper *from, uint32_t intid, uint32_t flags)
{
	struct sleeper to = sleeper_vm();
	struct sgic_device *source = test_device(from->vm, flags);
	struct sgic_device *target = test_device(to.vm, flags);
	struct sgic_state *state = test_save(source);
	int64_t letter;

	memcpy(to.vm->ram, from->vm->ram, from->vm->config.ram_bytes);
	copy_vcpu(to.vm, from->vm);
	test_restore(target, state);
	letter = run(&to, 20000);
	CHECK(letter == intid, "the letter is %lld", (long long)letter);
	sgic_state_free(state);
	sgic_device_free(source);
	sgic_device_free(target);
	destroy(&to);
	destroy(from);
}

static uint64_t ticks_of_ms(unsigned int ms)
{
	uint64_t hz;

	asm volatile("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz / 1000 * ms;
}

/* The timer fires after the restore, or before it and after the save */
static void timer(void)
{
	const struct timespec ms_300 = { .tv_nsec = 300000000 };
	struct sleeper guest;

	for (uint32_t flags = 0; flags < 2; flags++) {
		guest = fall_asleep(ticks_of_ms(4000));
		CHECK(run(&guest, 300) == -1, "it does not sleep");
		check_wakes(&guest, TIMER_INTID, flags);

		guest = fall_asleep(ticks_of_ms(200));
		nanosleep(&ms_300, NULL);
		nanosleep(&ms_300, NULL);
		check_wakes(&guest, TIMER_INTID, flags);
	}
}

static void raise_line(const struct vm *vm, uint32_t type, uint32_t intid)
{
	struct kvm_irq_level irq = {
		.irq = type << KVM_ARM_IRQ_TYPE_SHIFT | intid,
		.level = 1,
	};

	REQUIRE(!ioctl(vm->fd, KVM_IRQ_LINE, &irq), "KVM_IRQ_LINE: %s",
		strerror(errno));
}

/* A device's line that is high at the save, and that nobody raises again */
static void line(uint32_t type, uint32_t intid)
{
	struct sleeper guest;

	for (uint32_t flags = 0; flags < 2; flags++) {
		guest = fall_asleep(0);
		CHECK(run(&guest, 300) == -1, "it does not sleep");
		raise_line(guest.vm, type, intid);
		check_wakes(&guest, intid, flags);
	}
}

static void ppi(void)
{
	line(KVM_ARM_IRQ_TYPE_PPI, PPI_INTID);
}

static void spi(void)
{
	line(KVM_ARM_IRQ_TYPE_SPI, SPI_INTID);
}

static void lpi(void)
{
	struct sleeper guest;
	struct its its;

	for (uint32_t flags = 0; flags < 2; flags++) {
		guest = fall_asleep(0);
		REQUIRE_RET(its_start(&its, guest.vm, 1), 0);
		REQUIRE_RET(its_map(&its), 0);
		CHECK(run(&guest, 300) == -1, "it does not sleep");
		CHECK(its_signal(guest.vm, 0) == 1, "not injected");
		check_wakes(&guest, ITS_FIRST_LPI, flags);
	}
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "a guest that sleeps on its timer wakes after the restore",
		  timer },
		{ "so does one that sleeps on a PPI whose line is high", ppi },
		{ "so does one that sleeps on an SPI whose line is high", spi },
		{ "so does one that sleeps on an LPI that is pending", lpi },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
