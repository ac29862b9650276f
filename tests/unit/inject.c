// SPDX-License-Identifier: MIT
/* The results of the injection benchmark: merging files, and the verdict */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "inject_results.h"

static const struct injection thousand = { .vcpus = 60, .lpis = 1024 };

static void set(struct inject_results *results, const char *kernel,
		uint32_t lpis, double insns, double vm_locks)
{
	const struct injection what = { .vcpus = 60, .lpis = lpis };
	struct inject_row *row = inject_row(results, kernel, INJECT_PATCHED,
					    &what);

	assert_non_null(row);
	row->insns = insns;
	row->vm_locks = vm_locks;
}

/* Everything at the bound of what must be */
static struct inject_results met(void)
{
	struct inject_results results = { 0 };

	set(&results, "6.1.192", 256, 1000, 0);
	set(&results, "6.1.192", 1024, 1150, 0);
	set(&results, "6.1.192", 4096, 1020, 0);
	set(&results, "6.12.117", 1024, 980, 0);
	set(&results, "7.3.0-rc7", 1024, 1150, 0);
	return results;
}

static int missed(struct inject_results *results, const char *say)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	int ret;

	assert_non_null(f);
	ret = inject_print_verdict(results, f);
	fclose(f);
	if (say)
		assert_non_null(strstr(text, say));
	free(text);
	inject_free(results);
	return ret;
}

static void targets_are_inclusive(void **state)
{
	struct inject_results results = met();

	(void)state;
	assert_int_equal(missed(&results, NULL), 0);
}

static void a_target_is_missed(void **state)
{
	struct inject_results results = met();

	(void)state;
	set(&results, "6.12.117", 1024, 980.5, 0);
	assert_int_equal(missed(&results, "MISSED  6.12, 1024 LPIs, insns"), 1);
	/* one lock in a hundred injections is a lock */
	results = met();
	set(&results, "6.1.192", 4096, 1020, 0.01);
	assert_int_equal(missed(&results, "MISSED  6.1, VM-wide locks"), 1);
}

static void a_figure_is_missing(void **state)
{
	struct inject_results results = met();

	(void)state;
	set(&results, "7.3.0-rc7", 1024, 1000, INJECT_NONE);
	assert_int_equal(missed(&results, "-       7, VM-wide locks"), 1);
	results = met();
	set(&results, "6.1.192", 256, INJECT_NONE, 0);
	assert_int_equal(missed(&results, "-       6.1, 4096 LPIs / 256 LPIs"),
			 1);
}

/* A figure each from two files: that is one row, saved and loaded again. */
static void files_are_merged(void **state)
{
	char path[] = "/tmp/inject.XXXXXX";
	struct inject_results insns = { 0 }, locks = { 0 }, both = { 0 };
	struct inject_rate *rate;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	set(&insns, "6.12.117", 1024, 719, INJECT_NONE);
	rate = inject_add_rate(&insns);
	*rate = (struct inject_rate){ .kernel = "6.12.117",
				      .vcpus = 60,
				      .lpis = 1024,
				      .threads = 2,
				      .per_second = 5e5 };
	set(&locks, "6.12.117", 1024, INJECT_NONE, 0);
	assert_int_equal(inject_save(&insns, path), 0);
	assert_int_equal(inject_load(&both, path), 0);
	assert_int_equal(inject_save(&locks, path), 0);
	assert_int_equal(inject_load(&both, path), 0);
	unlink(path);

	assert_int_equal(both.nr_rows, 1);
	assert_true(both.rows[0].insns == 719 && both.rows[0].vm_locks == 0);
	assert_memory_equal(&both.rows[0].what, &thousand, sizeof(thousand));
	assert_int_equal(both.nr_rates, 1);
	assert_true(both.rates[0].threads == 2 &&
		    both.rates[0].per_second == 5e5);
	inject_free(&insns);
	inject_free(&locks);
	inject_free(&both);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_inclusive),
		cmocka_unit_test(a_target_is_missed),
		cmocka_unit_test(a_figure_is_missing),
		cmocka_unit_test(files_are_merged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
