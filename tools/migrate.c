// SPDX-License-Identifier: MIT
#define _GNU_SOURCE /* memmem() */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "migrate_results.h"
#include "options.h"
#include "qemu.h"
#include "swiftgic.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define MAX_VCPUS    512
#define NR_QUEUES    8
#define BOOT_SECONDS 3600

struct migrate {
	const char *binaries[NR_MIGRATE_VARIANTS];
	int kernel;
	uint32_t vcpus;
	uint32_t online;
	uint32_t runs;
	const char *qemu;
	const char *json;
	bool table;
};

static void usage(FILE *f)
{
	fprintf(f,
		"usage: swiftgic migrate [OPTION...]\n"
		"       swiftgic migrate --table [--json FILE] FILE...\n"
		"\n"
		"Boot a guest under load and migrate it back and forth between stock and patched\n"
		"QEMUs, in the lab. What a migration costs is from QEMU itself: query-migrate,\n"
		"and trace events that stock QEMU has; what the VGIC's registers take of it is\n"
		"timed in front of ioctl(), by what the lab links into both.\n"
		"\n"
		"  --stock FILE    the stock QEMU (/bin/qemu-stock)\n"
		"  --patched FILE  the patched one (/bin/qemu-patched)\n"
		"  --kernel NAME   what the results say of this kernel: stock or patched\n"
		"                  (stock)\n"
		"  --version NAME  what they say of the QEMUs\n"
		"  --vcpus N       of the guest (160)\n"
		"  --online N      how many of them it brings online (all)\n"
		"  --runs N        migrations of each pair that is measured (3)\n"
		"  --json FILE     write the results\n"
		"  --table         no measurement: the table and the verdict on the targets\n"
		"                  from results files, merged; with --json, write the merge\n");
}

static int wrong(const char *what, const char *arg)
{
	fprintf(stderr, "swiftgic: migrate: %s '%s'; try --help\n", what, arg);
	return EXIT_USAGE;
}

static bool parse_count(uint32_t *count, const char *arg, unsigned long max)
{
	return parse_whole(arg, max, count) && *count;
}

