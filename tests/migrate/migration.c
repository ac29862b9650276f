// SPDX-License-Identifier: MIT
/*
 * Live migration of a Linux guest between QEMUs with and without batches:
 *
 *   migration [--quick | --neighbours] [--seed N] [--need-batch]
 *
 * The guest boots once, and goes from one QEMU to the next. With --quick, which
 * is for a kernel without the batch call, too, only pairs of QEMUs are tested.
 * With --neighbours, it goes round QEMUs of three versions.
 */
#define _GNU_SOURCE /* memmem() */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "harness.h"
#include "json.h"
#include "qemu.h"

#define STOCK	"/bin/qemu-stock"
#define PATCHED "/bin/qemu-patched"

/* The machine that the oldest of the neighbours has, and all others */
#define OLDEST_MACHINE "virt-7.2"

#define NR_VCPUS     8
#define BOOT_SECONDS 600
#define STREAM	     "/tmp/stream"
#define STREAM2	     "/tmp/stream2"

/* What the trace event says of one transfer */
#define TRANSFER "kvm_arm_gicv3_transfer "

/* Where the guest is; NULL before it has booted, or after it was lost */
static struct qemu *guest;
static bool guest_is_patched;
static const char *guest_binary; /* of the neighbours */
static bool has_batch;

#define REQUIRE_QEMU(qemu, call) REQUIRE(!(call), "%s: %s", #call, (qemu)->err)

static struct qemu_config base = {
	.smp = "8",
	.mem = "144M",
	.queues = NR_VCPUS,
	.append = "period=200",
};

/* QEMUs that a test need not end */
static struct qemu *started[8];

static void end_qemu(struct qemu *qemu)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(started); i++)
		if (started[i] == qemu)
			started[i] = NULL;
	qemu_free(qemu);
}

/* All but the guest's */
static void end_qemus(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(started); i++)
		if (started[i] && started[i] != guest)
			end_qemu(started[i]);
}

static bool is_patched(const char *binary)
{
	return strstr(binary, "-patched");
}

/* @args are those of patched QEMUs, after the trace event. */
static struct qemu *start(const struct qemu_config *config, const char *binary,
			  const char *arg)
{
	struct qemu_config own = *config;
	struct qemu *qemu = qemu_new();
	size_t i;

	for (i = 0; i < ARRAY_SIZE(started) - 1 && started[i]; i++)
		;
	REQUIRE(qemu, "no memory");
	started[i] = qemu;
	own.binary = binary;
	if (is_patched(binary)) {
		own.args[0] = "-trace";
		own.args[1] = "kvm_arm_gicv3_transfer";
		if (arg) {
			own.args[2] = "-global";
			own.args[3] = arg;
		}
	}
	REQUIRE_QEMU(qemu, qemu_start(qemu, &own));
	return qemu;
}

static struct qemu *start_incoming(const char *binary, const char *arg,
				   const char *uri)
{
	struct qemu_config config = base;

	config.incoming = uri;
	return start(&config, binary, arg);
}

/*
 * Fails the test if the QEMU's log has something that it should not. A sibling's
 * error is what half-way has made of an earlier migration.
 */
