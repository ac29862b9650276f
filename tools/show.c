// SPDX-License-Identifier: MIT
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"
#include "swiftgic.h"

#define ALL -1L

struct show {
	const char *path;
	const struct sgic_state *state;
	struct sgic_machine machine;
	long vcpu; /* or ALL */
	long intid;
	bool all;
	bool json;
	cJSON *list;
	size_t left_out;
};

static void usage(FILE *f)
{
	fprintf(f,
		"usage: swiftgic show [OPTION...] FILE\n"
		"\n"
		"Print a snapshot: the machine, its ITSs, its vCPUs, and the interrupts that are\n"
		"pending or active or, of the SPIs, enabled. FILE is - for standard input.\n"
		"\n"
		"  --vcpu N  only vCPU N: its registers and its private interrupts\n"
		"  --irq N   only interrupt N: of each vCPU, if it is private\n"
		"  --all     all interrupts\n"
		"  --json    everything as JSON: machine, registers, interrupts; with --vcpu or\n"
		"            --irq, what is of that one\n"
		"\n"
		"latched: the interrupt's pending latch is set; line: its line is high. A\n"
		"level-triggered interrupt is pending if it has either.\n"
		"\n"
		"exit status: 0, 1 the snapshot cannot be read, 2 wrong usage\n");
}

