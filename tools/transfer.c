// SPDX-License-Identifier: MIT
/*
 * How much it costs to move a VGIC's state, one register a call and batched.
 *
 * What is warm: the arrays have been written before, so that no page fault
 * is timed. A get is timed on its second batched pass; the one-by-one pass
 * is a single one, because its first call already warms the path of all the
 * others, and because at 512 vCPUs it alone is three thousand million
 * instructions. Each put goes into a VM that nothing was put into before,
 * as at the destination of a migration.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/kvm.h>
#include <swiftgic.h>

#include "state.h"
#include "swiftgic.h"
#include "transfer.h"
#include "vgic_limit.h"
#include "vm.h"

#define LIMIT_DEVICE "/dev/vgic_limit"

#define ONE_REGISTER_VCPUS 160
#define ONE_REGISTER_CALLS 500

/* Counts from here on take long enough for progress to be welcome. */
#define MANY_VCPUS 160

typedef struct kvm_dev_arm_vgic_batch_entry entry_t;

/* One vCPU count being measured */
struct transfer {
	const struct transfer_options *options;
	struct results *results;
	struct vm_config config;
	struct vm source;
	struct sgic_shape shape;
	bool has_batch;
	int limit_fd;

	struct sgic_reg *save;
	size_t nr_save;
	struct sgic_reg *restore;
	size_t nr_restore;
	uint64_t *values; /* the source's, by slot; read one by one */
	uint64_t *read;	  /* what is to be compared with them */
	entry_t *entries; /* room for the longer of the two lists */
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void progress(const struct transfer *t, const char *what)
{
	if (t->shape.nr_vcpus >= MANY_VCPUS)
		fprintf(stderr, "%u vCPUs: %s\n", t->shape.nr_vcpus, what);
}

static int create_vm(struct vm *vm, const struct vm_config *config)
{
	int ret = vm_create(vm, config);

	if (ret)
		return failed(ret == -ENODEV ? EXIT_CANNOT : EXIT_FAILED,
			      "%u vCPUs: %s", config->nr_vcpus, vm->err);
	return EXIT_OK;
}

/* One by one */

static int reg_failed(const struct sgic_reg *reg, const char *what, int err)
{
	char name[64];

	sgic_reg_name(reg, name, sizeof(name));
	return failed(EXIT_FAILED, "%s %s: %s", what, name, strerror(-err));
}

static int get_one_by_one(struct vm *vm, const struct sgic_reg *regs, size_t n,
			  uint64_t *values)
{
	size_t i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = vm_get(vm, regs[i].group, regs[i].attr, &values[i]);
		if (ret)
			return reg_failed(&regs[i], "reading", ret);
	}
	return EXIT_OK;
}

static int put_one_by_one(struct vm *vm, const struct sgic_reg *regs, size_t n,
			  const uint64_t *values)
{
	size_t i;
	int ret;

	for (i = 0; i < n; i++) {
		ret = vm_set(vm, regs[i].group, regs[i].attr,
			     sgic_reg_value(&regs[i], values));
		if (ret)
			return reg_failed(&regs[i], "writing", ret);
	}
	return EXIT_OK;
}

/* Batched */

static void fill_entry(entry_t *entry, const struct sgic_reg *reg, uint64_t val)
{
	*entry = (entry_t){
		.group = reg->group,
		.attr = reg->attr,
		.val = val,
		.val_hi = val >> 32,
	};
}

static void fill_get(struct transfer *t)
{
	size_t i;

	for (i = 0; i < t->nr_save; i++)
		fill_entry(&t->entries[i], &t->save[i], 0);
}

static void fill_put(struct transfer *t)
{
	size_t i;

	for (i = 0; i < t->nr_restore; i++)
		fill_entry(&t->entries[i], &t->restore[i],
			   sgic_reg_value(&t->restore[i], t->values));
}

static int batch_failed(const entry_t *entries, const struct sgic_reg *regs,
			size_t n, const char *what, int err)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (entries[i].error)
			return reg_failed(&regs[i], what, entries[i].error);
	return failed(EXIT_FAILED, "%s a batch: %s", what, strerror(-err));
}

