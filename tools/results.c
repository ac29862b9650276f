// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "json.h"
#include "results.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char *const side_names[RESULT_NR_SIDES] = {
	[RESULT_STOCK] = "stock",
	[RESULT_PATCHED] = "patched",
};

struct result_row *results_add_row(struct results *results)
{
	struct result_row *rows, *row;

	rows = realloc(results->rows, (results->nr_rows + 1) * sizeof(*rows));
	if (!rows)
		return NULL;
	results->rows = rows;
	row = &rows[results->nr_rows++];
	memset(row, 0, sizeof(*row));
	row->calls_batch = RESULT_NONE;
	row->one_by_one_insns = RESULT_NONE;
	row->batch_insns = RESULT_NONE;
	row->handlers_insns = RESULT_NONE;
	row->library_insns = RESULT_NONE;
	return row;
}

void results_free(struct results *results)
{
	free(results->rows);
	memset(results, 0, sizeof(*results));
}

static double ratio(double a, double b)
{
	return a > 0 && b > 0 ? a / b : RESULT_NONE;
}

/* The file */

static int64_t get_int(const cJSON *obj, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);

	/* Up to 2^53 a double is exact; no count or cost is larger. */
	if (!cJSON_IsNumber(item) || item->valuedouble < 0 ||
	    item->valuedouble > 9007199254740992.0)
		return RESULT_NONE;
	return item->valuedouble;
}

static void get_string(const cJSON *obj, const char *key, char *buf, size_t len)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);

	if (cJSON_IsString(item))
		snprintf(buf, len, "%s", item->valuestring);
}

static void add_number(cJSON *obj, const char *key, double val)
{
	if (val == RESULT_NONE)
		cJSON_AddNullToObject(obj, key);
	else
		cJSON_AddNumberToObject(obj, key, val);
}

static int load_row(struct results *results, const cJSON *item)
{
	int64_t vcpus = get_int(item, "vcpus");
	int64_t registers = get_int(item, "registers");
	char direction[8] = "";
	struct result_row *row;

	get_string(item, "direction", direction, sizeof(direction));
	if (vcpus < 1 || registers < 1 ||
	    (strcmp(direction, "get") && strcmp(direction, "put")))
		return -1;
	row = results_add_row(results);
	if (!row)
		return -1;
	get_string(item, "kernel", row->kernel, sizeof(row->kernel));
	row->vcpus = vcpus;
	row->put = !strcmp(direction, "put");
	row->registers = registers;
	row->calls_batch = get_int(item, "calls_batch");
	row->one_by_one_insns = get_int(item, "one_by_one_insns");
	row->batch_insns = get_int(item, "batch_insns");
	row->handlers_insns = get_int(item, "handlers_insns");
	row->library_insns = get_int(item, "library_insns");
	return 0;
}

static void load_one_register(struct result_one_register *one, const cJSON *obj)
{
	const cJSON *get, *put;

	get = cJSON_GetObjectItemCaseSensitive(obj, "get_insns");
	put = cJSON_GetObjectItemCaseSensitive(obj, "put_insns");
	if (!cJSON_IsNumber(get) || !cJSON_IsNumber(put))
		return;
	get_string(obj, "kernel", one->kernel, sizeof(one->kernel));
	one->vcpus = get_int(obj, "vcpus");
	one->calls = get_int(obj, "calls");
	one->get_insns = get->valuedouble;
	one->put_insns = put->valuedouble;
}

