// SPDX-License-Identifier: MIT
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "regs.h"
#include "swiftgic.h"
#include "transfer.h"

#define MAX_COUNTS   16
#define DEFAULT_IRQS 288
#define DEFAULT_SEED 1

static const uint32_t default_counts[] = { 1, 16, 64, 160, 256, 512 };
static const uint32_t quick_counts[] = { 1, 16, 64 };

struct bench {
	uint32_t counts[MAX_COUNTS];
	struct transfer_options transfer;
	const char *json;
	const char *clock;
	bool one_register;
	bool table;
	bool complete;
};

static void usage(FILE *f)
{
	fprintf(f,
		"usage: swiftgic bench [OPTION...]\n"
		"       swiftgic bench --table [--json FILE] FILE...\n"
		"\n"
		"Create VMs, fill their VGIC with state, and move it one register a call,\n"
		"batched, and by the library; check that all read the same, and that what was\n"
		"put into a second VM reads back the same; print what each cost.\n"
		"\n"
		"  --vcpus LIST      vCPU counts (1,16,64,160,256,512)\n"
		"  --quick           vCPU counts 1,16,64\n"
		"  --irqs N          interrupts: SGIs, PPIs and SPIs; a multiple of 32 (288)\n"
		"  --direction DIR   get, put or both (both)\n"
		"  --one-register    only what one one-register call costs\n"
		"  --seed N          of the VGIC state (1)\n"
		"  --clock NAME      what CLOCK_MONOTONIC counts here: ns, or instructions in\n"
		"                    an emulator that gives each instruction 1 ns (ns)\n"
		"  --json FILE       write the results\n"
		"  --table           no measurement: the table and the verdict on the targets\n"
		"                    from results files, merged; with --json, write the merge\n"
		"  --complete        with --table: a figure that is not there is a miss\n");
}

static int wrong(const char *what, const char *arg)
{
	fprintf(stderr, "swiftgic: bench: %s '%s'; try --help\n", what, arg);
	return EXIT_USAGE;
}

static bool parse_counts(struct bench *bench, const char *list)
{
	uint32_t *count = bench->counts;
	char *end;

	while (count < bench->counts + MAX_COUNTS) {
		if (!parse_number(list, SGIC_MAX_VCPUS, &end, count) ||
		    !*count++)
			return false;
		if (!*end) {
			bench->transfer.vcpus = bench->counts;
			bench->transfer.nr_vcpus = count - bench->counts;
			return true;
		}
		if (*end != ',')
			return false;
		list = end + 1;
	}
	return false;
}

static bool parse_direction(struct bench *bench, const char *s)
{
	bool both = !strcmp(s, "both");

	bench->transfer.get = both || !strcmp(s, "get");
	bench->transfer.put = both || !strcmp(s, "put");
	return bench->transfer.get || bench->transfer.put;
}

static bool parse_clock(struct bench *bench, const char *s)
{
	bench->clock = s;
	return !strcmp(s, "ns") || !strcmp(s, "instructions");
}

/* Returns -1 to go on, or the exit status. */
static int parse_options(struct bench *bench, int argc, char **argv)
{
	static const struct option options[] = {
		{ "vcpus", required_argument, NULL, 'v' },
		{ "quick", no_argument, NULL, 'q' },
		{ "irqs", required_argument, NULL, 'i' },
		{ "direction", required_argument, NULL, 'd' },
		{ "one-register", no_argument, NULL, '1' },
		{ "seed", required_argument, NULL, 's' },
		{ "clock", required_argument, NULL, 'c' },
		{ "json", required_argument, NULL, 'j' },
		{ "table", no_argument, NULL, 't' },
		{ "complete", no_argument, NULL, 'C' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'v':
			if (!parse_counts(bench, optarg))
				return wrong("no list of vCPU counts", optarg);
			break;
		case 'q':
			bench->transfer.vcpus = quick_counts;
			bench->transfer.nr_vcpus = sizeof(quick_counts) /
						   sizeof(quick_counts[0]);
			break;
		case 'i':
			if (!parse_irqs(optarg, &bench->transfer.irqs))
				return wrong("no number of interrupts", optarg);
			break;
		case 'd':
			if (!parse_direction(bench, optarg))
				return wrong("no direction", optarg);
			break;
		case '1':
			bench->one_register = true;
			break;
		case 's':
			if (!parse_whole(optarg, UINT32_MAX,
					 &bench->transfer.seed))
				return wrong("no seed", optarg);
			break;
		case 'c':
			if (!parse_clock(bench, optarg))
				return wrong("no clock", optarg);
			break;
		case 'j':
			bench->json = optarg;
			break;
		case 't':
			bench->table = true;
			break;
		case 'C':
			bench->complete = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (!bench->table && optind < argc)
		return wrong("unexpected", argv[optind]);
	if (bench->table && optind == argc)
		return wrong("no results file after", "--table");
	return -1;
}

static int measure(const struct bench *bench, struct results *results)
{
	snprintf(results->clock, sizeof(results->clock), "%s", bench->clock);
#ifdef __aarch64__
	if (bench->one_register)
		return transfer_measure_one_register(&bench->transfer, results);
	return transfer_measure(&bench->transfer, results);
#else
	fprintf(stderr, "swiftgic: this host is not arm64\n");
	return EXIT_CANNOT;
#endif
}

static int load(struct results *results, char **paths)
{
	for (; *paths; paths++)
		if (results_load(results, *paths))
			return EXIT_FAILED;
	return EXIT_OK;
}

int cmd_bench(int argc, char **argv)
{
	struct bench bench = {
		.transfer = {
			.vcpus = default_counts,
			.nr_vcpus = sizeof(default_counts) /
				    sizeof(default_counts[0]),
			.irqs = DEFAULT_IRQS,
			.seed = DEFAULT_SEED,
			.get = true,
			.put = true,
		},
		.clock = "ns",
	};
	struct results results = { 0 };
	int ret;

	ret = parse_options(&bench, argc, argv);
	if (ret >= 0)
		return ret;

	if (bench.table)
		ret = load(&results, argv + optind);
	else
		ret = measure(&bench, &results);
	if (!ret)
		results_print_table(&results, stdout);
	if (!ret && bench.json && results_save(&results, bench.json))
		ret = EXIT_FAILED;
	if (!ret && bench.table &&
	    results_print_verdict(&results, bench.complete, stdout))
		ret = EXIT_FAILED;
	results_free(&results);
	return ret;
}
