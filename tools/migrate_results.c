// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "json.h"
#include "migrate_results.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

const char *const migrate_variant_names[NR_MIGRATE_VARIANTS] = {
	[MIGRATE_STOCK] = "stock",
	[MIGRATE_PATCHED] = "patched",
};

/* In the file and in the table; what the posted proposal has published of it */
static const struct {
	const char *key;
	const char *name;
	int before;
	int after;
} figures[NR_MIGRATE_FIGURES] = {
	[MIGRATE_DOWNTIME] = { "downtime_ms", "downtime", 536, 321 },
	[MIGRATE_SOURCE] = { "source_ms", "source, total", 344, 230 },
	[MIGRATE_SOURCE_GET] = { "source_get_ms", "source, VGIC get", 120, 19 },
	[MIGRATE_SOURCE_CPUS] = { "source_cpus_ms", "source, vCPUs", 0, 0 },
	[MIGRATE_SOURCE_RAM] = { "source_ram_ms", "source, memory", 0, 0 },
	[MIGRATE_DESTINATION] = { "destination_ms", "destination, total", 192,
				  91 },
	[MIGRATE_DESTINATION_PUT] = { "destination_put_ms",
				      "destination, VGIC put", 132, 27 },
	[MIGRATE_DESTINATION_CPUS] = { "destination_cpus_ms",
				       "destination, vCPUs", 0, 0 },
	[MIGRATE_BOOT_PUT] = { "boot_put_ms", "VGIC put at start", 158, 40 },
};

int migrate_variant(const char *name)
{
	int i;

	for (i = 0; i < NR_MIGRATE_VARIANTS; i++)
		if (name && !strcmp(name, migrate_variant_names[i]))
			return i;
	return -1;
}

struct migrate_run *migrate_add_run(struct migrate_results *results)
{
	struct migrate_run *runs, *run;
	int i;

	runs = realloc(results->runs, (results->nr_runs + 1) * sizeof(*runs));
	if (!runs)
		return NULL;
	results->runs = runs;
	run = &runs[results->nr_runs++];
	memset(run, 0, sizeof(*run));
	for (i = 0; i < NR_MIGRATE_FIGURES; i++)
		run->ms[i] = MIGRATE_NONE;
	return run;
}

void migrate_free(struct migrate_results *results)
{
	free(results->runs);
	memset(results, 0, sizeof(*results));
}

/* The file */

static double get_number(const cJSON *obj, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);

	return cJSON_IsNumber(item) ? item->valuedouble : MIGRATE_NONE;
}

static const char *get_string(const cJSON *obj, const char *key)
{
	const char *s = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(obj, key));

	return s ? s : "";
}

static int load_run(struct migrate_results *results, const cJSON *item)
{
	int kernel = migrate_variant(get_string(item, "kernel"));
	int source = migrate_variant(get_string(item, "source"));
	int destination = migrate_variant(get_string(item, "destination"));
	struct migrate_run *run;
	int i;

	if (kernel < 0 || source < 0 || destination < 0)
		return -1;
	run = migrate_add_run(results);
	if (!run)
		return -1;
	run->kernel = kernel;
	run->source = source;
	run->destination = destination;
	for (i = 0; i < NR_MIGRATE_FIGURES; i++)
		run->ms[i] = get_number(item, figures[i].key);
	run->guest_ok = cJSON_IsTrue(
		cJSON_GetObjectItemCaseSensitive(item, "guest_ok"));
	return 0;
}

int migrate_load(struct migrate_results *results, const char *path)
{
	cJSON *root = json_read(path);
	const cJSON *runs, *item;
	int ret = 0;

	if (!root)
		return -1;
	runs = cJSON_GetObjectItemCaseSensitive(root, "runs");
	if (!cJSON_IsArray(runs))
		ret = -1;
	else
		for (item = runs->child; item && !ret; item = item->next)
			ret = load_run(results, item);
	if (!ret) {
		results->vcpus = get_number(root, "vcpus");
		results->online = get_number(root, "online");
		snprintf(results->workload, sizeof(results->workload), "%s",
			 get_string(root, "workload"));
		snprintf(results->kernel, sizeof(results->kernel), "%s",
			 get_string(root, "kernel"));
		snprintf(results->qemu, sizeof(results->qemu), "%s",
			 get_string(root, "qemu"));
	}
	cJSON_Delete(root);
	if (ret)
		fprintf(stderr, "swiftgic: %s: no results of migrate\n", path);
	return ret;
}

