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

struct inject_row *inject_add_row(struct inject_results *results)
{
	struct inject_row *rows, *row;

	rows = realloc(results->rows, (results->nr_rows + 1) * sizeof(*rows));
	if (!rows)
		return NULL;
	results->rows = rows;
	row = &rows[results->nr_rows++];
	memset(row, 0, sizeof(*row));
	row->insns = INJECT_NONE;
	row->vm_locks = INJECT_NONE;
	return row;
}

void inject_free(struct inject_results *results)
{
	free(results->rows);
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
	struct inject_row *row;

	if (!kernel || variant < 0 || path < 0 || state < 0 || vcpus < 1 ||
	    lpis < 1)
		return -1;
	row = inject_add_row(results);
	if (!row)
		return -1;
	snprintf(row->kernel, sizeof(row->kernel), "%s", kernel);
	row->variant = variant;
	row->what = (struct injection){
		.vcpus = vcpus,
		.lpis = lpis,
		.path = path,
		.state = state,
	};
	row->insns = get_number(item, "insns");
	row->vm_locks = get_number(item, "vm_locks");
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

int inject_save(const struct inject_results *results, const char *path)
{
	cJSON *root = cJSON_CreateObject();
	cJSON *rows = cJSON_AddArrayToObject(root, "rows");
	const struct inject_row *row;
	char *text;
	cJSON *obj;
	FILE *f;
	int ret = -1;

	for (row = results->rows; row < results->rows + results->nr_rows;
	     row++) {
		obj = cJSON_CreateObject();
		cJSON_AddStringToObject(obj, "kernel", row->kernel);
		cJSON_AddStringToObject(obj, "variant",
					inject_variant_names[row->variant]);
		cJSON_AddStringToObject(obj, "path",
					inject_path_names[row->what.path]);
		cJSON_AddStringToObject(obj, "state",
					inject_state_names[row->what.state]);
		cJSON_AddNumberToObject(obj, "vcpus", row->what.vcpus);
		cJSON_AddNumberToObject(obj, "lpis", row->what.lpis);
		add_number(obj, "insns", row->insns);
		add_number(obj, "vm_locks", row->vm_locks);
		cJSON_AddItemToArray(rows, obj);
	}
	text = cJSON_Print(root);
	f = text ? fopen(path, "w") : NULL;
	if (f) {
		ret = fprintf(f, "%s\n", text) < 0 ? -1 : 0;
		if (fclose(f))
			ret = -1;
	}
	if (ret)
		fprintf(stderr, "swiftgic: %s: %s\n", path, strerror(errno));
	free(text);
	cJSON_Delete(root);
	return ret;
}

/* The table */

/* Is @version "6.1.192" one of @series "6.1"? */
static bool is_of(const char *version, const char *series)
{
	size_t len = strlen(series);

	return !strncmp(version, series, len) &&
	       (version[len] == '.' || version[len] == '-' || !version[len]);
}

/* The last of its kind: a later run replaces an earlier one. */
static double find(const struct inject_results *results, const char *kernel,
		   enum inject_variant variant, const struct injection *what)
{
	const struct inject_row *row;
	size_t i;

	for (i = results->nr_rows; i--;) {
		row = &results->rows[i];
		if (row->variant == variant && is_of(row->kernel, kernel) &&
		    !memcmp(&row->what, what, sizeof(*what)))
			return row->insns;
	}
	return INJECT_NONE;
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

static void print_kernel(const struct inject_results *results,
			 const char *kernel, FILE *f)
{
	const struct inject_row *row;
	double stock, patched;
	size_t i;

	fprintf(f, "Linux %s, instructions an injection:\n\n", kernel);
	fprintf(f,
		"| path | LPI | vCPUs | LPIs | stock | patched | less |\n"
		"| --- | --- | ---: | ---: | ---: | ---: | ---: |\n");
	for (i = 0; i < results->nr_rows; i++) {
		row = &results->rows[i];
		if (strcmp(row->kernel, kernel) ||
		    is_repeated(results, i, true))
			continue;
		stock = find(results, kernel, INJECT_STOCK, &row->what);
		patched = find(results, kernel, INJECT_PATCHED, &row->what);
		fprintf(f, "| %s | %s | %u | %u |",
			inject_path_names[row->what.path],
			inject_state_names[row->what.state], row->what.vcpus,
			row->what.lpis);
		print_figure(f, stock, 0);
		print_figure(f, patched, 0);
		if (stock > 0 && patched > 0)
			fprintf(f, " %.0f %% |\n", 100 * (1 - patched / stock));
		else
			fprintf(f, " - |\n");
	}
	fprintf(f, "\n");
}

void inject_print_table(const struct inject_results *results, FILE *f)
{
	size_t i;

	for (i = 0; i < results->nr_rows; i++)
		if (!is_repeated(results, i, false))
			print_kernel(results, results->rows[i].kernel, f);
}

/* The targets, as the project's issue 4 states them */

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

	return find(results, kernel, INJECT_PATCHED, &what);
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
		if (figure == INJECT_NONE) {
			fprintf(f, "  -       %-28s\n", name);
			missed++;
			continue;
		}
		fprintf(f, "  %-6s  %-28s %9.3f   must <= %g, aim %g%s\n",
			figure <= targets[i].must ? "met" : "MISSED", name,
			figure, targets[i].must, targets[i].aim,
			figure <= targets[i].aim ? " (reached)" : "");
		missed += figure > targets[i].must;
	}
	return missed;
}