/* 0 if the machine has none of that name */
static uint64_t __attribute__((format(printf, 2, 3)))
register_value(const struct show *show, const char *fmt, ...)
{
	struct sgic_value value;
	char name[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	return sgic_state_find(show->state, name, &value) ? 0 : value.val;
}

/* Which registers and interrupts are asked for */

static bool wants_register(const struct show *show,
			   const struct sgic_value *value)
{
	return show->intid == ALL &&
	       (show->vcpu == ALL || value->vcpu == show->vcpu);
}

static bool wants_irq(const struct show *show, const struct sgic_irq *irq)
{
	return (show->intid == ALL || irq->intid == show->intid) &&
	       (show->vcpu == ALL || irq->vcpu == show->vcpu ||
		(irq->vcpu < 0 && show->intid != ALL));
}

/* JSON */

static void add_register(struct show *show, const struct sgic_value *value)
{
	cJSON *obj = register_json_identity(value);
	char buf[HEX_SIZE];

	cJSON_AddStringToObject(obj, "value", hex_value(value, buf));
	cJSON_AddItemToArray(show->list, obj);
}

static void add_irq(const struct sgic_irq *irq, void *data)
{
	struct show *show = data;
	cJSON *obj;

	if (!wants_irq(show, irq))
		return;
	obj = irq_json_identity(irq);
	for (int f = 0; f < NR_IRQ_FIELDS; f++)
		cJSON_AddItemToObject(obj, irq_field_names[f],
				      irq_json(irq, f));
	cJSON_AddItemToArray(show->list, obj);
}

static int print_json(struct show *show)
{
	cJSON *root = cJSON_CreateObject();
	struct sgic_value value;

	cJSON_AddItemToObject(root, "machine", machine_json(show->state));
	show->list = cJSON_AddArrayToObject(root, "registers");
	for (size_t i = 0; !sgic_state_value(show->state, i, &value); i++)
		if (wants_register(show, &value))
			add_register(show, &value);
	show->list = cJSON_AddArrayToObject(root, "interrupts");
	each_irq(show->state, add_irq, show);
	return json_print(root);
}

/* Text */

static void print_heading(const char *line)
{
	printf("\n%s%s%s\n", colour(BOLD), line, colour(PLAIN));
}

static const char *on_off(uint64_t val)
{
	return val & 1 ? "on" : "off";
}

static void print_machine(const struct show *show)
{
	const struct sgic_machine *m = &show->machine;
	uint32_t ctlr = register_value(show, "GICD_CTLR");

	printf("%u vCPU%s, %u interrupts, %u ITS%s, %u priority bits%s",
	       m->nr_vcpus, m->nr_vcpus == 1 ? "" : "s", m->nr_irqs, m->nr_its,
	       m->nr_its == 1 ? "" : "s", m->pri_bits, m->lpis ? ", LPIs" : "");
	if (m->el2)
		printf(", EL2 with %u list register%s", m->nr_lrs,
		       m->nr_lrs == 1 ? "" : "s");
	/* GICD_CTLR.EnableGrp0 and EnableGrp1 */
	printf("\nGICD_CTLR 0x%08x: group 0 %s, group 1 %s; GICD_IIDR 0x%08x\n",
	       ctlr, on_off(ctlr), on_off(ctlr >> 1),
	       (uint32_t)register_value(show, "GICD_IIDR"));
}

static void print_its(const struct show *show)
{
	if (!show->machine.nr_its)
		return;
	print_heading(
		"ITS enabled GITS_CBASER        GITS_CREADR GITS_CWRITER");
	for (uint32_t i = 0; i < show->machine.nr_its; i++)
		printf("%3u %-7s 0x%016" PRIx64 " 0x%-9" PRIx64 " 0x%" PRIx64
		       "\n",
		       i, on_off(register_value(show, "GITS_CTLR (ITS %u)", i)),
		       register_value(show, "GITS_CBASER (ITS %u)", i),
		       register_value(show, "GITS_CREADR (ITS %u)", i),
		       register_value(show, "GITS_CWRITER (ITS %u)", i));
}

static bool has_active_priorities(const struct show *show, uint32_t vcpu)
{
	for (int n = 0; n < 1 << (show->machine.pri_bits - 5); n++)
		if (register_value(show, "ICC_AP0R%d_EL1 (vCPU %u)", n, vcpu) ||
		    register_value(show, "ICC_AP1R%d_EL1 (vCPU %u)", n, vcpu))
			return true;
	return false;
}

static bool is_pending(const struct sgic_irq *irq)
{
	return irq->latched || (irq->line && !irq->edge);
}

static unsigned int pending_irqs(const struct show *show, uint32_t vcpu)
{
	struct sgic_irq irq;
	unsigned int n = 0;

	for (uint32_t i = 0; i < 32; i++)
		if (!sgic_state_irq(show->state, i, vcpu, &irq))
			n += is_pending(&irq);
	return n;
}

static void print_vcpus(const struct show *show)
{
	char buf[AFFINITY_SIZE];

	print_heading(
		" vCPU affinity        PMR  group0 group1 LPIs pending active");
	for (uint32_t v = 0; v < show->machine.nr_vcpus; v++) {
		if (show->vcpu != ALL && v != show->vcpu)
			continue;
		printf("%5u %-15s 0x%02x", v,
		       affinity(sgic_state_mpidr(show->state, v), buf),
		       (uint8_t)register_value(show, "ICC_PMR_EL1 (vCPU %u)",
					       v));
		printf(" %-6s", on_off(register_value(
					show, "ICC_IGRPEN0_EL1 (vCPU %u)", v)));
		printf(" %-6s", on_off(register_value(
					show, "ICC_IGRPEN1_EL1 (vCPU %u)", v)));
		/* GICR_CTLR.EnableLPIs */
		printf(" %-4s %7u %s\n",
		       show->machine.lpis
			       ? on_off(register_value(
					 show, "GICR_CTLR (vCPU %u)", v))
			       : "-",
		       pending_irqs(show, v),
		       has_active_priorities(show, v) ? "yes" : "-");
	}
}

static void print_registers(const struct show *show)
{
	struct sgic_value value;
	char buf[HEX_SIZE];

	print_heading("register                       value");
	for (size_t i = 0; !sgic_state_value(show->state, i, &value); i++)
		if (wants_register(show, &value))
			printf("%-30s %s\n", value.name,
			       hex_value(&value, buf));
}

static void print_irq(const struct sgic_irq *irq, void *data)
{
	static const int widths[NR_IRQ_FIELDS] = {
		[IRQ_PRIORITY] = 8, [IRQ_GROUP] = 5,   [IRQ_TRIGGER] = 7,
		[IRQ_ENABLED] = 7,  [IRQ_LATCHED] = 7, [IRQ_LINE] = 4,
		[IRQ_ACTIVE] = 6,
	};
	struct show *show = data;
	bool busy = is_pending(irq) || irq->active ||
		    (irq->vcpu < 0 && irq->enabled);
	char buf[IRQ_TEXT_SIZE], whose[12] = "-";
	const char *text;

	if (!wants_irq(show, irq))
		return;
	if (!busy && !show->all) {
		show->left_out++;
		return;
	}
	if (irq->vcpu >= 0)
		snprintf(whose, sizeof(whose), "%d", irq->vcpu);
	printf("%5u %s %4s", irq->intid,
	       irq->intid < 16	 ? "SGI"
	       : irq->intid < 32 ? "PPI"
				 : "SPI",
	       whose);
	for (int f = 0; f < NR_IRQ_FIELDS; f++) {
		text = irq_text(irq, f, buf);
		/* what is, is easier to see if what is not is not a word */
		printf(" %-*s", widths[f], strcmp(text, "no") ? text : "-");
	}
	printf("\n");
}

static int print_text(struct show *show)
{
	print_machine(show);
	if (show->intid == ALL) {
		if (show->vcpu == ALL)
			print_its(show);
		print_vcpus(show);
		if (show->vcpu != ALL)
			print_registers(show);
	}
	/* one interrupt, or one vCPU's: whatever they are like */
	if (show->intid != ALL || show->vcpu != ALL)
		show->all = true;
	print_heading(
		"INTID     vCPU priority group trigger enabled latched line active target");
	each_irq(show->state, print_irq, show);
	if (show->left_out)
		printf("(%zu more are idle; --all prints them)\n",
		       show->left_out);
	return EXIT_OK;
}

/* The command */

static bool parse_number(long *n, const char *arg)
{
	char *end;

	*n = strtol(arg, &end, 10);
	return *arg >= '0' && *arg <= '9' && !*end && *n <= 65535;
}

static int wrong(const char *what, const char *arg)
{
	fprintf(stderr, "swiftgic: show: %s '%s'; try --help\n", what, arg);
	return EXIT_USAGE;
}

/* Returns -1 to go on, or the exit status. */
static int parse_options(struct show *show, int argc, char **argv)
{
	static const struct option options[] = {
		{ "vcpu", required_argument, NULL, 'v' },
		{ "irq", required_argument, NULL, 'i' },
		{ "all", no_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'v':
			if (!parse_number(&show->vcpu, optarg))
				return wrong("no vCPU", optarg);
			break;
		case 'i':
			if (!parse_number(&show->intid, optarg))
				return wrong("no interrupt", optarg);
			break;
		case 'a':
			show->all = true;
			break;
		case 'j':
			show->json = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind != argc - 1)
		return optind < argc ? wrong("unexpected", argv[optind + 1])
				     : wrong("a file is missing after", "show");
	show->path = argv[optind];
	return -1;
}

int cmd_show(int argc, char **argv)
{
	struct show show = { .vcpu = ALL, .intid = ALL };
	struct sgic_state *state;
	int ret = parse_options(&show, argc, argv);

	if (ret >= 0)
		return ret;
	state = snapshot_load(show.path);
	if (!state)
		return EXIT_FAILED;
	show.state = state;
	sgic_state_machine(state, &show.machine);
	ret = EXIT_FAILED;
	if (show.vcpu != ALL && show.vcpu >= show.machine.nr_vcpus)
		fprintf(stderr,
			"swiftgic: %s: no vCPU %ld: the machine has %u\n",
			show.path, show.vcpu, show.machine.nr_vcpus);
	else if (show.intid != ALL && show.intid >= show.machine.nr_irqs)
		fprintf(stderr,
			"swiftgic: %s: no interrupt %ld: the machine has %u\n",
			show.path, show.intid, show.machine.nr_irqs);
	else
		ret = show.json ? print_json(&show) : print_text(&show);
	sgic_state_free(state);
	return ret;
}