static void add_number(cJSON *obj, const char *key, double val)
{
	if (val == MIGRATE_NONE)
		cJSON_AddNullToObject(obj, key);
	else
		cJSON_AddNumberToObject(obj, key, val);
}

/* The figures of all that is @variant: kernel, source and destination */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct migrate_results *results,
		     enum migrate_variant variant, enum migrate_figure figure)
{
	double *ms = calloc(results->nr_runs + 1, sizeof(*ms)), ret;
	const struct migrate_run *run;
	size_t n = 0, i;

	if (!ms)
		return MIGRATE_NONE;
	for (i = 0; i < results->nr_runs; i++) {
		run = &results->runs[i];
		if (run->kernel == variant && run->source == variant &&
		    run->destination == variant &&
		    run->ms[figure] != MIGRATE_NONE)
			ms[n++] = run->ms[figure];
	}
	qsort(ms, n, sizeof(*ms), compare);
	ret = n ? (ms[(n - 1) / 2] + ms[n / 2]) / 2 : MIGRATE_NONE;
	free(ms);
	return ret;
}

/* In per cent; MIGRATE_NONE if there is a figure missing */
static double reduction(const struct migrate_results *results,
			enum migrate_figure figure)
{
	double stock = median(results, MIGRATE_STOCK, figure);
	double patched = median(results, MIGRATE_PATCHED, figure);

	if (stock <= 0 || patched == MIGRATE_NONE)
		return MIGRATE_NONE;
	return 100 * (1 - patched / stock);
}

static void add_summary(cJSON *root, const struct migrate_results *results)
{
	cJSON *summary = cJSON_AddObjectToObject(root, "summary");
	int figure, variant;
	cJSON *obj;

	for (figure = 0; figure < NR_MIGRATE_FIGURES; figure++) {
		obj = cJSON_AddObjectToObject(summary, figures[figure].key);
		for (variant = 0; variant < NR_MIGRATE_VARIANTS; variant++)
			add_number(obj, migrate_variant_names[variant],
				   median(results, variant, figure));
	}
	add_number(summary, "downtime_reduction_pct",
		   reduction(results, MIGRATE_DOWNTIME));
	add_number(summary, "get_reduction_pct",
		   reduction(results, MIGRATE_SOURCE_GET));
	add_number(summary, "put_reduction_pct",
		   reduction(results, MIGRATE_DESTINATION_PUT));
}

int migrate_save(const struct migrate_results *results, const char *path)
{
	cJSON *root = cJSON_CreateObject();
	const struct migrate_run *run;
	cJSON *runs, *obj;
	size_t i;
	int figure;

	cJSON_AddNumberToObject(root, "vcpus", results->vcpus);
	cJSON_AddNumberToObject(root, "online", results->online);
	cJSON_AddStringToObject(root, "workload", results->workload);
	cJSON_AddStringToObject(root, "kernel", results->kernel);
	cJSON_AddStringToObject(root, "qemu", results->qemu);
	runs = cJSON_AddArrayToObject(root, "runs");
	for (i = 0; i < results->nr_runs; i++) {
		run = &results->runs[i];
		obj = cJSON_CreateObject();
		cJSON_AddStringToObject(obj, "kernel",
					migrate_variant_names[run->kernel]);
		cJSON_AddStringToObject(obj, "source",
					migrate_variant_names[run->source]);
		cJSON_AddStringToObject(
			obj, "destination",
			migrate_variant_names[run->destination]);
		for (figure = 0; figure < NR_MIGRATE_FIGURES; figure++)
			add_number(obj, figures[figure].key, run->ms[figure]);
		cJSON_AddBoolToObject(obj, "guest_ok", run->guest_ok);
		cJSON_AddItemToArray(runs, obj);
	}
	add_summary(root, results);
	return json_write(root, path);
}

