// SPDX-License-Identifier: MIT
/* The results file of make migrate, its medians, and the verdict on the targets */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "migrate_results.h"

static void add(struct migrate_results *results, enum migrate_variant variant,
		double downtime, double get, double put)
{
	struct migrate_run *run = migrate_add_run(results);

	assert_non_null(run);
	run->kernel = run->source = run->destination = variant;
	run->ms[MIGRATE_DOWNTIME] = downtime;
	run->ms[MIGRATE_SOURCE_GET] = get;
	run->ms[MIGRATE_DESTINATION_PUT] = put;
	run->guest_ok = true;
}

/* All targets met, each just so, by the median and not by the mean */
static struct migrate_results met(void)
{
	struct migrate_results results = {
		.vcpus = 160,
		.online = 16,
		.workload = "load",
		.kernel = "6.12.0",
		.qemu = "10.0.0",
	};
	struct migrate_run *mixed;

	add(&results, MIGRATE_STOCK, 1000, 100, 100);
	add(&results, MIGRATE_STOCK, 1000, 100, 100);
	add(&results, MIGRATE_STOCK, 1, 1, 1);
	add(&results, MIGRATE_PATCHED, 250, 3, 4);
	add(&results, MIGRATE_PATCHED, 250, 3, 4);
	add(&results, MIGRATE_PATCHED, 9000, 900, 900);
	/* One that is not to be counted */
	mixed = migrate_add_run(&results);
	assert_non_null(mixed);
	mixed->kernel = MIGRATE_PATCHED;
	mixed->source = MIGRATE_STOCK;
	mixed->destination = MIGRATE_PATCHED;
	mixed->ms[MIGRATE_DOWNTIME] = 9000;
	mixed->guest_ok = true;
	return results;
}

static int missed(const struct migrate_results *results, char *text,
		  size_t size)
{
	FILE *f = fmemopen(text, size, "w");
	int n;

	assert_non_null(f);
	n = migrate_print_verdict(results, f);
	fclose(f);
	return n;
}

static void all_met(void **state)
{
	struct migrate_results results = met();
	char text[1024];

	(void)state;
	assert_int_equal(missed(&results, text, sizeof(text)), 0);
	assert_null(strstr(text, "MISSED"));
	migrate_free(&results);
}

static void each_missed(void **state)
{
	static const enum migrate_figure figures[] = {
		MIGRATE_DOWNTIME,
		MIGRATE_SOURCE_GET,
		MIGRATE_DESTINATION_PUT,
	};
	struct migrate_results results;
	char text[1024];
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		results = met();
		results.runs[3].ms[figures[i]] += 0.9;
		results.runs[4].ms[figures[i]] += 0.9;
		assert_int_equal(missed(&results, text, sizeof(text)), 1);
		migrate_free(&results);
	}
}

static void figure_missing(void **state)
{
	struct migrate_results results = met();
	char text[1024];
	size_t i;

	(void)state;
	for (i = 0; i < results.nr_runs; i++)
		results.runs[i].ms[MIGRATE_SOURCE_GET] = MIGRATE_NONE;
	assert_int_equal(missed(&results, text, sizeof(text)), 1);
	migrate_free(&results);
}

static void guest_not_well(void **state)
{
	struct migrate_results results = met();
	char text[1024];

	(void)state;
	results.runs[6].guest_ok = false;
	assert_int_equal(missed(&results, text, sizeof(text)), 1);
	assert_non_null(strstr(text, "MISSED  guest well after 6 of 7"));
	results.nr_runs = 0;
	assert_int_equal(missed(&results, text, sizeof(text)), 4);
	migrate_free(&results);
}

static void round_trip(void **state)
{
	struct migrate_results results = met(), read = { 0 };
	char path[] = "/tmp/migrate.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(migrate_save(&results, path), 0);
	assert_int_equal(migrate_load(&read, path), 0);
	assert_int_equal(read.nr_runs, results.nr_runs);
	assert_memory_equal(read.runs, results.runs,
			    read.nr_runs * sizeof(*read.runs));
	assert_int_equal(read.vcpus, 160);
	assert_string_equal(read.workload, "load");
	unlink(path);
	migrate_free(&results);
	migrate_free(&read);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_met),
		cmocka_unit_test(each_missed),
		cmocka_unit_test(figure_missing),
		cmocka_unit_test(guest_not_well),
		cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