static int get_batch(struct transfer *t, struct vm *vm, uint64_t *values)
{
	size_t i;
	int ret;

	fill_get(t);
	ret = vm_batch_all(vm, false, t->entries, t->nr_save, NULL);
	if (ret)
		return batch_failed(t->entries, t->save, t->nr_save, "reading",
				    ret);
	for (i = 0; i < t->nr_save; i++)
		values[i] = vm_entry_val(&t->entries[i]);
	return EXIT_OK;
}

/* The limit: the same handlers without call, lock and copy; see lab/limit */
static int run_limit(struct transfer *t, struct vm *vm, bool write,
		     int64_t *insns)
{
	struct vgic_limit_run run = {
		.vm_fd = vm->fd,
		.write = write,
		.entries = (uintptr_t)t->entries,
		.count = write ? t->nr_restore : t->nr_save,
	};

	if (ioctl(t->limit_fd, VGIC_LIMIT_RUN, &run))
		return failed(EXIT_FAILED, LIMIT_DEVICE ": %s",
			      strerror(errno));
	*insns = run.ns;
	return EXIT_OK;
}

/* The library, on a VM whose ITS it is not told of: the same registers */
static struct sgic_device *library_device(const struct vm *vm)
{
	const struct sgic_device_config config = {
		.size = sizeof(config),
		.gic_fd = vm->gic_fd,
		.mpidrs = vm->mpidrs,
		.nr_vcpus = vm->config.nr_vcpus,
	};
	struct sgic_device *device;
	struct sgic_error error;

	if (!sgic_device_new(&config, &device, &error))
		return device;
	failed(EXIT_FAILED, "the library: %s", error.message);
	return NULL;
}

/* The second save into a state, as the second pass of a batch */
static int library_save(struct transfer *t, const struct vm *vm,
			struct sgic_state *state, int64_t *insns)
{
	struct sgic_device *device = library_device(vm);
	struct sgic_error error;
	uint64_t start = 0;
	int ret = 0;

	if (!device)
		return EXIT_FAILED;
	for (int pass = 0; !ret && pass < 2; pass++) {
		start = now_ns();
		ret = sgic_device_save(device, state, &error);
	}
	*insns = now_ns() - start;
	sgic_device_free(device);
	if (ret)
		return failed(EXIT_FAILED, "the library: %s", error.message);
	if (sgic_state_count(state) != t->nr_save)
		return failed(EXIT_FAILED, "the library has %zu registers",
			      sgic_state_count(state));
	return EXIT_OK;
}

static int get_library(struct transfer *t, int64_t *insns)
{
	struct sgic_state *state = sgic_state_new();
	struct sgic_value value;
	size_t i;
	int ret;

	if (!state)
		return failed(EXIT_FAILED, "out of memory");
	ret = library_save(t, &t->source, state, insns);
	for (i = 0; !ret && i < t->nr_save; i++) {
		sgic_state_value(state, i, &value);
		t->read[i] = value.val;
	}
	sgic_state_free(state);
	return ret;
}

/* Checks */

static int compare(const struct transfer *t, const char *what)
{
	char name[64];
	size_t i;

	for (i = 0; i < t->nr_save; i++) {
		if (t->read[i] == t->values[i])
			continue;
		sgic_reg_name(&t->save[i], name, sizeof(name));
		return failed(EXIT_FAILED,
			      "%u vCPUs: %s: %s is %#llx, not %#llx",
			      t->shape.nr_vcpus, what, name,
			      (unsigned long long)t->read[i],
			      (unsigned long long)t->values[i]);
	}
	return EXIT_OK;
}

static int compare_vm(struct transfer *t, struct vm *vm, const char *what)
{
	int ret;

	if (t->has_batch)
		ret = get_batch(t, vm, t->read);
	else
		ret = get_one_by_one(vm, t->save, t->nr_save, t->read);
	return ret ? ret : compare(t, what);
}

/* Did the source take the state that it was filled with? */
static int check_fill(const struct transfer *t)
{
	const struct sgic_reg *reg;
	char name[64];
	uint64_t val;
	size_t i;

	for (i = 0; i < t->nr_restore; i++) {
		reg = &t->restore[i];
		if (state_value(&t->shape, t->options->seed, reg, &val) !=
			    STATE_EXACT ||
		    t->values[reg->slot] == val)
			continue;
		sgic_reg_name(reg, name, sizeof(name));
		return failed(EXIT_FAILED,
			      "%u vCPUs: %s was set to %#llx and is %#llx",
			      t->shape.nr_vcpus, name, (unsigned long long)val,
			      (unsigned long long)t->values[reg->slot]);
	}
	return EXIT_OK;
}