/* The table */

static void print_ms(FILE *f, double ms)
{
	if (ms == MIGRATE_NONE)
		fprintf(f, " - |");
	else
		fprintf(f, " %.*f |", ms < 10 ? 2 : 1, ms);
}

/* How much of a downtime is @get and @put: no transfer can take more off it. */
static double share(double downtime, double get, double put)
{
	return 100 * (get + put) / downtime;
}

static void print_share(const struct migrate_results *results, FILE *f)
{
	double downtime = median(results, MIGRATE_STOCK, MIGRATE_DOWNTIME);
	double get = median(results, MIGRATE_STOCK, MIGRATE_SOURCE_GET);
	double put = median(results, MIGRATE_STOCK, MIGRATE_DESTINATION_PUT);

	if (downtime <= 0 || get == MIGRATE_NONE || put == MIGRATE_NONE)
		return;
	fprintf(f,
		"VGIC get and put are %.1f %% of the stock downtime here, "
		"and %.1f %% of the published one.\n\n",
		share(downtime, get, put),
		share(figures[MIGRATE_DOWNTIME].before,
		      figures[MIGRATE_SOURCE_GET].before,
		      figures[MIGRATE_DESTINATION_PUT].before));
}

void migrate_print_table(const struct migrate_results *results, FILE *f)
{
	double less;
	int figure;

	fprintf(f,
		"Linux %s, QEMU %s, %u vCPUs, %u of them online, %s, ms:\n\n",
		results->kernel, results->qemu, results->vcpus, results->online,
		results->workload);
	fprintf(f,
		"| figure | published: before | after | less "
		"| here: stock | patched | less |\n"
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
	for (figure = 0; figure < NR_MIGRATE_FIGURES; figure++) {
		fprintf(f, "| %s |", figures[figure].name);
		if (figures[figure].before)
			fprintf(f, " %d | %d | %.0f %% |",
				figures[figure].before, figures[figure].after,
				100.0 - 100.0 * figures[figure].after /
						figures[figure].before);
		else
			fprintf(f, " | | |");
		print_ms(f, median(results, MIGRATE_STOCK, figure));
		print_ms(f, median(results, MIGRATE_PATCHED, figure));
		less = reduction(results, figure);
		if (less == MIGRATE_NONE)
			fprintf(f, " - |\n");
		else
			fprintf(f, " %.1f %% |\n", less);
	}
	fprintf(f, "\n");
	print_share(results, f);
}

/* The project's targets */
int migrate_print_verdict(const struct migrate_results *results, FILE *f)
{
	static const struct {
		enum migrate_figure figure;
		double must;
		double aim;
	} targets[] = {
		{ MIGRATE_DOWNTIME, 75, 85 },
		{ MIGRATE_SOURCE_GET, 97, 99 },
		{ MIGRATE_DESTINATION_PUT, 96, 98.5 },
	};
	size_t nr_ok = 0, i;
	int missed = 0;
	double less;

	for (i = 0; i < ARRAY_SIZE(targets); i++) {
		less = reduction(results, targets[i].figure);
		if (less == MIGRATE_NONE) {
			fprintf(f, "  -       %s\n",
				figures[targets[i].figure].name);
			missed++;
			continue;
		}
		fprintf(f,
			"  %-6s  %-24s %6.2f %% less   must >= %g, aim %g%s\n",
			less >= targets[i].must ? "met" : "MISSED",
			figures[targets[i].figure].name, less, targets[i].must,
			targets[i].aim,
			less >= targets[i].aim ? " (reached)" : "");
		missed += less < targets[i].must;
	}
	for (i = 0; i < results->nr_runs; i++)
		nr_ok += results->runs[i].guest_ok;
	fprintf(f, "  %-6s  guest well after %zu of %zu migrations\n",
		nr_ok == results->nr_runs && nr_ok ? "met" : "MISSED", nr_ok,
		results->nr_runs);
	return missed + (nr_ok < results->nr_runs || !nr_ok);
}
