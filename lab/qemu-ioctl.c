// SPDX-License-Identifier: MIT
/*
 * Linked into both of the lab's QEMUs, stock and patched, in front of ioctl(): how
 * long KVM takes for the VGIC's registers, one by one or in batches. If
 * LAB_VGIC_REGISTERS is in the environment, a thread's calls for them, up to a
 * pause or its next call for something else, are a line on stderr, in the form of a
 * trace event, whose time is that of the end of the last call:
 *
 *   TID@SECONDS:lab_vgic_registers direction=get|put calls=N us=N
 */
#define _GNU_SOURCE /* gettid() */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/kvm.h>

#define PAUSE_NS 5000000

int __wrap_ioctl(int fd, unsigned long request, ...);
int __real_ioctl(int fd, unsigned long request, ...);

static __thread struct {
	unsigned int calls;
	bool put; /* QEMU reads a register or two while it restores, too. */
	uint64_t ns;
	uint64_t end_ns; /* CLOCK_REALTIME, as the trace has it */
} series;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
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
	uint64_t us = series.end_ns / 1000;

	if (!series.calls || !getenv("LAB_VGIC_REGISTERS"))
		return;
	fprintf(stderr,
		"%d@%llu.%06llu:lab_vgic_registers direction=%s calls=%u us=%llu\n",
		(int)gettid(), (unsigned long long)us / 1000000,
		(unsigned long long)us % 1000000, series.put ? "put" : "get",
		series.calls, (unsigned long long)series.ns / 1000);
	memset(&series, 0, sizeof(series));
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	const struct kvm_device_attr *attr;
	uint64_t begin;
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
		end_series();
		return __real_ioctl(fd, request, arg);
	}

	begin = now_ns();
	if (begin - series.end_ns > PAUSE_NS)
		end_series();
	ret = __real_ioctl(fd, request, arg);
	series.end_ns = now_ns();
	series.ns += series.end_ns - begin;
	series.put |= request == KVM_SET_DEVICE_ATTR;
	series.calls++;
	return ret;
}