/* Steps */

/*
 * Batched, where the kernel can: one by one, filling would cost as much as
 * a measurement. check_fill() reads what came of it one by one.
 */
static int fill_source(struct transfer *t)
{
	const struct sgic_reg *reg;
	uint64_t val;
	size_t i, n = 0;
	int ret;

	progress(t, "filling");
	for (i = 0; i < t->nr_restore; i++) {
		reg = &t->restore[i];
		if (state_value(&t->shape, t->options->seed, reg, &val) ==
		    STATE_KEEP)
			continue;
		if (t->has_batch) {
			fill_entry(&t->entries[n++], reg, val);
			continue;
		}
		ret = vm_set(&t->source, reg->group, reg->attr, val);
		if (ret)
			return reg_failed(reg, "filling", ret);
	}
	ret = vm_batch_all(&t->source, true, t->entries, n, NULL);
	if (ret)
		return failed(EXIT_FAILED, "filling: %s", strerror(-ret));
	return EXIT_OK;
}

static struct result_row *add_row(struct transfer *t, bool put)
{
	struct result_row *row = results_add_row(t->results);

	if (!row) {
		failed(EXIT_FAILED, "out of memory");
		return NULL;
	}
	memcpy(row->kernel, t->results->kernel, sizeof(row->kernel));
	row->vcpus = t->shape.nr_vcpus;
	row->put = put;
	row->registers = put ? t->nr_restore : t->nr_save;
	return row;
}

static int time_batch(struct transfer *t, struct vm *vm, bool write,
		      struct result_row *row)
{
	const struct sgic_reg *regs = write ? t->restore : t->save;
	size_t n = write ? t->nr_restore : t->nr_save;
	unsigned int calls = 0;
	uint64_t start;
	int ret;

	start = now_ns();
	ret = vm_batch_all(vm, write, t->entries, n, &calls);
	row->batch_insns = now_ns() - start;
	row->calls_batch = calls;
	if (ret)
		return batch_failed(t->entries, regs, n,
				    write ? "writing" : "reading", ret);
	return EXIT_OK;
}

/*
 * Reads the source's values one by one; all the rest is compared with them.
 */
static int measure_get(struct transfer *t)
{
	struct result_row *row = add_row(t, false);
	uint64_t start;
	size_t i;
	int ret;

	if (!row)
		return EXIT_FAILED;

	progress(t, "get, one by one");
	memset(t->values, 0, t->nr_save * sizeof(*t->values));
	start = now_ns();
	ret = get_one_by_one(&t->source, t->save, t->nr_save, t->values);
	row->one_by_one_insns = now_ns() - start;
	if (ret)
		return ret;
	ret = check_fill(t);
	if (ret || !t->has_batch)
		return ret;

	progress(t, "get, batched");
	ret = get_batch(t, &t->source, t->read);
	if (ret)
		return ret;
	fill_get(t);
	ret = time_batch(t, &t->source, false, row);
	if (ret)
		return ret;
	for (i = 0; i < t->nr_save; i++)
		t->read[i] = vm_entry_val(&t->entries[i]);
	ret = compare(t, "batched get");
	if (ret)
		return ret;

	progress(t, "save, library");
	ret = get_library(t, &row->library_insns);
	if (!ret)
		ret = compare(t, "library save");
	if (ret || t->limit_fd < 0)
		return ret;

	fill_get(t);
	ret = run_limit(t, &t->source, false, &row->handlers_insns);
	if (ret)
		return ret;
	for (i = 0; i < t->nr_save; i++)
		t->read[i] = vm_entry_val(&t->entries[i]);
	return compare(t, "handlers alone, get");
}

/* The values to put, where nothing has measured a get */
static int read_source(struct transfer *t)
{
	int ret;

	if (t->has_batch)
		ret = get_batch(t, &t->source, t->values);
	else
		ret = get_one_by_one(&t->source, t->save, t->nr_save,
				     t->values);
	return ret ? ret : check_fill(t);
}

