// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "inject_results.h"
#include "json.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

const char *const inject_variant_names[NR_INJECT_VARIANTS] = {
	[INJECT_STOCK] = "stock",
	[INJECT_PATCHED] = "patched",
};
const char *const inject_path_names[NR_INJECT_PATHS] = {
	[INJECT_SIGNAL_MSI] = "signal_msi",
	[INJECT_IRQFD] = "irqfd",
};
const char *const inject_state_names[NR_INJECT_STATES] = {
	[INJECT_PENDING] = "pending",
	[INJECT_IDLE] = "idle",
};

int inject_name(const char *const *names, size_t n, const char *s)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (s && !strcmp(names[i], s))
			return i;
	return -1;
}

static void *grow(void *array, size_t nr, size_t size)
{
	return realloc(array, (nr + 1) * size);
}

struct inject_row *inject_row(struct inject_results *results,
			      const char *kernel, enum inject_variant variant,
			      const struct injection *what)
{
	struct inject_row *row;
	size_t i;

	for (i = 0; i < results->nr_rows; i++) {
		row = &results->rows[i];
		if (row->variant == variant && !strcmp(row->kernel, kernel) &&
		    !memcmp(&row->what, what, sizeof(*what)))
			return row;
	}
	row = grow(results->rows, results->nr_rows, sizeof(*row));
	if (!row)
		return NULL;
	results->rows = row;
	row += results->nr_rows++;
	*row = (struct inject_row){
		.variant = variant,
		.what = *what,
		.insns = INJECT_NONE,
		.vm_locks = INJECT_NONE,
	};
	snprintf(row->kernel, sizeof(row->kernel), "%s", kernel);
	return row;
}

struct inject_rate *inject_add_rate(struct inject_results *results)
{
	struct inject_rate *rate;

	rate = grow(results->rates, results->nr_rates, sizeof(*rate));
	if (!rate)
		return NULL;
	results->rates = rate;
	rate += results->nr_rates++;
	*rate = (struct inject_rate){ 0 };
	return rate;
}

void inject_free(struct inject_results *results)
{
	free(results->rows);
	free(results->rates);
	memset(results, 0, sizeof(*results));
}

/* The file */

static double get_number(const cJSON *obj, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);

	return cJSON_IsNumber(item) ? item->valuedouble : INJECT_NONE;
}

static int get_name(const cJSON *obj, const char *key, const char *const *names,
		    size_t n)
{
	return inject_name(names, n,
			   cJSON_GetStringValue(
				   cJSON_GetObjectItemCaseSensitive(obj, key)));
}

static int load_row(struct inject_results *results, const cJSON *item)
{
	const char *kernel = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(item, "kernel"));
	int variant = get_name(item, "variant", inject_variant_names,
			       NR_INJECT_VARIANTS);
	int path = get_name(item, "path", inject_path_names, NR_INJECT_PATHS);
	int state = get_name(item, "state", inject_state_names,
			     NR_INJECT_STATES);
	double vcpus = get_number(item, "vcpus");
	double lpis = get_number(item, "lpis");
	double insns = get_number(item, "insns");
	double vm_locks = get_number(item, "vm_locks");
	struct injection what;
	struct inject_row *row;

	if (!kernel || variant < 0 || path < 0 || state < 0 || vcpus < 1 ||
	    lpis < 1)
		return -1;
	what = (struct injection){
		.vcpus = vcpus,
		.lpis = lpis,
		.path = path,
		.state = state,
	};
	row = inject_row(results, kernel, variant, &what);
	if (!row)
		return -1;
	if (insns != INJECT_NONE)
		row->insns = insns;
	if (vm_locks != INJECT_NONE)
		row->vm_locks = vm_locks;
	return 0;
}

static int load_rate(struct inject_results *results, const cJSON *item)
{
	const char *kernel = cJSON_GetStringValue(
		cJSON_GetObjectItemCaseSensitive(item, "kernel"));
	int variant = get_name(item, "variant", inject_variant_names,
			       NR_INJECT_VARIANTS);
	double threads = get_number(item, "threads");
	struct inject_rate *rate;

	if (!kernel || variant < 0 || threads < 1)
		return -1;
	rate = inject_add_rate(results);
	if (!rate)
		return -1;
	snprintf(rate->kernel, sizeof(rate->kernel), "%s", kernel);
	rate->variant = variant;
	rate->vcpus = get_number(item, "vcpus");
	rate->lpis = get_number(item, "lpis");
	rate->threads = threads;
	rate->per_second = get_number(item, "per_second");
	return 0;
}

