/* SPDX-License-Identifier: MIT */
/* The measurement of `swiftgic inject`; it needs an arm64 host with KVM. */
#ifndef SWIFTGIC_TOOLS_INJECTION_H
#define SWIFTGIC_TOOLS_INJECTION_H

#include <stdint.h>

enum injection_path {
	INJECT_SIGNAL_MSI,
	INJECT_IRQFD,
	NR_INJECT_PATHS,
};

enum injection_state {
	INJECT_PENDING,
	INJECT_IDLE,
	NR_INJECT_STATES,
};

struct injection {
	uint32_t vcpus;
	uint32_t lpis;
	enum injection_path path;
	enum injection_state state;
};

/*
 * What one injection of a cached translation costs, in units of
 * CLOCK_MONOTONIC. Returns an exit status of the command, and has printed why
 * to stderr if it is not EXIT_OK.
 */
int injection_measure(const struct injection *injection, double *insns);

/*
 * How many locks that the whole VM shares one injection takes, from the
 * kernel's lock statistics. EXIT_CANNOT if the kernel has none.
 */
int injection_count_locks(const struct injection *injection, double *vm_locks);

/*
 * LPIs a second of @threads threads, each on a CPU of its own and with LPIs of
 * its own; @threads CPUs are needed, and as many LPIs.
 */
int injection_rate(const struct injection *injection, uint32_t threads,
		   double *per_second);

#endif
