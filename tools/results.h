/* SPDX-License-Identifier: MIT */
/*
 * The results of the transfer benchmark: the file, the table, and the
 * verdict on the targets.
 */
#ifndef SWIFTGIC_TOOLS_RESULTS_H
#define SWIFTGIC_TOOLS_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A figure that was not measured; null in the file */
#define RESULT_NONE (-1)

#define RESULT_NAME_LEN 72

struct result_row {
	char kernel[RESULT_NAME_LEN];
	uint32_t vcpus;
	bool put;
	uint32_t registers;
	int64_t calls_batch;
	int64_t one_by_one_insns;
	int64_t batch_insns;
	int64_t handlers_insns;
	int64_t library_insns;
};

/* The cost of one KVM_{GET,SET}_DEVICE_ATTR, on a kernel with batch or not */
struct result_one_register {
	char kernel[RESULT_NAME_LEN];
	uint32_t vcpus;
	uint32_t calls;
	double get_insns;
	double put_insns;
};

enum {
	RESULT_STOCK,
	RESULT_PATCHED,
	RESULT_NR_SIDES,
};

struct results {
	char kernel[RESULT_NAME_LEN];
	char clock[16];
	uint32_t seed;
	struct result_row *rows;
	size_t nr_rows;
	/* .calls is 0 where not measured */
	struct result_one_register one_register[RESULT_NR_SIDES];
};

/* Returns the row, zeroed but for the figures, or NULL: out of memory. */
struct result_row *results_add_row(struct results *results);
void results_free(struct results *results);

/*
 * Add a file's results to @results; load the first into a zeroed struct.
 * Return 0, or -1 with one line about the file printed to stderr.
 */
int results_load(struct results *results, const char *path);
int results_save(const struct results *results, const char *path);

void results_print_table(const struct results *results, FILE *f);

/*
 * Print a line for each target; return how many are missed. One that the
 * results have no figure for is missed if they are said to be complete.
 */
int results_print_verdict(const struct results *results, bool complete,
			  FILE *f);

#endif
