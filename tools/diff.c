// SPDX-License-Identifier: MIT
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "snapshot.h"
#include "swiftgic.h"

/* As diff's, which is not what the other commands have */
enum {
	EXIT_SAME = 0,
	EXIT_DIFFERENT = 1,
	EXIT_TROUBLE = 2,
};

struct diff {
	const struct sgic_state *b; /* the walk is over A */
	bool json;
	cJSON *list;
	size_t count;
};

static void usage(FILE *f)
{
	fprintf(f,
		"usage: swiftgic diff [OPTION...] A B\n"
		"\n"
		"Compare two snapshots: print the registers that differ, and then the interrupts,\n"
		"with what each has in A and in B. One of the two may be - for standard input.\n"
		"\n"
		"  --json  the same as JSON\n"
		"\n"
		"exit status, as diff's: 0 they are the same, 1 they differ, be it in the machine\n"
		"that they are of, 2 trouble: wrong usage, or a snapshot that cannot be read\n");
}

static void print_pair(const char *a, const char *b)
{
	printf("%s%s%s -> %s%s%s", colour(RED), a, colour(PLAIN), colour(GREEN),
	       b, colour(PLAIN));
}

/* The first of a list has its heading. */
static void print_heading(struct diff *diff, const char *heading)
{
	if (!diff->count++)
		printf("%s%s%s\n", colour(BOLD), heading, colour(PLAIN));
}

static int diff_register(const struct sgic_value *a, const struct sgic_value *b,
			 void *data)
{
	struct diff *diff = data;
	char of_a[HEX_SIZE], of_b[HEX_SIZE];
	cJSON *obj;

	hex_value(a, of_a);
	hex_value(b, of_b);
	if (diff->json) {
		obj = register_json_identity(a);
		cJSON_AddStringToObject(obj, "a", of_a);
		cJSON_AddStringToObject(obj, "b", of_b);
		cJSON_AddItemToArray(diff->list, obj);
		return 0;
	}
	print_heading(diff, "registers");
	printf("%-30s ", a->name);
	print_pair(of_a, of_b);
	printf("\n");
	return 0;
}

static void diff_irq_json(struct diff *diff, const struct sgic_irq *a,
			  const struct sgic_irq *b)
{
	cJSON *obj = irq_json_identity(a), *pair;

	for (int f = 0; f < NR_IRQ_FIELDS; f++) {
		if (irq_field(a, f) == irq_field(b, f))
			continue;
		pair = cJSON_AddObjectToObject(obj, irq_field_names[f]);
		cJSON_AddItemToObject(pair, "a", irq_json(a, f));
		cJSON_AddItemToObject(pair, "b", irq_json(b, f));
	}
	cJSON_AddItemToArray(diff->list, obj);
}

static void diff_irq_text(struct diff *diff, const struct sgic_irq *a,
			  const struct sgic_irq *b)
{
	char of_a[IRQ_TEXT_SIZE], of_b[IRQ_TEXT_SIZE];
	const char *separator = "";

	print_heading(diff, "interrupts");
	printf("INTID %u", a->intid);
	if (a->vcpu >= 0)
		printf(" (vCPU %d)", a->vcpu);
	for (int f = 0; f < NR_IRQ_FIELDS; f++) {
		if (irq_field(a, f) == irq_field(b, f))
			continue;
		printf("%s %s ", separator, irq_field_names[f]);
		print_pair(irq_text(a, f, of_a), irq_text(b, f, of_b));
		separator = ",";
	}
	printf("\n");
}

static void diff_irq(const struct sgic_irq *a, void *data)
{
	struct diff *diff = data;
	struct sgic_irq b;
	int f;

	if (sgic_state_irq(diff->b, a->intid, a->vcpu < 0 ? 0 : a->vcpu, &b))
		return;
	for (f = 0; f < NR_IRQ_FIELDS; f++)
		if (irq_field(a, f) != irq_field(&b, f))
			break;
	if (f == NR_IRQ_FIELDS)
		return;
	if (diff->json)
		diff_irq_json(diff, a, &b);
	else
		diff_irq_text(diff, a, &b);
}

static int compare_text(struct diff *diff, const struct sgic_state *a)
{
	struct sgic_error error;
	int ret = sgic_state_compare(a, diff->b, diff_register, diff, &error);

	if (ret < 0) {
		printf("the machines differ: %s\n", error.message);
		return EXIT_DIFFERENT;
	}
	if (!ret)
		return EXIT_SAME;
	diff->count = 0;
	each_irq(a, diff_irq, diff);
	return EXIT_DIFFERENT;
}

static int compare_json(struct diff *diff, const struct sgic_state *a)
{
	cJSON *root = cJSON_CreateObject(), *registers, *pair;
	struct sgic_error error;
	int ret;

	registers = diff->list = cJSON_CreateArray();
	ret = sgic_state_compare(a, diff->b, diff_register, diff, &error);
	cJSON_AddBoolToObject(root, "same", !ret);
	if (ret < 0) {
		cJSON_Delete(registers);
		cJSON_AddStringToObject(root, "message", error.message);
		pair = cJSON_AddObjectToObject(root, "machine");
		cJSON_AddItemToObject(pair, "a", machine_json(a));
		cJSON_AddItemToObject(pair, "b", machine_json(diff->b));
	} else {
		cJSON_AddItemToObject(root, "registers", registers);
		diff->list = cJSON_AddArrayToObject(root, "interrupts");
		each_irq(a, diff_irq, diff);
	}
	if (json_print(root))
		return EXIT_TROUBLE;
	return ret ? EXIT_DIFFERENT : EXIT_SAME;
}

int cmd_diff(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	struct sgic_state *a = NULL, *b = NULL;
	struct diff diff = { .json = false };
	int opt, ret = EXIT_TROUBLE;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			diff.json = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_SAME;
		default:
			usage(stderr);
			return EXIT_TROUBLE;
		}
	}
	if (optind != argc - 2) {
		fprintf(stderr,
			"swiftgic: diff: two files are needed; try --help\n");
		return EXIT_TROUBLE;
	}
	if (!strcmp(argv[optind], "-") && !strcmp(argv[optind + 1], "-")) {
		fprintf(stderr,
			"swiftgic: diff: standard input cannot be both; try --help\n");
		return EXIT_TROUBLE;
	}

	a = snapshot_load(argv[optind]);
	b = a ? snapshot_load(argv[optind + 1]) : NULL;
	diff.b = b;
	if (a && b)
		ret = diff.json ? compare_json(&diff, a)
				: compare_text(&diff, a);
	sgic_state_free(b);
	sgic_state_free(a);
	/* what nobody could read is trouble, too */
	if (fflush(stdout) || ferror(stdout))
		ret = EXIT_TROUBLE;
	return ret;
}