static int parse_options(struct migrate *migrate, int argc, char **argv)
{
	static const struct option options[] = {
		{ "stock", required_argument, NULL, 's' },
		{ "patched", required_argument, NULL, 'p' },
		{ "kernel", required_argument, NULL, 'k' },
		{ "version", required_argument, NULL, 'V' },
		{ "vcpus", required_argument, NULL, 'v' },
		{ "online", required_argument, NULL, 'o' },
		{ "runs", required_argument, NULL, 'r' },
		{ "json", required_argument, NULL, 'j' },
		{ "table", no_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{}
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 's':
			migrate->binaries[MIGRATE_STOCK] = optarg;
			break;
		case 'p':
			migrate->binaries[MIGRATE_PATCHED] = optarg;
			break;
		case 'k':
			migrate->kernel = migrate_variant(optarg);
			if (migrate->kernel < 0)
				return wrong("no kernel", optarg);
			break;
		case 'V':
			migrate->qemu = optarg;
			break;
		case 'v':
			if (!parse_count(&migrate->vcpus, optarg, MAX_VCPUS))
				return wrong("no number of vCPUs", optarg);
			break;
		case 'o':
			if (!parse_count(&migrate->online, optarg, MAX_VCPUS))
				return wrong("no number of vCPUs", optarg);
			break;
		case 'r':
			if (!parse_count(&migrate->runs, optarg, 100))
				return wrong("no number of runs", optarg);
			break;
		case 'j':
			migrate->json = optarg;
			break;
		case 't':
			migrate->table = true;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (!migrate->online || migrate->online > migrate->vcpus)
		migrate->online = migrate->vcpus;
	if (!migrate->table && optind < argc)
		return wrong("unexpected", argv[optind]);
	if (migrate->table && optind == argc)
		return wrong("no results file after", "--table");
	return -1;
}

/*
 * What the trace says. A line is "THREAD@SECONDS:EVENT ARGUMENTS"; QEMU has
 * these events since 8.2, and the figures of a device's state are its own. The
 * event of the VGIC's registers is from lab/qemu-ioctl.c.
 */

static const char *const traced[] = {
	"vmstate_downtime_save",
	"vmstate_downtime_load",
	"vmstate_downtime_checkpoint",
};

static void add_to(double *ms, double more)
{
	*ms = (*ms == MIGRATE_NONE ? 0 : *ms) + more;
}

/* Of the device states: "type=iterable idstr=ram instance_id=0 downtime=USECS" */
static void note_state(struct migrate_run *run, const char *line, bool load)
{
	char type[32], name[128];
	long long usecs;
	double ms;

	if (sscanf(line, "type=%31s idstr=%127s instance_id=%*d downtime=%lld",
		   type, name, &usecs) != 3)
		return;
	ms = usecs / 1000.0;
	if (load) {
		add_to(&run->ms[MIGRATE_DESTINATION], ms);
		if (!strncmp(name, "cpu", 3))
			add_to(&run->ms[MIGRATE_DESTINATION_CPUS], ms);
		return;
	}
	if (!strncmp(name, "cpu", 3))
		add_to(&run->ms[MIGRATE_SOURCE_CPUS], ms);
	else if (!strcmp(name, "ram"))
		add_to(&run->ms[MIGRATE_SOURCE_RAM], ms);
}

/* "THREAD@SECONDS:EVENT ARGUMENTS": the arguments, or NULL */
static char *parse_event(char *line, double *seconds, char event[64])
{
	int len;

	if (sscanf(line, "%*d@%lf:%63s %n", seconds, event, &len) != 2)
		return NULL;
	return line + len;
}

/*
 * Of the VGIC's registers: "direction=put calls=2 us=4400". Before the migration
 * began, a source has been a destination, and a destination has been reset.
 */
static void note_registers(struct migrate_run *run, const char *line,
			   bool source, bool begun)
{
	char direction[8];
	long long usecs;
	double ms;

	if (sscanf(line, "direction=%7s calls=%*u us=%lld", direction,
		   &usecs) != 2)
		return;
	ms = usecs / 1000.0;
	if (source && begun && !strcmp(direction, "get"))
		add_to(&run->ms[MIGRATE_SOURCE_GET], ms);
	else if (!source && !strcmp(direction, "put"))
		add_to(&run->ms[begun ? MIGRATE_DESTINATION_PUT
				      : MIGRATE_BOOT_PUT],
		       ms);
}

/* The lines of the registers may come late, but their time is right. */
static void read_registers(struct migrate_run *run, char *log, bool source,
			   double begin)
{
	char event[64], *line, *save = NULL, *args;
	double seconds;

	for (line = strtok_r(log, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		args = parse_event(line, &seconds, event);
		if (args && !strcmp(event, "lab_vgic_registers"))
			note_registers(run, args, source, seconds > begin);
	}
}

static void read_trace(struct migrate_run *run, const struct qemu *qemu,
		       bool source)
{
	char *log = qemu_log(qemu), *copy = log ? strdup(log) : NULL;
	char event[64], *line, *save = NULL, *args;
	double seconds, begin = 0;

	for (line = strtok_r(copy ? copy : "", "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		args = parse_event(line, &seconds, event);
		if (!args)
			continue;
		if (!strcmp(event, "vmstate_downtime_checkpoint")) {
			if (source && !strcmp(args, "src-downtime-start"))
				begin = seconds;
		} else if (!strcmp(event, "vmstate_downtime_save") && source) {
			note_state(run, args, false);
			run->ms[MIGRATE_SOURCE] = 1000 * (seconds - begin);
		} else if (!strcmp(event, "vmstate_downtime_load") && !source) {
			note_state(run, args, true);
			/* The first is of the memory. */
			if (!begin)
				begin = seconds;
		}
	}
	if (begin && log)
		read_registers(run, log, source, begin);
	free(copy);
	free(log);
}

/* The migrations */

static int step_failed(const char *what, const struct qemu *qemu)
{
	return failed(EXIT_FAILED, "migrate: %s: %s", what, qemu->err);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static struct qemu *start(const struct migrate *migrate,
			  enum migrate_variant variant, const char *incoming)
{
	char smp[16], append[64];
	struct qemu_config config = {
		.binary = migrate->binaries[variant],
		.smp = smp,
		.mem = "512M",
		.queues = NR_QUEUES,
		.append = append,
		.incoming = incoming,
		.args = { "-msg", "timestamp=on" },
	};
	struct qemu *qemu = qemu_new();
	size_t i;

	if (!qemu)
		return NULL;
	snprintf(smp, sizeof(smp), "%u", migrate->vcpus);
	snprintf(append, sizeof(append), "maxcpus=1 online=%u period=500",
		 migrate->online);
	for (i = 0; i < ARRAY_SIZE(traced); i++) {
		config.args[2 + 2 * i] = "-trace";
		config.args[3 + 2 * i] = traced[i];
	}
	if (!qemu_start(qemu, &config))
		return qemu;
	step_failed("starting QEMU", qemu);
	qemu_free(qemu);
	return NULL;
}

/* Moves the guest on, and notes what that cost. */
static int move(const struct migrate *migrate, struct qemu **guest,
		struct migrate_run *run)
{
	struct qemu *from = *guest, *to;
	double begin = now_s();
	cJSON *ret;

	/* The load would only make the start of the other QEMU take longer. */
	if (qemu_command(from, "stop", NULL, NULL))
		return step_failed("pausing", from);
	to = start(migrate, run->destination, "");
	if (!to)
		return EXIT_FAILED;
	if (qemu_command(from, "cont", NULL, NULL) || qemu_check(from)) {
		qemu_free(to);
		return step_failed("resuming", from);
	}
	if (qemu_migrate(from, to, "") ||
	    qemu_command(from, "query-migrate", NULL, &ret)) {
		qemu_free(to);
		return step_failed("migrating", from);
	}
	run->ms[MIGRATE_DOWNTIME] = cJSON_GetNumberValue(
		cJSON_GetObjectItemCaseSensitive(ret, "downtime"));
	cJSON_Delete(ret);
	*guest = to;
	if (qemu_wait_status(to, "running", 600)) {
		qemu_free(from);
		return step_failed("running on", to);
	}
	read_trace(run, from, true);
	read_trace(run, to, false);
	qemu_free(from);
	run->guest_ok = !qemu_check(to);
	if (!run->guest_ok)
		step_failed("the guest", to);
	fprintf(stderr,
		"%s kernel, %s to %s QEMU: downtime %.0f ms, get %.2f ms, "
		"put %.2f ms, guest %s (%.0f s)\n",
		migrate_variant_names[run->kernel],
		migrate_variant_names[run->source],
		migrate_variant_names[run->destination],
		run->ms[MIGRATE_DOWNTIME], run->ms[MIGRATE_SOURCE_GET],
		run->ms[MIGRATE_DESTINATION_PUT],
		run->guest_ok ? "well" : "NOT WELL", now_s() - begin);
	return EXIT_OK;
}

/*
 * Stock to stock, and patched to patched, by turns; in between the guest goes
 * over to the other kind.
 */
static int move_all(const struct migrate *migrate, struct qemu **guest,
		    struct migrate_results *results)
{
	enum migrate_variant is = MIGRATE_STOCK, to;
	struct migrate_run *run;
	unsigned int i;
	int ret;

	for (i = 0; i < 4 * migrate->runs - 1; i++) {
		/* 0, 0, 1, 1, 0, 0, ... from the second on */
		to = i % 4 == 1 || i % 4 == 2 ? MIGRATE_PATCHED : MIGRATE_STOCK;
		run = migrate_add_run(results);
		if (!run)
			return EXIT_FAILED;
		run->kernel = migrate->kernel;
		run->source = is;
		run->destination = to;
		ret = move(migrate, guest, run);
		if (ret)
			return ret;
		is = to;
	}
	return EXIT_OK;
}

static int measure(const struct migrate *migrate,
		   struct migrate_results *results)
{
	struct utsname uts;
	double begin = now_s();
	struct qemu *guest;
	int ret;

	uname(&uts);
	results->vcpus = migrate->vcpus;
	results->online = migrate->online;
	snprintf(results->workload, sizeof(results->workload),
		 "redis-benchmark SET");
	snprintf(results->kernel, sizeof(results->kernel), "%s", uts.release);
	snprintf(results->qemu, sizeof(results->qemu), "%s", migrate->qemu);

	/* For lab/qemu-ioctl.c */
	setenv("LAB_VGIC_REGISTERS", "1", 1);
	guest = start(migrate, MIGRATE_STOCK, NULL);
	if (!guest)
		return EXIT_FAILED;
	if (qemu_wait_guest(guest, BOOT_SECONDS) || qemu_check(guest)) {
		ret = step_failed("booting the guest", guest);
	} else {
		fprintf(stderr, "the guest is up (%.0f s)\n", now_s() - begin);
		ret = move_all(migrate, &guest, results);
	}
	qemu_free(guest);
	return ret;
}

int cmd_migrate(int argc, char **argv)
{
	struct migrate migrate = {
		.binaries = { "/bin/qemu-stock", "/bin/qemu-patched" },
		.vcpus = 160,
		.runs = 3,
		.qemu = "",
	};
	struct migrate_results results = { 0 };
	int ret;
	int i;

	ret = parse_options(&migrate, argc, argv);
	if (ret >= 0)
		return ret;

	if (migrate.table) {
		for (i = optind, ret = EXIT_OK; !ret && i < argc; i++)
			if (migrate_load(&results, argv[i]))
				ret = EXIT_FAILED;
		if (!ret)
			migrate_print_table(&results, stdout);
	} else {
		ret = measure(&migrate, &results);
	}
	if (!ret && migrate.json && migrate_save(&results, migrate.json))
		ret = EXIT_FAILED;
	if (!ret && migrate.table && migrate_print_verdict(&results, stdout))
		ret = EXIT_FAILED;
	migrate_free(&results);
	return ret;
}
