// SPDX-License-Identifier: MIT
#include <stdio.h>
#include <string.h>

#include <swiftgic.h>

#include "swiftgic.h"

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "bench", cmd_bench,
	  "measure moving VGIC state, one by one and batched" },
	{ "inject", cmd_inject, "measure injecting LPIs" },
	{ "migrate", cmd_migrate, "measure live migration, in the lab" },
	{ "probe", cmd_probe, "what this host has, and what it lacks" },
	{ "save", cmd_save, "save a snapshot of a VM made for it" },
	{ "restore", cmd_restore, "restore a snapshot to a VM made for it" },
	{ "show", cmd_show, "print a snapshot" },
	{ "diff", cmd_diff, "compare two snapshots" },
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *f)
{
	size_t i;

	fprintf(f, "usage: swiftgic COMMAND [OPTION...]\n\ncommands:\n");
	for (i = 0; i < NR_COMMANDS; i++)
		fprintf(f, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(f,
		"\n"
		"  --help     this text; after a command, that command's\n"
		"  --version  the version\n"
		"\n"
		"exit status: 0 all well, 1 a check or a target failed, 2 wrong usage,\n"
		"3 this host cannot (no KVM, no VGICv3); those of diff are diff's\n");
}

/* A table that nobody could read is no success. */
static int flushed(int status)
{
	if (!fflush(stdout) && !ferror(stdout))
		return status;
	fprintf(stderr, "swiftgic: cannot write to standard output\n");
	return status ? status : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help")) {
		usage(stdout);
		return EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("swiftgic %s\n", sgic_version());
		return EXIT_OK;
	}
	for (i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(argv[1], commands[i].name))
			return flushed(commands[i].run(argc - 1, argv + 1));

	fprintf(stderr, "swiftgic: no command '%s'; try --help\n", argv[1]);
	return EXIT_USAGE;
}