static int load_root(struct results *results, const cJSON *root)
{
	const cJSON *rows = cJSON_GetObjectItemCaseSensitive(root, "rows");
	const cJSON *one, *item;
	int64_t seed = get_int(root, "seed");
	char clock[sizeof(results->clock)] = "";
	int i;

	if (!cJSON_IsArray(rows))
		return -1;
	get_string(root, "clock", clock, sizeof(clock));
	if (!results->clock[0])
		memcpy(results->clock, clock, sizeof(clock));
	else if (strcmp(results->clock, clock))
		return -1;
	if (!results->kernel[0])
		get_string(root, "kernel", results->kernel,
			   sizeof(results->kernel));
	if (seed >= 0)
		results->seed = seed;

	for (item = rows->child; item; item = item->next)
		if (load_row(results, item))
			return -1;

	one = cJSON_GetObjectItemCaseSensitive(root, "one_register");
	for (i = 0; i < RESULT_NR_SIDES; i++)
		load_one_register(
			&results->one_register[i],
			cJSON_GetObjectItemCaseSensitive(one, side_names[i]));
	return 0;
}

int results_load(struct results *results, const char *path)
{
	cJSON *root = json_read(path);
	int ret;

	if (!root)
		return -1;
	ret = load_root(results, root);
	if (ret)
		fprintf(stderr,
			"swiftgic: %s: not results of 'bench', or with another clock\n",
			path);
	cJSON_Delete(root);
	return ret;
}

static void save_row(cJSON *rows, const struct result_row *row)
{
	cJSON *obj = cJSON_CreateObject();
	double r = ratio(row->one_by_one_insns, row->batch_insns);

	cJSON_AddStringToObject(obj, "kernel", row->kernel);
	cJSON_AddNumberToObject(obj, "vcpus", row->vcpus);
	cJSON_AddStringToObject(obj, "direction", row->put ? "put" : "get");
	cJSON_AddNumberToObject(obj, "registers", row->registers);
	add_number(obj, "calls_batch", row->calls_batch);
	add_number(obj, "one_by_one_insns", row->one_by_one_insns);
	add_number(obj, "batch_insns", row->batch_insns);
	add_number(obj, "handlers_insns", row->handlers_insns);
	add_number(obj, "library_insns", row->library_insns);
	/* three digits after the point: more would be noise in the file */
	add_number(obj, "ratio", r > 0 ? (int64_t)(r * 1000) / 1000.0 : r);
	cJSON_AddItemToArray(rows, obj);
}

static void save_one_register(cJSON *root, const struct results *results)
{
	const struct result_one_register *one = results->one_register;
	cJSON *objs, *obj;
	int i;

	if (!one[RESULT_STOCK].calls && !one[RESULT_PATCHED].calls)
		return;
	objs = cJSON_AddObjectToObject(root, "one_register");
	for (i = 0; i < RESULT_NR_SIDES; i++) {
		if (!one[i].calls)
			continue;
		obj = cJSON_AddObjectToObject(objs, side_names[i]);
		cJSON_AddStringToObject(obj, "kernel", one[i].kernel);
		cJSON_AddNumberToObject(obj, "vcpus", one[i].vcpus);
		cJSON_AddNumberToObject(obj, "calls", one[i].calls);
		cJSON_AddNumberToObject(obj, "get_insns", one[i].get_insns);
		cJSON_AddNumberToObject(obj, "put_insns", one[i].put_insns);
	}
}

int results_save(const struct results *results, const char *path)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *rows;
	size_t i;

	cJSON_AddStringToObject(root, "kernel", results->kernel);
	cJSON_AddStringToObject(root, "clock", results->clock);
	cJSON_AddNumberToObject(root, "seed", results->seed);
	rows = cJSON_AddArrayToObject(root, "rows");
	for (i = 0; i < results->nr_rows; i++)
		save_row(rows, &results->rows[i]);
	save_one_register(root, results);
	return json_write(root, path);
}

/* The table */

static void print_millions(FILE *f, int64_t insns)
{
	if (insns == RESULT_NONE)
		fprintf(f, " %10s", "-");
	else
		fprintf(f, " %10.3f", insns / 1e6);
}

static void print_ratio(FILE *f, double r, int width, int digits)
{
	if (r == RESULT_NONE)
		fprintf(f, " %*s", width, "-");
	else
		fprintf(f, " %*.*f", width, digits, r);
}

