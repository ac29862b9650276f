// SPDX-License-Identifier: MIT
/* The results file, and the verdict on the targets */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "results.h"

static void add(struct results *results, uint32_t vcpus, bool put,
		int64_t one_by_one, int64_t batch, int64_t handlers)
{
	struct result_row *row = results_add_row(results);

	assert_non_null(row);
	strcpy(row->kernel, results->kernel);
	row->vcpus = vcpus;
	row->put = put;
	row->registers = 1;
	row->calls_batch = 1;
	row->one_by_one_insns = one_by_one;
	row->batch_insns = batch;
	row->handlers_insns = handlers;
	/* at 160 vCPUs just so */
	row->library_insns = vcpus == 160 && batch > 0 ? batch / 10 * 11
						       : RESULT_NONE;
}

/* All targets met, each just so */
static struct results met(void)
{
	struct results results = {
		.kernel = "6.12.0+",
		.clock = "instructions",
		.seed = 7,
		.one_register = {
			{ "6.12.0", 160, 500, 1000, 1000 },
			{ "6.12.0+", 160, 500, 1020, 1000 },
		},
	};

	add(&results, 64, false, 50000000, 1000000, RESULT_NONE);
	add(&results, 160, false, 240000000, 2000000, 1600000);
	add(&results, 160, true, 340000000, 4000000, 3200000);
	add(&results, 256, false, 700000000, 3000000, RESULT_NONE);
	/* a vCPU costs 10,416.7 at 160 and 11,458 at 512 */
	add(&results, 512, false, 2135999808, 5933248, RESULT_NONE);
	return results;
}

static int verdict_of(const struct results *results, bool complete, char **text)
{
	size_t len;
	FILE *f = open_memstream(text, &len);
	int missed;

	assert_non_null(f);
	missed = results_print_verdict(results, complete, f);
	fclose(f);
	return missed;
}

static int verdict(const struct results *results, char **text)
{
	return verdict_of(results, true, text);
}

static void all_met(void **state)
{
	struct results results = met();
	char *text;

	(void)state;
	assert_int_equal(verdict(&results, &text), 0);
	assert_null(strstr(text, "MISSED"));
	assert_null(strstr(text, "  -  "));
	free(text);
	results_free(&results);
}

static void each_missed(void **state)
{
	char *text;

	(void)state;
	for (int i = 0; i < 7; i++) {
		struct results results = met();

		switch (i) {
		case 0: /* get at 160, and the limit still met */
			results.rows[1].one_by_one_insns -= 1000000;
			break;
		case 1:
			results.rows[2].one_by_one_insns -= 1000000;
			break;
		case 2:
			results.rows[4].one_by_one_insns -= 1000000;
			break;
		case 3:
			results.rows[2].handlers_insns -= 1000;
			break;
		case 4:
			results.one_register[RESULT_PATCHED].put_insns = 1021;
			break;
		case 5:
			results.rows[1].library_insns++;
			break;
		case 6:
			results.rows[2].library_insns++;
			break;
		}
		assert_int_equal(verdict(&results, &text), 1);
		assert_non_null(strstr(text, "MISSED"));
		free(text);
		results_free(&results);
	}
}

/* A figure that is not there is no target met, and none missed. */
static void not_measured(void **state)
{
	struct results results = { .kernel = "6.1.0", .clock = "instructions" };
	char *text;

	(void)state;
	assert_int_not_equal(verdict(&results, &text), 0);
	free(text);
	add(&results, 160, false, 240000000, RESULT_NONE, RESULT_NONE);
	assert_int_equal(verdict_of(&results, false, &text), 0);
	assert_null(strstr(text, "met"));
	assert_null(strstr(text, "MISSED"));
	free(text);
	assert_int_equal(verdict(&results, &text), 9);
	assert_null(strstr(text, "met"));
	free(text);
	results_free(&results);
}

static void table(void **state)
{
	struct results results = met();
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	results_print_table(&results, f);
	fclose(f);
	assert_non_null(strstr(text, "Linux 6.12.0+, million instructions"));
	/* one by one, batch, handlers, library, and the three ratios */
	assert_non_null(
		strstr(text, "240.000      2.000      1.600      2.200"));
	assert_non_null(
		strstr(text, "120.0            1.250           1.100\n"));
	assert_non_null(strstr(text, "patched 6.12.0+: get 1020.0"));
	free(text);
	results_free(&results);
}

/* Nanoseconds of a machine are not what the targets are about. */
static void other_clock(void **state)
{
	struct results results = met();
	char *text;

	(void)state;
	strcpy(results.clock, "ns");
	results.rows[1].one_by_one_insns = 1;
	assert_int_equal(verdict_of(&results, false, &text), 0);
	free(text);
	results_free(&results);
}

static void round_trip(void **state)
{
	struct results results = met(), loaded = { 0 };
	char path[] = "/tmp/swiftgic-results-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(results_save(&results, path), 0);
	assert_int_equal(results_load(&loaded, path), 0);
	assert_string_equal(loaded.kernel, results.kernel);
	assert_string_equal(loaded.clock, results.clock);
	assert_int_equal(loaded.seed, results.seed);
	assert_int_equal(loaded.nr_rows, results.nr_rows);
	assert_memory_equal(loaded.rows, results.rows,
			    results.nr_rows * sizeof(*results.rows));
	assert_memory_equal(loaded.one_register, results.one_register,
			    sizeof(results.one_register));

	/* a second file adds its rows; one of another clock is refused */
	assert_int_equal(results_load(&loaded, path), 0);
	assert_int_equal(loaded.nr_rows, 2 * results.nr_rows);
	strcpy(results.clock, "ns");
	assert_int_equal(results_save(&results, path), 0);
	assert_int_equal(results_load(&loaded, path), -1);
	results_free(&loaded);
	results_free(&results);
	close(fd);
	unlink(path);
}

static void bad_files(void **state)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{\"rows\": 1}",
		"{\"rows\": [1]}",
		"{\"rows\": [{\"vcpus\": 0, \"registers\": 1}]}",
		"{\"rows\": [{\"vcpus\": 1, \"registers\": 1, \"direction\": 3}]}",
		"{\"rows\": [{\"vcpus\": \"x\", \"direction\": \"get\"}]}",
	};
	char path[] = "/tmp/swiftgic-results-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct results results = { 0 };

		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, texts[i], strlen(texts[i]), 0),
				 strlen(texts[i]));
		assert_int_equal(results_load(&results, path), -1);
		results_free(&results);
	}
	close(fd);
	unlink(path);
	assert_int_equal(results_load(&(struct results){ 0 }, path), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_met),	cmocka_unit_test(each_missed),
		cmocka_unit_test(not_measured), cmocka_unit_test(other_clock),
		cmocka_unit_test(table),	cmocka_unit_test(round_trip),
		cmocka_unit_test(bad_files),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("results", tests, NULL, NULL);
}
