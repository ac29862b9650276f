/* SPDX-License-Identifier: MIT */
/*
 * The results of the injection benchmark: the file, the table, and the
 * verdict on the targets.
 */
#ifndef SWIFTGIC_TOOLS_INJECT_RESULTS_H
#define SWIFTGIC_TOOLS_INJECT_RESULTS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "injection.h"

/* A figure that was not measured; null in the file */
#define INJECT_NONE (-1)

enum inject_variant {
	INJECT_STOCK,
	INJECT_PATCHED,
	NR_INJECT_VARIANTS,
};

struct inject_row {
	char kernel[72];
	enum inject_variant variant;
	struct injection what;
	double insns;	 /* an injection */
	double vm_locks; /* acquisitions of locks of the whole VM, an injection */
};

/* Threads that inject pending LPIs, each on a CPU of its own */
struct inject_rate {
	char kernel[72];
	enum inject_variant variant;
	uint32_t vcpus;
	uint32_t lpis;
	uint32_t threads;
	double per_second;
};

struct inject_results {
	struct inject_row *rows;
	size_t nr_rows;
	struct inject_rate *rates;
	size_t nr_rates;
};

extern const char *const inject_variant_names[NR_INJECT_VARIANTS];
extern const char *const inject_path_names[NR_INJECT_PATHS];
extern const char *const inject_state_names[NR_INJECT_STATES];

/* The index of @s in @names, or -1 */
int inject_name(const char *const *names, size_t n, const char *s);

/*
 * The row of this kernel and injection: there already, or new and without a
 * figure. NULL: out of memory
 */
struct inject_row *inject_row(struct inject_results *results,
			      const char *kernel, enum inject_variant variant,
			      const struct injection *what);
struct inject_rate *inject_add_rate(struct inject_results *results);
void inject_free(struct inject_results *results);

/* Return 0, or -1 with one line about the file printed to stderr. */
int inject_load(struct inject_results *results, const char *path);
int inject_save(const struct inject_results *results, const char *path);

void inject_print_table(const struct inject_results *results, FILE *f);

/* A line for each target; returns how many are missed, or have no figure. */
int inject_print_verdict(const struct inject_results *results, FILE *f);

#endif
