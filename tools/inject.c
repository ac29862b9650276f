// SPDX-License-Identifier: MIT
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "inject_results.h"
#include "swiftgic.h"

#define MAX_COUNTS  16
#define MAX_VCPUS   512
#define MAX_THREADS 8
#define MAX_LPIS    4096 /* as many as KVM has routes for irqfds */

struct counts {
	uint32_t val[MAX_COUNTS];
	size_t nr;
};

struct inject {
	struct counts vcpus;
	struct counts lpis;
	bool paths[NR_INJECT_PATHS];
	bool states[NR_INJECT_STATES];
	int variant;
	const char *json;
	bool table;
	bool locks;
	struct counts threads;
};

static void usage(FILE *f)
{
	fprintf(f,
		"usage: swiftgic inject [OPTION...]\n"
		"       swiftgic inject --table [--json FILE] FILE...\n"
		"\n"
		"Create VMs with mapped LPIs, inject each once, so that its translation is\n"
		"cached, and then print what injecting each in turn costs, the system call\n"
		"included. What is counted are the nanoseconds of CLOCK_MONOTONIC: instructions\n"
		"in the lab, where each takes one.\n"
		"\n"
		"  --vcpus LIST    vCPU counts (4,60)\n"
		"  --lpis LIST     LPI counts, up to 4096 (1,32,256,1024,4096)\n"
		"  --path NAME     signal_msi or irqfd (both)\n"
		"  --state NAME    pending: all are pending already; idle: none is (both)\n"
		"  --locks         not what it costs, but how many locks of the whole VM an\n"
		"                  injection takes; needs a kernel with CONFIG_LOCK_STAT\n"
		"  --threads LIST  not what it costs, but how many LPIs a second so many threads\n"
		"                  inject, each on a CPU of its own\n"
		"  --variant NAME  what the results say of this kernel: stock or patched\n"
		"                  (stock)\n"
		"  --json FILE     write the results\n"
		"  --table         no measurement: the table and the verdict on the targets\n"
		"                  from results files, merged; with --json, write the merge\n");
}

static int wrong(const char *what, const char *arg)
{
	fprintf(stderr, "swiftgic: inject: %s '%s'; try --help\n", what, arg);
	return EXIT_USAGE;
}

static bool parse_counts(struct counts *counts, const char *list,
			 unsigned long max)
{
	unsigned long n;
	char *end;

	for (counts->nr = 0; counts->nr < MAX_COUNTS; list = end + 1) {
		n = strtoul(list, &end, 10);
		if (*list < '0' || *list > '9' || !n || n > max)
			return false;
		counts->val[counts->nr++] = n;
		if (!*end)
			return true;
		if (*end != ',')
			return false;
	}
	return false;
}

static bool parse_choice(bool *chosen, const char *const *names, size_t n,
			 const char *arg)
{
	int i = inject_name(names, n, arg);

	if (i < 0)
		return false;
	memset(chosen, 0, n * sizeof(*chosen));
	chosen[i] = true;
	return true;
}

