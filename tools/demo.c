// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"
#include "state.h"
#include "swiftgic.h"
#include "vm.h"

#define MAX_SHOWN 20 /* registers that differ */

struct demo {
	struct vm vm;
	struct sgic_device *device;
};

static int create(struct demo *demo, const struct vm_config *vm_config,
		  bool no_batch)
{
	struct sgic_device_config config = {
		.size = sizeof(config),
		.flags = no_batch ? SGIC_DEVICE_NO_BATCH : 0,
		.nr_vcpus = vm_config->nr_vcpus,
	};
	struct sgic_error error;
	int ret;

	ret = vm_create(&demo->vm, vm_config);
	if (ret)
		return failed(ret == -ENODEV ? EXIT_CANNOT : EXIT_FAILED,
			      "creating the VM: %s", demo->vm.err);
	config.gic_fd = demo->vm.gic_fd;
	config.mpidrs = demo->vm.mpidrs;
	if (!sgic_device_new(&config, &demo->device, &error))
		return EXIT_OK;
	vm_destroy(&demo->vm);
	return failed(EXIT_FAILED, "%s", error.message);
}

static void destroy(struct demo *demo)
{
	sgic_device_free(demo->device);
	vm_destroy(&demo->vm);
}

/* In the order of a restore, each register with its value of the seed */
static int fill(struct vm *vm, uint32_t seed)
{
	struct kvm_dev_arm_vgic_batch_entry *entries;
	struct sgic_shape shape;
	struct sgic_reg *regs;
	size_t i, n, nr = 0;
	uint64_t val;
	int ret;

	if (vm_shape(vm, &shape))
		return failed(EXIT_FAILED, "%s", vm->err);
	n = sgic_regs_count(&shape, SGIC_RESTORE);
	regs = calloc(n, sizeof(*regs));
	entries = calloc(n, sizeof(*entries));
	if (!regs || !entries) {
		free(regs);
		free(entries);
		return failed(EXIT_FAILED, "out of memory");
	}
	sgic_regs_fill(&shape, SGIC_RESTORE, regs);
	for (i = 0; i < n; i++) {
		if (state_value(&shape, seed, &regs[i], &val) == STATE_KEEP)
			continue;
		entries[nr].group = regs[i].group;
		entries[nr].attr = regs[i].attr;
		entries[nr].val = val;
		entries[nr++].val_hi = val >> 32;
	}
	if (vm_has_batch(vm)) {
		ret = vm_batch_all(vm, true, entries, nr, NULL);
	} else {
		for (i = 0, ret = 0; !ret && i < nr; i++)
			ret = vm_set(vm, entries[i].group, entries[i].attr,
				     vm_entry_val(&entries[i]));
	}
	free(regs);
	free(entries);
	return ret ? failed(EXIT_FAILED, "filling the VM: %s", strerror(-ret))
		   : EXIT_OK;
}

static int save(struct demo *demo, struct sgic_state *state,
		struct sgic_stats *stats)
{
	struct sgic_error error;
	int ret = sgic_device_save(demo->device, state, &error);

	if (stats)
		sgic_device_stats(demo->device, stats);
	return ret ? failed(EXIT_FAILED, "%s", error.message) : EXIT_OK;
}

int demo_save(uint32_t vcpus, uint32_t irqs, uint32_t seed, bool no_batch,
	      struct sgic_state *state, struct sgic_stats *stats)
{
	const struct vm_config config = { .nr_vcpus = vcpus, .nr_irqs = irqs };
	struct demo demo;
	int ret = create(&demo, &config, no_batch);

	if (ret)
		return ret;
	ret = fill(&demo.vm, seed);
	if (!ret)
		ret = save(&demo, state, stats);
	destroy(&demo);
	return ret;
}

static int show_difference(const struct sgic_value *a,
			   const struct sgic_value *b, void *data)
{
	unsigned int *shown = data;

	if ((*shown)++ < MAX_SHOWN)
		failed(0, "%s was restored as %#llx and is %#llx", a->name,
		       (unsigned long long)a->val, (unsigned long long)b->val);
	return 0;
}

static int compare(struct demo *demo, const struct sgic_state *state)
{
	struct sgic_state *again = sgic_state_new();
	struct sgic_error error;
	unsigned int shown = 0;
	int ret;

	if (!again)
		return failed(EXIT_FAILED, "out of memory");
	ret = save(demo, again, NULL);
	if (!ret) {
		ret = sgic_state_compare(state, again, show_difference, &shown,
					 &error);
		if (ret < 0)
			ret = failed(EXIT_FAILED, "%s", error.message);
		else if (ret)
			ret = failed(EXIT_FAILED, "%u registers differ", shown);
	}
	sgic_state_free(again);
	return ret;
}

int demo_restore(const struct sgic_state *state, bool no_batch,
		 struct sgic_stats *stats)
{
	struct vm_config config = { 0 };
	struct sgic_machine machine;
	struct sgic_error error;
	uint64_t *mpidrs;
	struct demo demo;
	uint32_t i;
	int ret;

	sgic_state_machine(state, &machine);
	if (machine.lpis)
		return failed(EXIT_CANNOT,
			      "the snapshot is of a VM with LPIs, whose tables"
			      " are in guest memory, which it does not have");
	mpidrs = calloc(machine.nr_vcpus, sizeof(*mpidrs));
	if (!mpidrs)
		return failed(EXIT_FAILED, "out of memory");
	for (i = 0; i < machine.nr_vcpus; i++)
		mpidrs[i] = sgic_state_mpidr(state, i);
	config.nr_vcpus = machine.nr_vcpus;
	config.nr_irqs = machine.nr_irqs;
	config.el2 = machine.el2;
	config.mpidrs = mpidrs;

	ret = create(&demo, &config, no_batch);
	if (!ret) {
		if (sgic_device_restore(demo.device, state, &error))
			ret = failed(EXIT_FAILED, "%s", error.message);
		sgic_device_stats(demo.device, stats);
		if (!ret)
			ret = compare(&demo, state);
		destroy(&demo);
	}
	free(mpidrs);
	return ret;
}
