/* SPDX-License-Identifier: MIT */
/*
 * The results of `make migrate`: the file, the table beside what was published,
 * and the verdict on the targets.
 */
#ifndef SWIFTGIC_TOOLS_MIGRATE_RESULTS_H
#define SWIFTGIC_TOOLS_MIGRATE_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define MIGRATE_NAME_LEN 72

enum migrate_variant {
	MIGRATE_STOCK,
	MIGRATE_PATCHED,
	NR_MIGRATE_VARIANTS,
};

/* What is measured of a migration; a figure that was not is MIGRATE_NONE. */
enum migrate_figure {
	MIGRATE_DOWNTIME,	 /* as query-migrate has it */
	MIGRATE_SOURCE,		 /* from its stop to the end of the save */
	MIGRATE_SOURCE_GET,	 /* the VGIC's registers, its ITS's not */
	MIGRATE_SOURCE_CPUS,	 /* that of all vCPUs */
	MIGRATE_SOURCE_RAM,	 /* and the rest of the memory */
	MIGRATE_DESTINATION,	 /* the load of all device states */
	MIGRATE_DESTINATION_PUT, /* the VGIC's registers */
	MIGRATE_DESTINATION_CPUS,
	MIGRATE_BOOT_PUT, /* the same, when a QEMU starts */
	NR_MIGRATE_FIGURES,
};

#define MIGRATE_NONE (-1)

extern const char *const migrate_variant_names[NR_MIGRATE_VARIANTS];

struct migrate_run {
	enum migrate_variant kernel;
	enum migrate_variant source;
	enum migrate_variant destination;
	double ms[NR_MIGRATE_FIGURES];
	bool guest_ok;
};

struct migrate_results {
	uint32_t vcpus;
	uint32_t online;
	char workload[128];
	char kernel[MIGRATE_NAME_LEN];
	char qemu[MIGRATE_NAME_LEN];
	struct migrate_run *runs;
	size_t nr_runs;
};

/* Returns the run, without a figure, or NULL: out of memory. */
struct migrate_run *migrate_add_run(struct migrate_results *results);
void migrate_free(struct migrate_results *results);

/* The index of @name, or -1 */
int migrate_variant(const char *name);

/* Return 0, or -1 with one line about the file printed to stderr. */
int migrate_load(struct migrate_results *results, const char *path);
int migrate_save(const struct migrate_results *results, const char *path);

void migrate_print_table(const struct migrate_results *results, FILE *f);

/* A line for each target; returns how many are missed, or have no figure. */
int migrate_print_verdict(const struct migrate_results *results, FILE *f);

#endif