void results_print_table(const struct results *results, FILE *f)
{
	const struct result_one_register *one;
	const struct result_row *row;
	const char *kernel = "";
	size_t i;

	for (i = 0; i < results->nr_rows; i++) {
		row = &results->rows[i];
		if (strcmp(kernel, row->kernel)) {
			kernel = row->kernel;
			fprintf(f, "%sLinux %s, million %s\n", i ? "\n" : "",
				kernel, results->clock);
			fprintf(f,
				"%5s %3s %9s %5s %10s %10s %10s %10s %12s %16s %15s\n",
				"vCPUs", "", "registers", "calls", "one by one",
				"batch", "handlers", "library", "1by1 / batch",
				"batch / handlers", "library / batch");
		}
		fprintf(f, "%5u %3s %9u ", row->vcpus, row->put ? "put" : "get",
			row->registers);
		if (row->calls_batch == RESULT_NONE)
			fprintf(f, "%5s", "-");
		else
			fprintf(f, "%5lld", (long long)row->calls_batch);
		print_millions(f, row->one_by_one_insns);
		print_millions(f, row->batch_insns);
		print_millions(f, row->handlers_insns);
		print_millions(f, row->library_insns);
		print_ratio(f, ratio(row->one_by_one_insns, row->batch_insns),
			    12, 1);
		print_ratio(f, ratio(row->batch_insns, row->handlers_insns), 16,
			    3);
		print_ratio(f, ratio(row->library_insns, row->batch_insns), 15,
			    3);
		fprintf(f, "\n");
	}
	for (i = 0; i < RESULT_NR_SIDES; i++) {
		one = &results->one_register[i];
		if (one->calls)
			fprintf(f,
				"one register, %u vCPUs, %s %s: get %.1f, put %.1f %s a call\n",
				one->vcpus, side_names[i], one->kernel,
				one->get_insns, one->put_insns, results->clock);
	}
}

/* The targets, as the project's issues 2 and 5 state them */

static const struct result_row *find_row(const struct results *results,
					 const char *kernel, uint32_t vcpus,
					 bool put)
{
	const struct result_row *row;
	size_t i;

	/* the last of its kind: a later run replaces an earlier one */
	for (i = results->nr_rows; i--;) {
		row = &results->rows[i];
		if (row->vcpus == vcpus && row->put == put &&
		    !strcmp(row->kernel, kernel))
			return row;
	}
	return NULL;
}

static double one_by_one_ratio(const struct results *results,
			       const char *kernel, uint32_t vcpus, bool put)
{
	const struct result_row *row = find_row(results, kernel, vcpus, put);

	return row ? ratio(row->one_by_one_insns, row->batch_insns)
		   : RESULT_NONE;
}

static double limit_ratio(const struct results *results, const char *kernel,
			  uint32_t vcpus, bool put)
{
	const struct result_row *row = find_row(results, kernel, vcpus, put);

	return row ? ratio(row->batch_insns, row->handlers_insns) : RESULT_NONE;
}

static double library_ratio(const struct results *results, const char *kernel,
			    uint32_t vcpus, bool put)
{
	const struct result_row *row = find_row(results, kernel, vcpus, put);

	return row ? ratio(row->library_insns, row->batch_insns) : RESULT_NONE;
}

/* What one vCPU more costs a batched get, between two sizes */
static double marginal(const struct results *results, const char *kernel,
		       uint32_t from, uint32_t to)
{
	const struct result_row *a = find_row(results, kernel, from, false);
	const struct result_row *b = find_row(results, kernel, to, false);

	if (!a || !b || a->batch_insns == RESULT_NONE ||
	    b->batch_insns == RESULT_NONE)
		return RESULT_NONE;
	return (double)(b->batch_insns - a->batch_insns) / (to - from);
}