static void check_log(const struct qemu *qemu)
{
	char *log = qemu_log(qemu), *line, *save = NULL;

	for (line = strtok_r(log ? log : "", "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		CHECK(strstr(line, ": warning: ") ||
			      strstr(line, ": Sibling indicated error ") ||
			      !strncmp(line, TRANSFER, strlen(TRANSFER)),
		      "QEMU's log: %s", line);
	free(log);
}

/* Does the log say that the first transfer in @direction was in batches? */
static void check_calls(const struct qemu *qemu, const char *direction,
			bool batched)
{
	unsigned int entries = 0, calls = 0;
	char *log = qemu_log(qemu), *at;
	char what[64];

	snprintf(what, sizeof(what), TRANSFER "%s: ", direction);
	at = log ? strstr(log, what) : NULL;
	REQUIRE(at && sscanf(at + strlen(what), "%u entries in %u calls",
			     &entries, &calls) == 2,
		"no %s in QEMU's log", direction);
	CHECK(entries && calls == (batched ? 1 : entries),
	      "%s: %u calls for %u entries", direction, calls, entries);
	free(log);
}

static void boot(const char *binary)
{
	struct qemu *qemu = start(&base, binary, NULL);

	REQUIRE_QEMU(qemu, qemu_wait_guest(qemu, BOOT_SECONDS));
	REQUIRE_QEMU(qemu, qemu_check(qemu));
	if (is_patched(binary))
		check_calls(qemu, "put", has_batch);
	check_log(qemu);
	guest = qemu;
	guest_is_patched = is_patched(binary);
}

static void boot_guest(void)
{
	boot(PATCHED);
}

/* The guest's hash of the distributor: what any QEMU moves, and the rest */
static void guest_gic(struct qemu *qemu, char gic[2][20])
{
	char answer[64];

	REQUIRE_QEMU(qemu, qemu_guest(qemu, "gic", answer, sizeof(answer)));
	REQUIRE(sscanf(answer, "%19s %19s", gic[0], gic[1]) == 2, "gic: %s",
		answer);
}

static void need_guest(void)
{
	if (!guest)
		test_skip("there is no guest");
}

/* Move the guest to a QEMU that waits for it; it becomes the guest's. */
static void move_to(struct qemu *to, bool patched)
{
	struct qemu *from = guest;
	char before[2][20], after[2][20];

	guest_gic(from, before);
	REQUIRE_QEMU(from, qemu_migrate(from, to, ""));
	guest = to;
	REQUIRE_QEMU(to, qemu_wait_status(to, "running", 60));
	check_log(from);
	REQUIRE_QEMU(to, qemu_check(to));
	check_log(to);
	guest_gic(to, after);
	CHECK(!strcmp(before[0], after[0]), "the distributor: %s, now %s",
	      before[0], after[0]);
	if (guest_is_patched && patched)
		CHECK(!strcmp(before[1], after[1]), "GICD_IROUTER: %s, now %s",
		      before[1], after[1]);
	guest_is_patched = patched;
}

static void move(const char *binary, const char *arg, bool batched)
{
	bool patched = is_patched(binary);
	bool was_patched = guest_is_patched;
	struct qemu *from = guest, *to;

	need_guest();
	to = start_incoming(binary, arg, "");
	move_to(to, patched);
	if (patched)
		check_calls(to, "put", batched);
	if (was_patched)
		check_calls(from, "get", has_batch);
}

static void to_patched(void)
{
	move(PATCHED, NULL, has_batch);
}

static void to_stock(void)
{
	move(STOCK, NULL, false);
}

static void verify_batch(void)
{
	struct qemu *from;
	char *log, *second;

	move(PATCHED, "kvm-arm-gicv3.verify-batch=on", true);
	from = guest;
	move(PATCHED, NULL, true);
	log = qemu_log(from);
	second = log ? strstr(log, TRANSFER "get: ") : NULL;
	second = second ? strstr(second + 1, TRANSFER "get: ") : NULL;
	CHECK(second, "the save was not read again");
	free(log);
}

/* Its get is checked by hand: it is one by one, of a QEMU that could batch. */
static void batch_off(void)
{
	struct qemu *from;

	move(PATCHED, "kvm-arm-gicv3.batch=off", false);
	from = guest;
	move_to(start_incoming(PATCHED, NULL, ""), true);
	check_calls(from, "get", false);
}

/* To files and back */

static void pause_guest(void)
{
	need_guest();
	REQUIRE_QEMU(guest, qemu_command(guest, "stop", NULL, NULL));
}

static void let_run(struct qemu *qemu)
{
	REQUIRE_QEMU(qemu, qemu_command(qemu, "cont", NULL, NULL));
	REQUIRE_QEMU(qemu, qemu_wait_status(qemu, "running", 60));
}

static struct qemu *load(const char *binary, const char *path)
{
	char uri[64];
	struct qemu *qemu;

	snprintf(uri, sizeof(uri), "exec:%s -", path);
	qemu = start_incoming(binary, NULL, uri);
	REQUIRE_QEMU(qemu, qemu_wait_status(qemu, "paused", 120));
	return qemu;
}

static void file_and_back(void)
{
	struct qemu *qemu;

	pause_guest();
	REQUIRE_QEMU(guest, qemu_save(guest, STREAM));
	REQUIRE_QEMU(guest, qemu_wait_status(guest, "postmigrate", 60));
	check_log(guest);
	end_qemu(guest);
	guest = NULL;

	qemu = load(PATCHED, STREAM);
	let_run(qemu);
	REQUIRE_QEMU(qemu, qemu_check(qemu));
	check_log(qemu);
	guest = qemu;
}

/* The section of the GICv3 in a stream; *@len bytes at the returned offset */
static size_t gic_section(const uint8_t *stream, size_t bytes, size_t *len)
{
	static const uint8_t name[] =
		"\x09"
		"arm_gicv3";
	uint8_t footer[5] = { 0x7e };
	const uint8_t *at, *end;

	at = memmem(stream, bytes, name, sizeof(name) - 1);
	REQUIRE(at && at - stream >= 5, "no GICv3 in the stream");
	memcpy(footer + 1, at - 4, 4);
	end = memmem(at, stream + bytes - at, footer, sizeof(footer));
	REQUIRE(end, "the section of the GICv3 does not end");
	*len = end - at;
	return at - stream;
}

static uint8_t *read_stream(const char *path, size_t *bytes)
{
	FILE *f = fopen(path, "r");
	uint8_t *stream;

	REQUIRE(f && !fseek(f, 0, SEEK_END), "%s: %s", path, strerror(errno));
	*bytes = ftell(f);
	rewind(f);
	stream = malloc(*bytes);
	REQUIRE(stream && fread(stream, 1, *bytes, f) == *bytes, "%s: %s", path,
		strerror(errno));
	fclose(f);
	return stream;
}

/* Have two streams the same state of the GICv3? */
static void check_same_gic(const char *path, const char *other)
{
	size_t bytes[2], len[2], at[2], i;
	uint8_t *stream[2];

	stream[0] = read_stream(path, &bytes[0]);
	stream[1] = read_stream(other, &bytes[1]);
	at[0] = gic_section(stream[0], bytes[0], &len[0]);
	at[1] = gic_section(stream[1], bytes[1], &len[1]);
	CHECK(len[0] == len[1], "%zu bytes of GICv3, and %zu", len[0], len[1]);
	for (i = 0; i < len[0] && i < len[1]; i++)
		if (stream[0][at[0] + i] != stream[1][at[1] + i])
			break;
	CHECK(i == len[0], "byte %zu of the GICv3 differs: %#x, %#x", i,
	      stream[0][at[0] + i], stream[1][at[1] + i]);
	free(stream[0]);
	free(stream[1]);
}

static void configure(const char *config)
{
	char answer[32];

	REQUIRE_QEMU(guest, qemu_guest(guest, config, answer, sizeof(answer)));
}

/*
 * Case stale-or: the interrupt was an edge in a save before. The second save
 * on the same object is compared with that of one which has never saved.
 */
static void stale_or(void)
{
	struct qemu *fresh;
	char config[32];

	need_guest();
	configure("edge");
	pause_guest();
	REQUIRE_QEMU(guest, qemu_save(guest, STREAM));
	let_run(guest);
	configure("level");
	pause_guest();
	REQUIRE_QEMU(guest, qemu_save(guest, STREAM));

	fresh = load(PATCHED, STREAM);
	REQUIRE_QEMU(fresh, qemu_save(fresh, STREAM2));
	check_same_gic(STREAM, STREAM2);
	end_qemu(fresh);

	fresh = load(PATCHED, STREAM);
	let_run(fresh);
	end_qemu(guest);
	guest = fresh;
	REQUIRE_QEMU(guest, qemu_check(guest));
	REQUIRE_QEMU(guest,
		     qemu_guest(guest, "config", config, sizeof(config)));
	CHECK(!strcmp(config, "level"), "the guest made it a level, now: %s",
	      config);
}

/*
 * The section of the GICv3 after its name, as QEMU's vmstate_gicv3 lays it out;
 * offsets of a vCPU are those from its first byte on. The stream is big-endian.
 */
#define NAME_BYTES    10
#define DIST_OFFSET   8 /* after instance and version */
#define BITMAP_OFFSET (DIST_OFFSET + 3 * 4)
#define BITMAP_BYTES  (32 * 4)
#define NR_BITMAPS    7
#define PRIO_OFFSET   (BITMAP_OFFSET + NR_BITMAPS * BITMAP_BYTES)
#define CPU_OFFSET    (PRIO_OFFSET + 1020 + 1020 * 8 + 64 * 4)
#define CPU_BYTES     272
#define CPU_LEVEL     0
#define CPU_IGROUPR0  36
#define CPU_IENABLER0 40
#define CPU_IPENDR0   44
#define CPU_IACTIVER0 48
#define CPU_EDGE      52
#define CPU_PRIO      64
#define CPU_CTLR      (96 + 8)
#define CPU_PMR	      (96 + 16)
#define CPU_BPR	      (CPU_PMR + 8)
#define CPU_APR	      (CPU_BPR + 24)

enum { GROUP, GRPMOD, ENABLED, PENDING, ACTIVE, LINE, EDGE };

static void half_way(void)
{
	struct qemu *to;
	char alter[64];
	char *log;

	need_guest();
	to = start_incoming(PATCHED, NULL, "");
	/* 8 bits of priority, where this host has 5 */
	snprintf(alter, sizeof(alter), " arm_gicv3 %d 3",
		 CPU_OFFSET + 3 * CPU_BYTES + CPU_CTLR + 6);
	CHECK(qemu_migrate(guest, to, alter),
	      "the migration of a bad register has succeeded");
	REQUIRE_QEMU(to, qemu_wait_exit(to, 60));
	CHECK(WIFEXITED(to->status) && WEXITSTATUS(to->status) == 1,
	      "the destination's status is %#x", to->status);
	log = qemu_log(to);
	CHECK(log && strstr(log,
			    "cannot restore ICC_CTLR_EL1 of vCPU 3: "
			    "Invalid argument"),
	      "the destination's log: %.400s", log);
	free(log);

	REQUIRE_QEMU(guest, qemu_wait_status(guest, "running", 60));
	REQUIRE_QEMU(guest, qemu_check(guest));
	/* And it can still be moved. */
	move(PATCHED, NULL, true);
}

/* Other machines */

static void without_its(void)
{
	struct qemu_config config = {
		.machine = "its=off",
		.smp = "2",
		.mem = "144M",
		.append = "period=200",
		.queues = 2,
	};
	struct qemu *from, *to;

	from = start(&config, PATCHED, NULL);
	config.incoming = "";
	to = start(&config, PATCHED, NULL);
	REQUIRE_QEMU(from, qemu_wait_guest(from, BOOT_SECONDS));
	REQUIRE_QEMU(from, qemu_check(from));
	REQUIRE_QEMU(from, qemu_migrate(from, to, ""));
	REQUIRE_QEMU(to, qemu_wait_status(to, "running", 60));
	REQUIRE_QEMU(to, qemu_check(to));
	check_log(from);
	check_log(to);
}

static void put32(uint8_t *at, uint32_t val)
{
	val = htobe32(val);
	memcpy(at, &val, sizeof(val));
}

static void put64(uint8_t *at, uint64_t val)
{
	val = htobe64(val);
	memcpy(at, &val, sizeof(val));
}

static void random_priorities(uint8_t *at, unsigned int n)
{
	for (; n; n--)
		*at++ = test_random() & 0xf8;
}

static void random_vcpu(uint8_t *vcpu)
{
	put32(vcpu + CPU_LEVEL, test_random() & 0xffff0000);
	put32(vcpu + CPU_IGROUPR0, test_random());
	put32(vcpu + CPU_IENABLER0, test_random());
	put32(vcpu + CPU_IPENDR0, test_random());
	put32(vcpu + CPU_IACTIVER0, test_random());
	put32(vcpu + CPU_EDGE, test_random() & 0xffff0000);
	random_priorities(vcpu + CPU_PRIO, 32);
	put64(vcpu + CPU_PMR, test_random() & 0xf8);
	put64(vcpu + CPU_BPR, 3 + test_random() % 5);
	put64(vcpu + CPU_BPR + 16, 3 + test_random() % 5);
	put64(vcpu + CPU_APR, test_random() & UINT32_MAX);
	put64(vcpu + CPU_APR + 64, test_random() & UINT32_MAX);
}

/* A random state of the GICv3, another one for each vCPU, into a stream */
static void randomise(const char *path, unsigned int nr_vcpus)
{
	size_t bytes, len;
	uint8_t *stream = read_stream(path, &bytes);
	uint8_t *gic = stream + gic_section(stream, bytes, &len) + NAME_BYTES;
	unsigned int i, bitmap;
	FILE *f;

	REQUIRE(len >= NAME_BYTES + CPU_OFFSET + nr_vcpus * CPU_BYTES,
		"the section of the GICv3 has %zu bytes", len);
	for (bitmap = 0; bitmap < NR_BITMAPS; bitmap++)
		for (i = 1; i < 288 / 32 && bitmap != GRPMOD; i++)
			put32(gic + BITMAP_OFFSET + bitmap * BITMAP_BYTES +
				      i * 4,
			      test_random());
	random_priorities(gic + PRIO_OFFSET + 32, 288 - 32);
	for (i = 0; i < nr_vcpus; i++)
		random_vcpu(gic + CPU_OFFSET + i * CPU_BYTES);
	f = fopen(path, "w");
	REQUIRE(f && fwrite(stream, 1, bytes, f) == bytes && !fclose(f),
		"%s: %s", path, strerror(errno));
	free(stream);
}

/* Through a QEMU of this kind, from file to file */
static void pass(const struct qemu_config *config, const char *binary,
		 const char *arg, const char *in, const char *out)
{
	struct qemu_config own = *config;
	struct qemu *qemu;
	char uri[64];

	snprintf(uri, sizeof(uri), "exec:%s -", in);
	own.incoming = uri;
	qemu = start(&own, binary, arg);
	/* As the source was: it has never run. */
	REQUIRE_QEMU(qemu, qemu_wait_status(qemu, "prelaunch", 120));
	REQUIRE_QEMU(qemu, qemu_save(qemu, out));
	check_log(qemu);
	end_qemu(qemu);
}

/*
 * A random state comes out of each kind of QEMU as it comes out of the others,
 * and once more the same.
 */
static void topology(const char *smp)
{
	const struct qemu_config config = {
		.smp = smp,
		.mem = "16M",
		.no_guest = true,
	};
	struct qemu *qemu = start(&config, PATCHED, NULL);

	REQUIRE_QEMU(qemu, qemu_save(qemu, STREAM));
	end_qemu(qemu);
	randomise(STREAM, atoi(smp));
	pass(&config, STOCK, NULL, STREAM, STREAM ".stock");
	pass(&config, PATCHED, "kvm-arm-gicv3.verify-batch=on", STREAM,
	     STREAM ".patched");
	check_same_gic(STREAM ".stock", STREAM ".patched");
	pass(&config, PATCHED, NULL, STREAM ".patched", STREAM ".again");
	check_same_gic(STREAM ".patched", STREAM ".again");
}

static void one_vcpu(void)
{
	topology("1");
}

static void three_vcpus(void)
{
	topology("3");
}

static void seventeen_vcpus(void)
{
	topology("17");
}

static void clusters(void)
{
	topology("12,sockets=1,clusters=2,cores=3,threads=2");
}

static const struct test tests[] = {
	{ "a guest boots", boot_guest },
	{ "patched to patched", to_patched },
	{ "patched to stock", to_stock },
	{ "stock to stock", to_stock },
	{ "stock to patched", to_patched },
#define NR_QUICK 5
	{ "each batch is verified", verify_batch },
	{ "batches are off", batch_off },
	{ "a paused guest, to a file and back", file_and_back },
	{ "stale-or: a second save equals a fresh one", stale_or },
	{ "half-way: a register that the destination refuses", half_way },
	{ "a GIC without an ITS", without_its },
	{ "-smp 1", one_vcpu },
	{ "-smp 3", three_vcpus },
	{ "-smp 17", seventeen_vcpus },
	{ "-smp 12,clusters=2,cores=3,threads=2", clusters },
};

/* Neighbours */

#define HOP(from, to)                                              \
	{                                                          \
		from " to " to, "/bin/qemu-" from, "/bin/qemu-" to \
	}

/*
 * Each pair of neighbours, both ways, as one way round that the guest goes. Stock
 * QEMUs first: what they refuse is not for a series to make good.
 */
static const struct {
	const char *rule;
	const char *from;
	const char *to;
} hops[] = {
	HOP("7.2-stock", "10.0-stock"),
	HOP("10.0-stock", "10.2-stock"),
	HOP("10.2-stock", "10.0-stock"),
	HOP("10.0-stock", "7.2-stock"),
	HOP("7.2-stock", "10.0-patched"),
	HOP("10.0-patched", "7.2-patched"),
	HOP("7.2-patched", "10.0-stock"),
	HOP("10.0-stock", "10.2-patched"),
	HOP("10.2-patched", "10.0-patched"),
	HOP("10.0-patched", "10.2-stock"),
	HOP("10.2-stock", "10.0-patched"),
	HOP("10.0-patched", "10.2-patched"),
	HOP("10.2-patched", "10.0-stock"),
	HOP("10.0-stock", "7.2-patched"),
	HOP("7.2-patched", "10.0-patched"),
	HOP("10.0-patched", "7.2-stock"),
};

static void hop(void)
{
	const char *to = hops[test_index].to;

	/* The first, or the one before has failed. */
	if (!guest_binary || strcmp(guest_binary, hops[test_index].from)) {
		guest = NULL;
		end_qemus();
		boot(hops[test_index].from);
	}
	guest_binary = NULL;
	move(to, NULL, has_batch);
	guest_binary = to;
}

#define MAX(a, b) ((a) > (b) ? (a) : (b))

static struct test wrapped[MAX(ARRAY_SIZE(tests), ARRAY_SIZE(hops))];
static bool neighbours;

/* What a test leaves running would slow the next one down. */
static void run_wrapped(void)
{
	static bool first = true;

	if (first) {
		const struct vm_config config = { .nr_vcpus = 1,
						  .nr_irqs = 64 };

		has_batch = vm_has_batch(test_vm(&config));
		first = false;
	}
	end_qemus();
	if (neighbours)
		hop();
	else
		tests[test_index].run();
}

int main(int argc, char **argv)
{
	bool quick = argc > 1 && !strcmp(argv[1], "--quick");
	size_t i, n = quick ? NR_QUICK : ARRAY_SIZE(tests);

	neighbours = argc > 1 && !strcmp(argv[1], "--neighbours");
	if (quick || neighbours) {
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	if (neighbours) {
		n = ARRAY_SIZE(hops);
		base.type = OLDEST_MACHINE;
	}
	for (i = 0; i < n; i++) {
		wrapped[i].rule = neighbours ? hops[i].rule : tests[i].rule;
		wrapped[i].run = run_wrapped;
	}
	test_timeout_s = 1500;
	return run_tests(argc, argv, wrapped, n);
}