static int put_into_fresh_vm(struct transfer *t, struct result_row *row,
			     int (*put)(struct transfer *t, struct vm *vm,
					struct result_row *row),
			     const char *what)
{
	struct vm vm;
	int ret;

	progress(t, what);
	ret = create_vm(&vm, &t->config);
	if (ret)
		return ret;
	ret = put(t, &vm, row);
	if (!ret)
		ret = compare_vm(t, &vm, what);
	vm_destroy(&vm);
	return ret;
}

static int put_one_by_one_timed(struct transfer *t, struct vm *vm,
				struct result_row *row)
{
	uint64_t start = now_ns();
	int ret;

	ret = put_one_by_one(vm, t->restore, t->nr_restore, t->values);
	row->one_by_one_insns = now_ns() - start;
	return ret;
}

static int put_batch_timed(struct transfer *t, struct vm *vm,
			   struct result_row *row)
{
	fill_put(t);
	return time_batch(t, vm, true, row);
}

static int put_library_timed(struct transfer *t, struct vm *vm,
			     struct result_row *row)
{
	struct sgic_device *device = library_device(vm);
	struct sgic_state *state = sgic_state_new();
	struct sgic_error error;
	int64_t insns;
	uint64_t start;
	int ret = EXIT_FAILED;

	if (device && state)
		ret = library_save(t, &t->source, state, &insns);
	if (!ret) {
		start = now_ns();
		if (sgic_device_restore(device, state, &error))
			ret = failed(EXIT_FAILED, "the library: %s",
				     error.message);
		row->library_insns = now_ns() - start;
	}
	sgic_state_free(state);
	sgic_device_free(device);
	return ret;
}

/*
 * A VM that has run has a table of its MPIDRs on kernels that know one. A
 * batch brings its own; without either, GICD_IROUTER searches all vCPUs.
 */
static int put_limit_timed(struct transfer *t, struct vm *vm,
			   struct result_row *row)
{
	int ret = vm_enter_once(vm, 0);

	if (ret)
		return failed(EXIT_FAILED, "%s", vm->err);
	fill_put(t);
	return run_limit(t, vm, true, &row->handlers_insns);
}

static int measure_put(struct transfer *t)
{
	struct result_row *row = add_row(t, true);
	int ret;

	if (!row)
		return EXIT_FAILED;
	ret = put_into_fresh_vm(t, row, put_one_by_one_timed,
				"put, one by one");
	if (ret || !t->has_batch)
		return ret;
	ret = put_into_fresh_vm(t, row, put_batch_timed, "put, batched");
	if (!ret)
		ret = put_into_fresh_vm(t, row, put_library_timed,
					"restore, library");
	if (ret || t->limit_fd < 0)
		return ret;
	return put_into_fresh_vm(t, row, put_limit_timed,
				 "put, handlers alone");
}

static int alloc_lists(struct transfer *t)
{
	size_t longest;

	t->nr_save = sgic_regs_count(&t->shape, SGIC_SAVE);
	t->nr_restore = sgic_regs_count(&t->shape, SGIC_RESTORE);
	longest = t->nr_save > t->nr_restore ? t->nr_save : t->nr_restore;

	t->save = calloc(t->nr_save, sizeof(*t->save));
	t->restore = calloc(t->nr_restore, sizeof(*t->restore));
	t->values = calloc(t->nr_save, sizeof(*t->values));
	t->read = calloc(t->nr_save, sizeof(*t->read));
	t->entries = calloc(longest, sizeof(*t->entries));
	if (!t->save || !t->restore || !t->values || !t->read || !t->entries)
		return failed(EXIT_FAILED, "out of memory");
	sgic_regs_fill(&t->shape, SGIC_SAVE, t->save);
	sgic_regs_fill(&t->shape, SGIC_RESTORE, t->restore);
	return EXIT_OK;
}

static void free_lists(struct transfer *t)
{
	free(t->save);
	free(t->restore);
	free(t->values);
	free(t->read);
	free(t->entries);
}