/* The worse of get and put; only a pair of the same version says something */
static double one_register_ratio(const struct results *results,
				 const char *kernel)
{
	const struct result_one_register *one = results->one_register;
	const struct result_one_register *stock = &one[RESULT_STOCK];
	const struct result_one_register *patched = &one[RESULT_PATCHED];
	double get, put;

	if (!stock->calls || !patched->calls || strcmp(patched->kernel, kernel))
		return RESULT_NONE;
	get = ratio(patched->get_insns, stock->get_insns);
	put = ratio(patched->put_insns, stock->put_insns);
	return get > put ? get : put;
}

enum sense {
	AT_LEAST,
	AT_MOST,
};

static bool reached(double figure, double target, enum sense sense)
{
	return sense == AT_LEAST ? figure >= target : figure <= target;
}

static int verdict_of_kernel(const struct results *results, const char *kernel,
			     bool complete, FILE *f)
{
	const struct {
		const char *name;
		double figure;
		double must;
		double aim;
		enum sense sense;
	} targets[] = {
		{ "get, 160 vCPUs, one by one / batch",
		  one_by_one_ratio(results, kernel, 160, false), 120, 200,
		  AT_LEAST },
		{ "put, 160 vCPUs, one by one / batch",
		  one_by_one_ratio(results, kernel, 160, true), 85, 150,
		  AT_LEAST },
		{ "get, 512 vCPUs, one by one / batch",
		  one_by_one_ratio(results, kernel, 512, false), 360, 600,
		  AT_LEAST },
		{ "one more vCPU, at 512 / at 160",
		  ratio(marginal(results, kernel, 256, 512),
			marginal(results, kernel, 64, 160)),
		  1.1, 1.0, AT_MOST },
		{ "get, 160 vCPUs, batch / handlers",
		  limit_ratio(results, kernel, 160, false), 1.25, 1.1,
		  AT_MOST },
		{ "put, 160 vCPUs, batch / handlers",
		  limit_ratio(results, kernel, 160, true), 1.25, 1.1, AT_MOST },
		{ "save, 160 vCPUs, library / batch",
		  library_ratio(results, kernel, 160, false), 1.1, 1.05,
		  AT_MOST },
		{ "restore, 160 vCPUs, library / batch",
		  library_ratio(results, kernel, 160, true), 1.1, 1.05,
		  AT_MOST },
		{ "one register, patched / stock",
		  one_register_ratio(results, kernel), 1.02, 1.0, AT_MOST },
	};
	int missed = 0;
	size_t i;

	fprintf(f, "Linux %s\n", kernel);
	for (i = 0; i < ARRAY_SIZE(targets); i++) {
		double figure = targets[i].figure;
		bool must = reached(figure, targets[i].must, targets[i].sense);
		bool aim = reached(figure, targets[i].aim, targets[i].sense);

		if (figure == RESULT_NONE) {
			fprintf(f, "  %-6s  %-36s\n", complete ? "MISSED" : "-",
				targets[i].name);
			missed += complete;
			continue;
		}
		fprintf(f, "  %-6s  %-36s %9.3f   must %s %g, aim %g%s\n",
			must ? "met" : "MISSED", targets[i].name, figure,
			targets[i].sense == AT_LEAST ? ">=" : "<=",
			targets[i].must, targets[i].aim,
			aim ? " (reached)" : "");
		missed += !must;
	}
	return missed;
}

int results_print_verdict(const struct results *results, bool complete, FILE *f)
{
	const char *kernel = NULL;
	int missed = 0;
	size_t i;

	if (strcmp(results->clock, "instructions")) {
		fprintf(f,
			"No verdict: the targets are in instructions, this clock is not.\n");
		return complete;
	}
	if (!results->nr_rows)
		return complete;
	for (i = 0; i < results->nr_rows; i++) {
		/* each kernel once: rows of one run lie together */
		if (kernel && !strcmp(kernel, results->rows[i].kernel))
			continue;
		kernel = results->rows[i].kernel;
		missed += verdict_of_kernel(results, kernel, complete, f);
	}
	return missed;
}
