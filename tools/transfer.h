/* SPDX-License-Identifier: MIT */
/* The measurements of `swiftgic bench`; they need an arm64 host with KVM. */
#ifndef SWIFTGIC_TOOLS_TRANSFER_H
#define SWIFTGIC_TOOLS_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results.h"

struct transfer_options {
	const uint32_t *vcpus;
	size_t nr_vcpus;
	uint32_t irqs;
	uint32_t seed;
	bool get;
	bool put;
};

/*
 * Add a row to @results for each vCPU count and direction, or what one call
 * costs. Both return an exit status of the command, and have printed why to
 * stderr if it is not EXIT_OK.
 */
int transfer_measure(const struct transfer_options *options,
		     struct results *results);
int transfer_measure_one_register(const struct transfer_options *options,
				  struct results *results);

#endif
