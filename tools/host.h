/* SPDX-License-Identifier: MIT */
/* What a host has for guests with a GICv3; it needs an arm64 host. */
#ifndef SWIFTGIC_TOOLS_HOST_H
#define SWIFTGIC_TOOLS_HOST_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct probe - what there is
 * @kvm:	/dev/kvm can be used
 * @vgicv3:	KVM can emulate a GICv3
 * @its:	and an ITS
 * @max_vcpus:	of a VM
 * @batch:	registers that a batch call takes; 0 if there is none
 * @advice:	what to do about the first thing that is missing, or ""
 */
struct probe {
	bool kvm;
	bool vgicv3;
	bool its;
	int max_vcpus;
	uint32_t batch;
	char advice[320];
};

/* Returns an exit status of the command. */
int probe_host(struct probe *probe);

#endif