int inject_load(struct inject_results *results, const char *path)
{
	cJSON *root = json_read(path);
	const cJSON *rows, *item;
	int ret = 0;

	if (!root)
		return -1;
	rows = cJSON_GetObjectItemCaseSensitive(root, "rows");
	if (!cJSON_IsArray(rows))
		ret = -1;
	else
		for (item = rows->child; item && !ret; item = item->next)
			ret = load_row(results, item);
	/* A file need not have rates. */
	rows = cJSON_GetObjectItemCaseSensitive(root, "rates");
	for (item = rows ? rows->child : NULL; item && !ret; item = item->next)
		ret = load_rate(results, item);
	cJSON_Delete(root);
	if (ret)
		fprintf(stderr, "swiftgic: %s: no results of inject\n", path);
	return ret;
}

static void add_number(cJSON *obj, const char *key, double val)
{
	if (val == INJECT_NONE)
		cJSON_AddNullToObject(obj, key);
	else
		cJSON_AddNumberToObject(obj, key, val);
}

static void save_row(cJSON *rows, const struct inject_row *row)
{
	cJSON *obj = cJSON_CreateObject();

	cJSON_AddStringToObject(obj, "kernel", row->kernel);
	cJSON_AddStringToObject(obj, "variant",
				inject_variant_names[row->variant]);
	cJSON_AddStringToObject(obj, "path", inject_path_names[row->what.path]);
	cJSON_AddStringToObject(obj, "state",
				inject_state_names[row->what.state]);
	cJSON_AddNumberToObject(obj, "vcpus", row->what.vcpus);
	cJSON_AddNumberToObject(obj, "lpis", row->what.lpis);
	add_number(obj, "insns", row->insns);
	add_number(obj, "vm_locks", row->vm_locks);
	cJSON_AddItemToArray(rows, obj);
}

static void save_rate(cJSON *rates, const struct inject_rate *rate)
{
	cJSON *obj = cJSON_CreateObject();

	cJSON_AddStringToObject(obj, "kernel", rate->kernel);
	cJSON_AddStringToObject(obj, "variant",
				inject_variant_names[rate->variant]);
	cJSON_AddNumberToObject(obj, "vcpus", rate->vcpus);
	cJSON_AddNumberToObject(obj, "lpis", rate->lpis);
	cJSON_AddNumberToObject(obj, "threads", rate->threads);
	cJSON_AddNumberToObject(obj, "per_second", rate->per_second);
	cJSON_AddItemToArray(rates, obj);
}

int inject_save(const struct inject_results *results, const char *path)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *rows = cJSON_AddArrayToObject(root, "rows");
	cJSON *rates = cJSON_AddArrayToObject(root, "rates");
	size_t i;

	for (i = 0; i < results->nr_rows; i++)
		save_row(rows, &results->rows[i]);
	for (i = 0; i < results->nr_rates; i++)
		save_rate(rates, &results->rates[i]);
	return json_write(root, path);
}

/* The table */

/* Is @version "6.1.192" one of @series "6.1"? */
static bool is_of(const char *version, const char *series)
{
	size_t len = strlen(series);

	return !strncmp(version, series, len) &&
	       (version[len] == '.' || version[len] == '-' || !version[len]);
}

static const struct inject_row *find(const struct inject_results *results,
				     const char *kernel,
				     enum inject_variant variant,
				     const struct injection *what)
{
	const struct inject_row *row;
	size_t i;

	for (i = results->nr_rows; i--;) {
		row = &results->rows[i];
		if (row->variant == variant && is_of(row->kernel, kernel) &&
		    !memcmp(&row->what, what, sizeof(*what)))
			return row;
	}
	return NULL;
}

static double insns_of(const struct inject_row *row)
{
	return row ? row->insns : INJECT_NONE;
}

static double locks_of(const struct inject_row *row)
{
	return row ? row->vm_locks : INJECT_NONE;
}

