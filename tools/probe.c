// SPDX-License-Identifier: MIT
/* swiftgic probe: what this host has, and what to do about what it lacks */
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "host.h"
#include "snapshot.h"
#include "swiftgic.h"

static void usage(FILE *f)
{
	fprintf(f,
		"usage: swiftgic probe [OPTION...]\n"
		"\n"
		"Say what this host has of KVM, a VGICv3, an ITS and the batch call, and what to\n"
		"do about what it lacks. Needs permission to open /dev/kvm.\n"
		"\n"
		"  --json  the same as JSON\n"
		"  --help  this text\n"
		"\n"
		"exit status: 0 all is there, 1 all but the batch call, 2 wrong usage, 3 this host\n"
		"cannot (no KVM, no VGICv3)\n");
}

static void print_text(const struct probe *probe, const char *release)
{
	printf("kernel      %s\n", release);
	printf("KVM         %s\n", probe->kvm ? "yes" : "no");
	if (probe->kvm) {
		printf("vCPUs       up to %d a VM\n", probe->max_vcpus);
		printf("VGICv3      %s\n", probe->vgicv3 ? "yes" : "no");
		printf("ITS         %s\n", probe->its ? "yes" : "no");
	}
	if (probe->batch)
		printf("batch call  yes, up to %u registers\n", probe->batch);
	else
		printf("batch call  no\n");
	if (probe->advice[0])
		printf("\n%s\n", probe->advice);
}

static int print_json(const struct probe *probe, const char *release)
{
	cJSON *root = cJSON_CreateObject();

	cJSON_AddStringToObject(root, "kernel", release);
	cJSON_AddBoolToObject(root, "kvm", probe->kvm);
	cJSON_AddNumberToObject(root, "max_vcpus", probe->max_vcpus);
	cJSON_AddBoolToObject(root, "vgicv3", probe->vgicv3);
	cJSON_AddBoolToObject(root, "its", probe->its);
	cJSON_AddNumberToObject(root, "batch_limit", probe->batch);
	if (probe->advice[0])
		cJSON_AddStringToObject(root, "advice", probe->advice);
	else
		cJSON_AddNullToObject(root, "advice");
	return json_print(root);
}

int cmd_probe(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct probe probe = { 0 };
	struct utsname uts = { 0 };
	bool json = false;
	int opt, ret;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"swiftgic: probe: unexpected '%s'; try --help\n",
			argv[optind]);
		return EXIT_USAGE;
	}

	uname(&uts);
#ifdef __aarch64__
	ret = probe_host(&probe);
#else
	snprintf(probe.advice, sizeof(probe.advice),
		 "This is %s; a GICv3 is emulated by KVM on arm64 only.",
		 uts.machine);
	ret = EXIT_CANNOT;
#endif
	if (!json)
		print_text(&probe, uts.release);
	else if (print_json(&probe, uts.release))
		return EXIT_FAILED;
	return ret;
}
