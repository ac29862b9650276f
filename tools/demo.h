/* SPDX-License-Identifier: MIT */
/*
 * The VM of `swiftgic save` and `swiftgic restore`: a GICv3 and vCPUs that
 * never run. It has no memory, and so no ITS. It needs an arm64 host.
 *
 * Both functions return an exit status of the command, and have printed why to
 * stderr if it is not EXIT_OK.
 */
#ifndef SWIFTGIC_TOOLS_DEMO_H
#define SWIFTGIC_TOOLS_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include <swiftgic.h>

/* Make a VM, fill it with the state of a seed, and save it. */
int demo_save(uint32_t vcpus, uint32_t irqs, uint32_t seed, bool no_batch,
	      struct sgic_state *state, struct sgic_stats *stats);

/*
 * Make the VM that the state is of, restore it, save it again and compare;
 * EXIT_FAILED, and the registers printed, if they differ.
 */
int demo_restore(const struct sgic_state *state, bool no_batch,
		 struct sgic_stats *stats);

#endif
