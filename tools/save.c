// SPDX-License-Identifier: MIT
/* swiftgic save, swiftgic restore: the library on a VM made for it */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "demo.h"
#include "options.h"
#include "regs.h"
#include "snapshot.h"
#include "store.h"
#include "swiftgic.h"

#define DEFAULT_VCPUS 4
#define DEFAULT_IRQS  288
#define DEFAULT_SEED  1

struct options {
	const char *command;
	bool restore;
	uint32_t vcpus;
	uint32_t irqs;
	uint32_t seed;
	bool no_batch;
	bool json;
	const char *file;
};

static void usage(bool restore, FILE *f)
{
	if (restore)
		fprintf(f,
			"usage: swiftgic restore [OPTION...] FILE\n"
			"\n"
			"Make the VM that the snapshot in FILE is of, restore it, save it again, and\n"
			"compare. \"-\" is standard input. A VM with LPIs is refused: their tables are in\n"
			"guest memory, which a snapshot does not have.\n"
			"\n");
	else
		fprintf(f,
			"usage: swiftgic save [OPTION...] FILE\n"
			"\n"
			"Make a VM with a GICv3, fill it with state, and save a snapshot of it to FILE.\n"
			"A FILE that is there is replaced when all of the new one has been written. \"-\"\n"
			"is standard output.\n"
			"\n"
			"  --vcpus N   vCPUs (4)\n"
			"  --irqs N    interrupts: SGIs, PPIs and SPIs; a multiple of 32 (288)\n"
			"  --seed N    of the state (1)\n");
	fprintf(f,
		"  --no-batch  one register a call, on kernels with the batch call, too\n"
		"  --json      print as JSON what was done\n"
		"  --help      this text\n");
}

static int wrong(const struct options *options, const char *what,
		 const char *arg)
{
	fprintf(stderr, "swiftgic: %s: %s '%s'; try --help\n", options->command,
		what, arg);
	return EXIT_USAGE;
}

/* Returns -1 to go on, or the exit status. */
static int parse_options(struct options *options, int argc, char **argv)
{
	static const struct option save_options[] = {
		{ "vcpus", required_argument, NULL, 'v' },
		{ "irqs", required_argument, NULL, 'i' },
		{ "seed", required_argument, NULL, 's' },
		{ "no-batch", no_argument, NULL, 'B' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	static const struct option *const restore_options = &save_options[3];
	int opt;

	while ((opt = getopt_long(argc, argv, "",
				  options->restore ? restore_options
						   : save_options,
				  NULL)) != -1) {
		switch (opt) {
		case 'v':
			if (!parse_whole(optarg, SGIC_MAX_VCPUS,
					 &options->vcpus) ||
			    !options->vcpus)
				return wrong(options, "no number of vCPUs",
					     optarg);
			break;
		case 'i':
			if (!parse_irqs(optarg, &options->irqs))
				return wrong(options, "no number of interrupts",
					     optarg);
			break;
		case 's':
			if (!parse_whole(optarg, UINT32_MAX, &options->seed))
				return wrong(options, "no seed", optarg);
			break;
		case 'B':
			options->no_batch = true;
			break;
		case 'j':
			options->json = true;
			break;
		case 'h':
			usage(options->restore, stdout);
			return EXIT_OK;
		default:
			usage(options->restore, stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return wrong(options, "no file after", argv[argc - 1]);
	options->file = argv[optind++];
	if (optind < argc)
		return wrong(options, "unexpected", argv[optind]);
	return -1;
}

static int print_json(const struct options *options,
		      const struct sgic_state *state,
		      const struct sgic_machine *machine,
		      const struct sgic_stats *stats)
{
	cJSON *root = cJSON_CreateObject();

	cJSON_AddStringToObject(root, "command", options->command);
	cJSON_AddNumberToObject(root, "vcpus", machine->nr_vcpus);
	cJSON_AddNumberToObject(root, "interrupts", machine->nr_irqs);
	cJSON_AddNumberToObject(root, "bytes", sgic_state_size(state));
	cJSON_AddNumberToObject(root, "registers", stats->registers);
	cJSON_AddNumberToObject(root, "calls", stats->calls);
	cJSON_AddBoolToObject(root, "batched", stats->batched);
	cJSON_AddNumberToObject(root, "ns", stats->ns);
	return json_print(root);
}

static int print_result(const struct options *options,
			const struct sgic_state *state,
			const struct sgic_stats *stats)
{
	struct sgic_machine machine;

	/* Where the snapshot goes, nothing else may. */
	if (!options->restore && !strcmp(options->file, "-"))
		return EXIT_OK;
	sgic_state_machine(state, &machine);
	if (options->json)
		return print_json(options, state, &machine, stats);
	printf("%s: %u vCPUs, %u interrupts, %zu bytes\n"
	       "%s %u registers in %u calls, %s, %.3f ms\n",
	       options->file, machine.nr_vcpus, machine.nr_irqs,
	       sgic_state_size(state), options->restore ? "restored" : "saved",
	       stats->registers, stats->calls,
	       stats->batched ? "batched" : "one by one", stats->ns / 1e6);
	if (options->restore)
		printf("saved again, it is the same\n");
	return EXIT_OK;
}

#ifndef __aarch64__
static int not_arm64(void)
{
	fprintf(stderr, "swiftgic: this host is not arm64\n");
	return EXIT_CANNOT;
}

int demo_save(uint32_t vcpus, uint32_t irqs, uint32_t seed, bool no_batch,
	      struct sgic_state *state, struct sgic_stats *stats)
{
	(void)vcpus, (void)irqs, (void)seed, (void)no_batch;
	(void)state, (void)stats;
	return not_arm64();
}

int demo_restore(const struct sgic_state *state, bool no_batch,
		 struct sgic_stats *stats)
{
	(void)state, (void)no_batch, (void)stats;
	return not_arm64();
}
#endif

static int save(const struct options *options, struct sgic_stats *stats)
{
	struct sgic_state *state = sgic_state_new();
	struct sgic_error error;
	int ret;

	if (!state) {
		fprintf(stderr, "swiftgic: save: out of memory\n");
		return EXIT_FAILED;
	}
	ret = demo_save(options->vcpus, options->irqs, options->seed,
			options->no_batch, state, stats);
	if (!ret && store_write(state, options->file, &error)) {
		fprintf(stderr, "swiftgic: %s: %s\n", options->file,
			error.message);
		ret = EXIT_FAILED;
	}
	if (!ret)
		ret = print_result(options, state, stats);
	sgic_state_free(state);
	return ret;
}

static int restore(const struct options *options, struct sgic_stats *stats)
{
	struct sgic_state *state = snapshot_load(options->file);
	int ret;

	if (!state)
		return EXIT_FAILED;
	ret = demo_restore(state, options->no_batch, stats);
	if (!ret)
		ret = print_result(options, state, stats);
	sgic_state_free(state);
	return ret;
}

static int command(int argc, char **argv, bool restore_it)
{
	struct options options = {
		.command = argv[0],
		.restore = restore_it,
		.vcpus = DEFAULT_VCPUS,
		.irqs = DEFAULT_IRQS,
		.seed = DEFAULT_SEED,
	};
	struct sgic_stats stats = { 0 };
	int ret = parse_options(&options, argc, argv);

	if (ret >= 0)
		return ret;
	return restore_it ? restore(&options, &stats) : save(&options, &stats);
}

int cmd_save(int argc, char **argv)
{
	return command(argc, argv, false);
}

int cmd_restore(int argc, char **argv)
{
	return command(argc, argv, true);
}