static int measure_vm(struct transfer *t)
{
	const char *why;
	int ret;

	ret = vm_shape(&t->source, &t->shape);
	if (ret)
		return failed(EXIT_FAILED, "%s", t->source.err);
	why = sgic_shape_check(&t->shape);
	if (why)
		return failed(EXIT_USAGE, "%s", why);
	t->has_batch = vm_has_batch(&t->source);

	ret = alloc_lists(t);
	if (!ret)
		ret = fill_source(t);
	if (!ret)
		ret = t->options->get ? measure_get(t) : read_source(t);
	if (!ret && t->options->put)
		ret = measure_put(t);
	free_lists(t);
	return ret;
}

static int measure_count(const struct transfer_options *options,
			 uint32_t nr_vcpus, struct results *results,
			 bool *has_batch)
{
	struct transfer t = {
		.options = options,
		.results = results,
		.config = {
			.nr_vcpus = nr_vcpus,
			.nr_irqs = options->irqs,
			.its = true,
		},
	};
	int ret;

	ret = create_vm(&t.source, &t.config);
	if (ret)
		return ret;
	t.limit_fd = open(LIMIT_DEVICE, O_RDWR | O_CLOEXEC);
	ret = measure_vm(&t);
	*has_batch = t.has_batch;
	if (t.limit_fd >= 0)
		close(t.limit_fd);
	vm_destroy(&t.source);
	return ret;
}

static void set_kernel(struct results *results)
{
	struct utsname uts;

	if (!uname(&uts))
		snprintf(results->kernel, sizeof(results->kernel), "%s",
			 uts.release);
}

int transfer_measure(const struct transfer_options *options,
		     struct results *results)
{
	bool has_batch = true;
	size_t i;
	int ret;

	set_kernel(results);
	results->seed = options->seed;
	for (i = 0; i < options->nr_vcpus; i++) {
		ret = measure_count(options, options->vcpus[i], results,
				    &has_batch);
		if (ret)
			return ret;
	}
	if (!has_batch)
		fprintf(stderr,
			"This kernel has no batch call: measured one by one only.\n");
	return EXIT_OK;
}

/* The cost of one call, averaged over the first registers of the vCPUs */
static int time_one_register(struct transfer *t,
			     struct result_one_register *one)
{
	const struct sgic_reg *regs = t->restore;
	size_t n = 0, i;
	uint64_t start;
	int ret;

	/*
	 * What is written back is what was read, so the pass of reads comes
	 * first. It also warms the path.
	 */
	for (i = 0; i < t->nr_restore && n < ONE_REGISTER_CALLS; i++)
		if (regs[i].group != KVM_DEV_ARM_VGIC_GRP_DIST_REGS &&
		    regs[i].slot < SGIC_SLOT_ZERO)
			t->restore[n++] = regs[i];
	ret = get_one_by_one(&t->source, regs, n, t->values);
	if (ret)
		return ret;

	start = now_ns();
	ret = get_one_by_one(&t->source, regs, n, t->values);
	one->get_insns = (double)(now_ns() - start) / n;
	if (ret)
		return ret;

	start = now_ns();
	for (i = 0; i < n && !ret; i++)
		ret = vm_set(&t->source, regs[i].group, regs[i].attr,
			     t->values[i]);
	one->put_insns = (double)(now_ns() - start) / n;
	if (ret)
		return reg_failed(&regs[i - 1], "writing", ret);

	memcpy(one->kernel, t->results->kernel, sizeof(one->kernel));
	one->vcpus = t->shape.nr_vcpus;
	one->calls = n;
	return EXIT_OK;
}

int transfer_measure_one_register(const struct transfer_options *options,
				  struct results *results)
{
	struct transfer t = {
		.options = options,
		.results = results,
		.config = {
			.nr_vcpus = ONE_REGISTER_VCPUS,
			.nr_irqs = options->irqs,
			.its = true,
		},
	};
	int side, ret;

	set_kernel(results);
	ret = create_vm(&t.source, &t.config);
	if (ret)
		return ret;
	side = vm_has_batch(&t.source) ? RESULT_PATCHED : RESULT_STOCK;
	ret = vm_shape(&t.source, &t.shape);
	if (ret)
		ret = failed(EXIT_FAILED, "%s", t.source.err);
	if (!ret)
		ret = alloc_lists(&t);
	if (!ret)
		ret = time_one_register(&t, &results->one_register[side]);
	free_lists(&t);
	vm_destroy(&t.source);
	return ret;
}
