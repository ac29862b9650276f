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

#endif