/* Returns -1 to go on, or the exit status. */
static int parse_options(struct inject *inject, int argc, char **argv)
{
	static const struct option options[] = {
		{ "vcpus", required_argument, NULL, 'v' },
		{ "lpis", required_argument, NULL, 'l' },
		{ "path", required_argument, NULL, 'p' },
		{ "state", required_argument, NULL, 's' },
		{ "locks", no_argument, NULL, 'L' },
		{ "threads", required_argument, NULL, 'T' },
		{ "variant", required_argument, NULL, 'k' },
		{ "json", required_argument, NULL, 'j' },
		{ "table", no_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'v':
			if (!parse_counts(&inject->vcpus, optarg, MAX_VCPUS))
				return wrong("no list of vCPU counts", optarg);
			break;
		case 'l':
			if (!parse_counts(&inject->lpis, optarg, MAX_LPIS))
				return wrong("no list of LPI counts", optarg);
			break;
		case 'p':
			if (!parse_choice(inject->paths, inject_path_names,
					  NR_INJECT_PATHS, optarg))
				return wrong("no path", optarg);
			break;
		case 's':
			if (!parse_choice(inject->states, inject_state_names,
					  NR_INJECT_STATES, optarg))
				return wrong("no state", optarg);
			break;
		case 'L':
			inject->locks = true;
			break;
		case 'T':
			if (!parse_counts(&inject->threads, optarg,
					  MAX_THREADS))
				return wrong("no list of threads", optarg);
			break;
		case 'k':
			inject->variant = inject_name(inject_variant_names,
						      NR_INJECT_VARIANTS,
						      optarg);
			if (inject->variant < 0)
				return wrong("no variant", optarg);
			break;
		case 'j':
			inject->json = optarg;
			break;
		case 't':
			inject->table = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (!inject->table && optind < argc)
		return wrong("unexpected", argv[optind]);
	if (inject->table && optind == argc)
		return wrong("no results file after", "--table");
	/* A rate is that of MSIs to LPIs which are pending. */
	if (inject->threads.nr && inject->locks)
		return wrong("--locks does not go with", "--threads");
	if (inject->threads.nr) {
		inject->paths[INJECT_IRQFD] = false;
		inject->states[INJECT_IDLE] = false;
	}
	return -1;
}

#ifdef __aarch64__
static const char *release(void)
{
	static struct utsname uts;

	uname(&uts);
	return uts.release;
}

static int no_memory(void)
{
	fprintf(stderr, "swiftgic: inject: out of memory\n");
	return EXIT_FAILED;
}

static int measure_one(const struct inject *inject,
		       const struct injection *what,
		       struct inject_results *results)
{
	struct inject_row *row = inject_row(results, release(), inject->variant,
					    what);
	double *figure;
	int ret;

	if (!row)
		return no_memory();
	figure = inject->locks ? &row->vm_locks : &row->insns;
	ret = inject->locks ? injection_count_locks(what, figure)
			    : injection_measure(what, figure);
	if (!ret)
		fprintf(stderr, "%s, %s, %u vCPUs, %u LPIs: %.1f%s\n",
			inject_path_names[what->path],
			inject_state_names[what->state], what->vcpus,
			what->lpis, *figure, inject->locks ? " locks" : "");
	return ret;
}

static int measure_rates(const struct inject *inject,
			 const struct injection *what,
			 struct inject_results *results)
{
	struct inject_rate *rate;
	size_t t;
	int ret;

	for (t = 0; t < inject->threads.nr; t++) {
		rate = inject_add_rate(results);
		if (!rate)
			return no_memory();
		snprintf(rate->kernel, sizeof(rate->kernel), "%s", release());
		rate->variant = inject->variant;
		rate->vcpus = what->vcpus;
		rate->lpis = what->lpis;
		rate->threads = inject->threads.val[t];
		ret = injection_rate(what, rate->threads, &rate->per_second);
		if (ret)
			return ret;
		fprintf(stderr,
			"%u vCPUs, %u LPIs, %u threads: %.0f a second\n",
			what->vcpus, what->lpis, rate->threads,
			rate->per_second);
	}
	return EXIT_OK;
}

static int measure(const struct inject *inject, struct inject_results *results)
{
	size_t v, l;
	int p, s, ret;

	for (p = 0; p < NR_INJECT_PATHS; p++)
		for (s = 0; s < NR_INJECT_STATES; s++)
			for (v = 0; v < inject->vcpus.nr; v++)
				for (l = 0; l < inject->lpis.nr; l++) {
					const struct injection what = {
						.vcpus = inject->vcpus.val[v],
						.lpis = inject->lpis.val[l],
						.path = p,
						.state = s,
					};

					if (!inject->paths[p] ||
					    !inject->states[s])
						continue;
					ret = inject->threads.nr
						      ? measure_rates(inject,
								      &what,
								      results)
						      : measure_one(inject,
								    &what,
								    results);
					if (ret)
						return ret;
				}
	return EXIT_OK;
}
#else
static int measure(const struct inject *inject, struct inject_results *results)
{
	(void)inject;
	(void)results;
	fprintf(stderr, "swiftgic: this host is not arm64\n");
	return EXIT_CANNOT;
}
#endif

int cmd_inject(int argc, char **argv)
{
	struct inject inject = {
		.vcpus = { { 4, 60 }, 2 },
		.lpis = { { 1, 32, 256, 1024, 4096 }, 5 },
		.paths = { true, true },
		.states = { true, true },
	};
	struct inject_results results = { 0 };
	int ret;
	int i;

	ret = parse_options(&inject, argc, argv);
	if (ret >= 0)
		return ret;

	if (inject.table) {
		for (i = optind, ret = EXIT_OK; !ret && i < argc; i++)
			if (inject_load(&results, argv[i]))
				ret = EXIT_FAILED;
	} else {
		ret = measure(&inject, &results);
	}
	if (!ret)
		inject_print_table(&results, stdout);
	if (!ret && inject.json && inject_save(&results, inject.json))
		ret = EXIT_FAILED;
	if (!ret && inject.table && inject_print_verdict(&results, stdout))
		ret = EXIT_FAILED;
	inject_free(&results);
	return ret;
}
