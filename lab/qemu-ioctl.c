// SPDX-License-Identifier: MIT
/*
 * Linked into both of the lab's QEMUs, stock and patched, in front of ioctl():
 * how long the VGIC's registers take, one by one or in batches. A thread's calls
 * for them, up to its next call for something else, are a line on stderr, in the
 * form of a trace event:
 *
 *   TID@SECONDS:lab_vgic_registers direction=get|put calls=N us=N
 *
 * The time is that from the start of the first call to the end of the last, so
 * what QEMU does between them is in it.
 */
#define _GNU_SOURCE /* gettid() */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <linux/kvm.h>

int __wrap_ioctl(int fd, unsigned long request, ...);
int __real_ioctl(int fd, unsigned long request, ...);

static __thread struct {
	unsigned int calls;
	bool put; /* QEMU reads a register or two while it restores, too. */
	uint64_t begin_ns;
	uint64_t end_ns;
} series;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static bool is_vgic_registers(uint32_t group)
{
	switch (group) {
	case KVM_DEV_ARM_VGIC_GRP_DIST_REGS:
	case KVM_DEV_ARM_VGIC_GRP_REDIST_REGS:
	case KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS:
	case KVM_DEV_ARM_VGIC_GRP_LEVEL_INFO:
	case 10: /* KVM_DEV_ARM_VGIC_GRP_BATCH_REGS, in patched headers only */
		return true;
	default:
		return false;
	}
}

static void end_series(void)
{
	uint64_t us = now_ns(CLOCK_REALTIME) / 1000;

	fprintf(stderr,
		"%d@%llu.%06llu:lab_vgic_registers direction=%s calls=%u us=%llu\n",
		(int)gettid(), (unsigned long long)us / 1000000,
		(unsigned long long)us % 1000000, series.put ? "put" : "get",
		series.calls,
		(unsigned long long)(series.end_ns - series.begin_ns) / 1000);
	series.calls = 0;
	series.put = false;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	const struct kvm_device_attr *attr;
	void *arg;
	va_list ap;
	int ret;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);

	attr = arg;
	if ((request != KVM_GET_DEVICE_ATTR &&
	     request != KVM_SET_DEVICE_ATTR) ||
	    !is_vgic_registers(attr->group)) {
		if (series.calls)
			end_series();
		return __real_ioctl(fd, request, arg);
	}

	if (!series.calls++)
		series.begin_ns = now_ns(CLOCK_MONOTONIC);
	series.put |= request == KVM_SET_DEVICE_ATTR;
	ret = __real_ioctl(fd, request, arg);
	series.end_ns = now_ns(CLOCK_MONOTONIC);
	return ret;
}