/* Has an earlier row the same kernel, or the same kernel and injection? */
static bool is_repeated(const struct inject_results *results, size_t i,
			bool same_injection)
{
	const struct inject_row *row = &results->rows[i], *before;

	for (before = results->rows; before < row; before++)
		if (!strcmp(before->kernel, row->kernel) &&
		    (!same_injection ||
		     !memcmp(&before->what, &row->what, sizeof(row->what))))
			return true;
	return false;
}

static void print_figure(FILE *f, double figure, int decimals)
{
	if (figure == INJECT_NONE)
		fprintf(f, " - |");
	else
		fprintf(f, " %.*f |", decimals, figure);
}

/* A table of one figure of every injection that has it on some kernel */
static void print_kernel(const struct inject_results *results,
			 const char *kernel, bool locks, FILE *f)
{
	double (*const figure)(const struct inject_row *) = locks ? locks_of
								  : insns_of;
	const struct inject_row *row;
	double stock, patched;
	bool head = false;
	size_t i;

	for (i = 0; i < results->nr_rows; i++) {
		row = &results->rows[i];
		if (strcmp(row->kernel, kernel) ||
		    is_repeated(results, i, true))
			continue;
		stock = figure(find(results, kernel, INJECT_STOCK, &row->what));
		patched = figure(
			find(results, kernel, INJECT_PATCHED, &row->what));
		if (stock == INJECT_NONE && patched == INJECT_NONE)
			continue;
		if (!head)
			fprintf(f,
				"Linux %s, %s an injection:\n\n"
				"| path | LPI | vCPUs | LPIs | stock | patched | less |\n"
				"| --- | --- | ---: | ---: | ---: | ---: | ---: |\n",
				kernel,
				locks ? "VM-wide locks" : "instructions");
		head = true;
		fprintf(f, "| %s | %s | %u | %u |",
			inject_path_names[row->what.path],
			inject_state_names[row->what.state], row->what.vcpus,
			row->what.lpis);
		print_figure(f, stock, locks ? 2 : 0);
		print_figure(f, patched, locks ? 2 : 0);
		if (stock > 0 && patched >= 0)
			fprintf(f, " %.0f %% |\n", 100 * (1 - patched / stock));
		else
			fprintf(f, " - |\n");
	}
	if (head)
		fprintf(f, "\n");
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of those that are like @like; how many there are */
static size_t median_rate(const struct inject_results *results,
			  const struct inject_rate *like, double *median)
{
	double *found = calloc(results->nr_rates + 1, sizeof(*found));
	const struct inject_rate *rate;
	size_t i, nr = 0;

	for (i = 0; found && i < results->nr_rates; i++) {
		rate = &results->rates[i];
		if (!strcmp(rate->kernel, like->kernel) &&
		    rate->variant == like->variant &&
		    rate->vcpus == like->vcpus && rate->lpis == like->lpis &&
		    rate->threads == like->threads)
			found[nr++] = rate->per_second;
	}
	if (nr) {
		qsort(found, nr, sizeof(*found), compare);
		*median = found[nr / 2];
	}
	free(found);
	return nr;
}

/* A line for each kernel and number of threads, at its first rate */
static void print_rates(const struct inject_results *results, FILE *f)
{
	double per_second[NR_INJECT_VARIANTS];
	const struct inject_rate *rate, *before;
	struct inject_rate like;
	size_t nr;
	int v;

	fprintf(f,
		"LPIs a second, pending, the median of some runs:\n\n"
		"| kernel | vCPUs | LPIs | threads | runs | stock | patched | patched / stock |\n"
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
	for (rate = results->rates; rate < results->rates + results->nr_rates;
	     rate++) {
		for (before = results->rates; before < rate; before++)
			if (!strcmp(before->kernel, rate->kernel) &&
			    before->vcpus == rate->vcpus &&
			    before->lpis == rate->lpis &&
			    before->threads == rate->threads)
				break;
		if (before < rate)
			continue;
		like = *rate;
		for (v = 0; v < NR_INJECT_VARIANTS; v++) {
			per_second[v] = INJECT_NONE;
			like.variant = v;
			nr = median_rate(results, &like, &per_second[v]);
		}
		fprintf(f, "| %s | %u | %u | %u | %zu |", rate->kernel,
			rate->vcpus, rate->lpis, rate->threads, nr);
		print_figure(f, per_second[INJECT_STOCK], 0);
		print_figure(f, per_second[INJECT_PATCHED], 0);
		if (per_second[INJECT_STOCK] > 0 &&
		    per_second[INJECT_PATCHED] > 0)
			print_figure(f,
				     per_second[INJECT_PATCHED] /
					     per_second[INJECT_STOCK],
				     2);
		else
			print_figure(f, INJECT_NONE, 0);
		fprintf(f, "\n");
	}
	fprintf(f, "\n");
}

void inject_print_table(const struct inject_results *results, FILE *f)
{
	size_t i;

	for (i = 0; i < results->nr_rows; i++)
		if (!is_repeated(results, i, false)) {
			print_kernel(results, results->rows[i].kernel, false,
				     f);
			print_kernel(results, results->rows[i].kernel, true, f);
		}
	if (results->nr_rates)
		print_rates(results, f);
}

/* The project's targets */

static bool has_kernel(const struct inject_results *results, const char *series)
{
	size_t i;

	for (i = 0; i < results->nr_rows; i++)
		if (is_of(results->rows[i].kernel, series))
			return true;
	return false;
}

static double pending_insns(const struct inject_results *results,
			    const char *kernel, uint32_t lpis)
{
	const struct injection what = { .vcpus = 60, .lpis = lpis };

	return insns_of(find(results, kernel, INJECT_PATCHED, &what));
}

/* The most that any injection takes; INJECT_NONE if none was counted */
static double most_locks(const struct inject_results *results,
			 const char *kernel)
{
	const struct inject_row *row;
	double most = INJECT_NONE;
	size_t i;

	for (i = 0; i < results->nr_rows; i++) {
		row = &results->rows[i];
		if (row->variant == INJECT_PATCHED &&
		    is_of(row->kernel, kernel) && row->vm_locks > most)
			most = row->vm_locks;
	}
	return most;
}

static int judge(const char *name, double figure, double must, double aim,
		 FILE *f)
{
	if (figure == INJECT_NONE) {
		fprintf(f, "  -       %-28s\n", name);
		return 1;
	}
	fprintf(f, "  %-6s  %-28s %9.3f   must <= %g, aim %g%s\n",
		figure <= must ? "met" : "MISSED", name, figure, must, aim,
		figure <= aim ? " (reached)" : "");
	return figure > must;
}

int inject_print_verdict(const struct inject_results *results, FILE *f)
{
	/* over_lpis: the figure is divided by that for so many LPIs */
	static const struct {
		const char *kernel;
		uint32_t lpis;
		uint32_t over_lpis;
		double must;
		double aim;
	} targets[] = {
		{ "6.1", 1024, 0, 1150, 950 },
		{ "6.1", 4096, 256, 1.02, 1.0 },
		{ "6.12", 1024, 0, 980, 850 },
		{ "7", 1024, 0, 1150, 1000 },
	};
	static const char *const kernels[] = { "6.1", "6.12", "7" };
	double figure, base;
	int missed = 0;
	char name[64];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(targets); i++) {
		if (!has_kernel(results, targets[i].kernel))
			continue;
		figure = pending_insns(results, targets[i].kernel,
				       targets[i].lpis);
		snprintf(name, sizeof(name), "%s, %u LPIs, insns",
			 targets[i].kernel, targets[i].lpis);
		if (targets[i].over_lpis) {
			base = pending_insns(results, targets[i].kernel,
					     targets[i].over_lpis);
			figure = figure > 0 && base > 0 ? figure / base
							: INJECT_NONE;
			snprintf(name, sizeof(name), "%s, %u LPIs / %u LPIs",
				 targets[i].kernel, targets[i].lpis,
				 targets[i].over_lpis);
		}
		missed += judge(name, figure, targets[i].must, targets[i].aim,
				f);
	}
	for (i = 0; i < ARRAY_SIZE(kernels); i++) {
		if (!has_kernel(results, kernels[i]))
			continue;
		snprintf(name, sizeof(name), "%s, VM-wide locks", kernels[i]);
		missed += judge(name, most_locks(results, kernels[i]), 0, 0, f);
	}
	return missed;
}
