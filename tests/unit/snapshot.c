// SPDX-License-Identifier: MIT
/*
 * Snapshots: what is written is read, and nothing else is.
 *
 * With SWIFTGIC_WRITE=DIR in the environment, a snapshot of each machine is
 * written there: this is how tests/data and other tests get theirs.
 */
#define _GNU_SOURCE /* F_SETPIPE_SZ */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>

#include <zlib.h>

#include "alloc.h"
#include "machines.h"

#define HEADER	  32
#define AT_SIZE	  12
#define AT_VCPUS  16
#define AT_FLAGS  24
#define AT_CRC	  28
#define COLUMN	  12
#define MAX_BYTES (1U << 20)

struct bytes {
	uint8_t *at;
	size_t size;
};

/* Of the machine that has a column of every kind */
#define NESTED (&machines[2].shape)

static struct bytes stored(const struct sgic_state *state)
{
	struct bytes bytes = { .size = sgic_state_size(state) };
	struct sgic_error error;

	assert_int_not_equal(bytes.size, 0);
	bytes.at = malloc(bytes.size);
	assert_non_null(bytes.at);
	if (sgic_state_store(state, bytes.at, bytes.size, &error))
		fail_msg("%s", error.message);
	return bytes;
}

static struct bytes stored_machine(const struct sgic_shape *shape,
				   uint64_t seed)
{
	struct sgic_state *state = new_machine(shape, seed);
	struct bytes bytes = stored(state);

	sgic_state_free(state);
	return bytes;
}

static bool same(struct bytes a, struct bytes b)
{
	return a.size == b.size && !memcmp(a.at, b.at, a.size);
}

static void put_le(uint8_t *p, uint64_t val, int n)
{
	for (; n--; val >>= 8)
		*p++ = val;
}

/* Put the checksums right, so that what is behind them is looked at. */
static void seal(struct bytes bytes)
{
	put_le(bytes.at + AT_CRC, crc32(0, bytes.at, AT_CRC), 4);
	put_le(bytes.at + bytes.size - 4, crc32(0, bytes.at, bytes.size - 4),
	       4);
}

/*
 * Load what has to fail, out of memory of that very size; the state stays as
 * it was. Returns the error.
 */
static struct sgic_error load_fails(const uint8_t *at, size_t size)
{
	struct sgic_state *state = new_machine(&machines[0].shape, 9);
	struct bytes before = stored(state), after;
	uint8_t *exact = malloc(size ? size : 1);
	struct sgic_error error;
	int ret;

	assert_non_null(exact);
	memcpy(exact, at, size);
	memset(&error, 0xa5, sizeof(error));
	ret = sgic_state_load(state, exact, size, &error);
	if (!ret)
		fail_msg("loaded %zu bytes", size);
	assert_int_equal(error.err, ret);
	assert_false(error.touched);
	assert_true(strlen(error.message) > 10);
	assert_null(strchr(error.message, '\n'));
	assert_int_equal(sgic_state_load(state, exact, size, NULL), ret);
	after = stored(state);
	assert_true(same(before, after));
	free(after.at);
	free(before.at);
	free(exact);
	sgic_state_free(state);
	return error;
}

static void expect(const uint8_t *at, size_t size, int err, const char *text)
{
	struct sgic_error error = load_fails(at, size);

	if (error.err != err || !strstr(error.message, text))
		fail_msg("%d, not %d and '%s': %s", error.err, err, text,
			 error.message);
}

/* What is right */

static void check_round_trip(const struct sgic_shape *shape, uint64_t seed,
			     struct sgic_state *reused)
{
	struct sgic_state *state = new_machine(shape, seed);
	struct sgic_state *fresh = sgic_state_new();
	struct bytes bytes = stored(state), again;
	struct sgic_error error;

	assert_non_null(fresh);
	if (sgic_state_load(fresh, bytes.at, bytes.size, &error) ||
	    sgic_state_load(reused, bytes.at, bytes.size, &error))
		fail_msg("%s", error.message);
	assert_int_equal(sgic_state_compare(state, fresh, NULL, NULL, NULL), 0);
	assert_int_equal(sgic_state_compare(state, reused, NULL, NULL, NULL),
			 0);
	assert_true(sgic_shape_equal(shape, &reused->shape));
	again = stored(reused);
	assert_true(same(bytes, again));
	free(again.at);
	free(bytes.at);
	sgic_state_free(fresh);
	sgic_state_free(state);
}

static void round_trips(void **unused)
{
	static uint64_t mpidrs[SGIC_MAX_VCPUS];
	struct sgic_state *reused = sgic_state_new();
	struct sgic_shape shape;
	uint64_t seed = 5;

	(void)unused;
	assert_non_null(reused);
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++)
		check_round_trip(&machines[m].shape, m, reused);
	for (int i = 0; i < 200; i++) {
		shape = random_shape(&seed, mpidrs);
		check_round_trip(&shape, i, reused);
	}
	sgic_state_free(reused);
}

static void sizes(void **unused)
{
	struct sgic_state *state;

	(void)unused;
	state = new_machine(&machines[3].shape, 0);
	print_message("# 160 vCPUs, 288 interrupts: %zu bytes\n",
		      sgic_state_size(state));
	assert_in_range(sgic_state_size(state), 1, 64 << 10);
	sgic_state_free(state);

	/* the limit of a reader leaves room for registers to come */
	state = new_machine(&machines[4].shape, 0);
	print_message("# the largest machine: %zu bytes\n",
		      sgic_state_size(state));
	assert_in_range(sgic_state_size(state), 1, MAX_BYTES / 4);
	sgic_state_free(state);
}

/* The format does not change: a file of the tree, byte for byte. */
static void golden(void **unused)
{
	static const char path[] = "tests/data/nested.sgic";
	struct sgic_state *state = new_machine(NESTED, 2);
	struct sgic_state *loaded = sgic_state_new();
	struct bytes bytes = stored(state);
	struct bytes file = { malloc(MAX_BYTES), 0 };
	struct sgic_error error;
	FILE *f = fopen(path, "rb");

	(void)unused;
	assert_non_null(file.at);
	assert_non_null(loaded);
	if (!f)
		fail_msg("%s: %s: run from the top of the tree", path,
			 strerror(errno));
	file.size = fread(file.at, 1, MAX_BYTES, f);
	fclose(f);
	assert_int_equal(file.size, bytes.size);
	assert_memory_equal(file.at, bytes.at, bytes.size);
	if (sgic_state_load(loaded, file.at, file.size, &error))
		fail_msg("%s", error.message);
	assert_int_equal(sgic_state_compare(state, loaded, NULL, NULL, NULL),
			 0);
	free(file.at);
	free(bytes.at);
	sgic_state_free(loaded);
	sgic_state_free(state);
}

/* What is wrong */

static void truncated(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);

	(void)unused;
	for (size_t n = 0; n < bytes.size; n++)
		expect(bytes.at, n, -ENODATA, "truncated");
	free(bytes.at);
}

static void longer(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);
	uint8_t *more = calloc(1, bytes.size + 100);

	(void)unused;
	assert_non_null(more);
	memcpy(more, bytes.at, bytes.size);
	expect(more, bytes.size + 1, -EMSGSIZE, "1 bytes follow");
	expect(more, bytes.size + 100, -EMSGSIZE, "100 bytes follow");
	free(more);
	free(bytes.at);
}

static void foreign(void **unused)
{
	static const char *const texts[] = {
		"{",
		"\177ELF",
		"\x89PNG\r\n\x1a\n",
		"\x89SGID",
		/* a line end that some transfer has changed */
		"\x89SGIC\n\x1a",
	};
	uint8_t zeros[100] = { 0 };
	struct bytes bytes = stored_machine(NESTED, 1);

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		expect((const uint8_t *)texts[i], strlen(texts[i]), -ENOMSG,
		       "no snapshot");
	expect(zeros, 1, -ENOMSG, "no snapshot");
	expect(zeros, sizeof(zeros), -ENOMSG, "no snapshot");
	expect(bytes.at + 1, bytes.size - 1, -ENOMSG, "no snapshot");
	free(bytes.at);
}

static void other_version(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);

	(void)unused;
	bytes.at[8] = 2;
	expect(bytes.at, bytes.size, -EPROTONOSUPPORT, "version 2, not 1");
	seal(bytes);
	expect(bytes.at, bytes.size, -EPROTONOSUPPORT, "version 2, not 1");
	/* of whatever length, and without the rest */
	expect(bytes.at, HEADER, -EPROTONOSUPPORT, "version 2");
	bytes.at[8] = 0;
	expect(bytes.at, bytes.size, -EPROTONOSUPPORT, "version 0");
	free(bytes.at);
}

static void oversized(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);
	struct sgic_state *state = sgic_state_new();

	(void)unused;
	assert_non_null(state);
	put_le(bytes.at + AT_SIZE, UINT32_MAX, 4);
	seal(bytes);
	expect(bytes.at, bytes.size, -EMSGSIZE, "4294967295 bytes");
	put_le(bytes.at + AT_SIZE, MAX_BYTES + 1, 4);
	seal(bytes);
	expect(bytes.at, bytes.size, -EMSGSIZE, "1048577 bytes");
	alloc_reset(0);
	assert_int_equal(sgic_state_load(state, bytes.at, bytes.size, NULL),
			 -EMSGSIZE);
	assert_int_equal(allocations, 0);
	put_le(bytes.at + AT_SIZE, MAX_BYTES, 4);
	seal(bytes);
	expect(bytes.at, bytes.size, -ENODATA, "truncated");
	/* too small for the machine that it says */
	put_le(bytes.at + AT_SIZE, HEADER, 4);
	seal(bytes);
	expect(bytes.at, bytes.size, -EBADMSG, "too few for 2 vCPUs");
	sgic_state_free(state);
	free(bytes.at);
}

/* A flipped bit is seen, and the error is that of its field. */
static void bit_flips(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);
	struct sgic_error error;

	(void)unused;
	for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
		size_t byte = bit / 8;
		int err = byte < 8    ? -ENOMSG
			  : byte < 12 ? -EPROTONOSUPPORT
				      : -EBADMSG;

		bytes.at[byte] ^= 1 << bit % 8;
		error = load_fails(bytes.at, bytes.size);
		if (error.err != err)
			fail_msg("bit %zu of byte %zu: %d, not %d: %s", bit % 8,
				 byte, error.err, err, error.message);
		bytes.at[byte] ^= 1 << bit % 8;
	}
	free(bytes.at);
}

/* What loads is, stored again, the same bytes: a state has one encoding. */
static int load_or_fail(struct bytes bytes)
{
	struct sgic_state *state = sgic_state_new();
	struct sgic_error error;
	struct bytes again;
	int ret;

	assert_non_null(state);
	ret = sgic_state_load(state, bytes.at, bytes.size, &error);
	sgic_state_free(state);
	if (ret) {
		error = load_fails(bytes.at, bytes.size);
		assert_int_equal(error.err, ret);
		assert_true(ret == -EBADMSG || ret == -EPROTONOSUPPORT ||
			    ret == -ENODATA || ret == -EMSGSIZE ||
			    ret == -ENOMSG);
		return ret;
	}
	state = sgic_state_new();
	assert_non_null(state);
	assert_int_equal(sgic_state_load(state, bytes.at, bytes.size, NULL), 0);
	again = stored(state);
	if (!same(bytes, again))
		fail_msg("two encodings of one state");
	free(again.at);
	sgic_state_free(state);
	return 0;
}

/* Where the columns lie, as docs/snapshot.md says */
struct columns {
	size_t at[64];
	size_t n;
	size_t value_bytes;
};

static struct columns find_columns(struct bytes bytes)
{
	const uint8_t *header = bytes.at, *p;
	struct columns columns = { .n = 0 };
	size_t at = HEADER + 8 * header[AT_VCPUS], size;

	while (at < bytes.size - 4) {
		p = bytes.at + at;
		assert_true(columns.n < ARRAY_SIZE(columns.at));
		columns.at[columns.n++] = at;
		size = (p[2] | p[3] << 8) * p[10];
		if (p[11] == 1)
			size *= header[AT_VCPUS];
		else if (p[11] == 2)
			size *= header[AT_VCPUS + 4];
		columns.value_bytes += size;
		at += COLUMN + size;
	}
	assert_int_equal(at, bytes.size - 4);
	return columns;
}

/* The same with the right checksums, as who forges a snapshot would do it */
static void sealed_bit_flips(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);
	struct columns columns = find_columns(bytes);
	size_t loads = 0, mpidr_loads = 0;
	int ret;

	(void)unused;
	for (size_t bit = 0; bit < 8 * (bytes.size - 4); bit++) {
		size_t byte = bit / 8;

		bytes.at[byte] ^= 1 << bit % 8;
		if (byte < AT_CRC || byte >= HEADER)
			seal(bytes);
		ret = load_or_fail(bytes);
		if (byte < HEADER)
			assert_int_not_equal(ret, 0);
		else if (byte < columns.at[0])
			mpidr_loads += !ret;
		else
			loads += !ret;
		bytes.at[byte] ^= 1 << bit % 8;
		seal(bytes);
	}
	/* each affinity bit of both, but that which tells them apart */
	assert_int_equal(mpidr_loads, 2 * 31);
	/* all values, and nothing of the columns' heads */
	assert_int_equal(loads, 8 * columns.value_bytes);
	free(bytes.at);
}

/* @bytes without its bytes @from up to @to, and with @n others there */
static struct bytes edit(struct bytes bytes, size_t from, size_t to,
			 const void *other, size_t n)
{
	struct bytes edited = { .size = bytes.size - (to - from) + n };

	edited.at = malloc(edited.size);
	assert_non_null(edited.at);
	memcpy(edited.at, bytes.at, from);
	if (n)
		memcpy(edited.at + from, other, n);
	memcpy(edited.at + from + n, bytes.at + to, bytes.size - to);
	put_le(edited.at + AT_SIZE, edited.size, 4);
	seal(edited);
	return edited;
}

static void expect_edit(struct bytes bytes, size_t from, size_t to,
			const void *other, size_t n, int err, const char *text)
{
	struct bytes edited = edit(bytes, from, to, other, n);

	expect(edited.at, edited.size, err, text);
	free(edited.at);
}

/* A register that a later version may have is named. */
static void unknown_registers(void **unused)
{
	static const uint8_t dist[] = {
		1, 0, 1, 0, 0x10, 0x0c, 1, 0, 0, 0, 4, 0, 0xaa, 0xbb, 0xcc, 0,
	};
	static const uint8_t vcpu[] = {
		5, 0, 1, 0, 0x44, 0, 0, 0, 0, 0, 4, 1, 1, 2, 3, 4, 5, 6, 7, 8,
	};
	static const uint8_t between[] = {
		5, 0, 1, 0, 0x02, 4, 1, 0, 0, 0, 4, 1,
	};
	static const uint8_t none[] = {
		99, 0, 1, 0, 0x44, 0, 0, 0, 0, 0, 4, 9,
	};
	struct bytes bytes = stored_machine(NESTED, 1), edited;
	struct columns columns = find_columns(bytes);
	struct sgic_error error;
	size_t at;

	(void)unused;
	/* before each column, and after the last */
	for (size_t i = 0; i <= columns.n; i++) {
		at = i < columns.n ? columns.at[i] : bytes.size - 4;
		expect_edit(
			bytes, at, at, dist, sizeof(dist), -EPROTONOSUPPORT,
			"unknown register of the distributor: group 1, attribute 0x10c10");
		expect_edit(
			bytes, at, at, vcpu, sizeof(vcpu), -EPROTONOSUPPORT,
			"unknown register of a vCPU: group 5, attribute 0x44");
		expect_edit(bytes, at, at, none, sizeof(none), -EPROTONOSUPPORT,
			    "unknown owner: group 99");
	}
	/* between two registers of an array */
	expect_edit(bytes, bytes.size - 4, bytes.size - 4, between,
		    sizeof(between), -EPROTONOSUPPORT, "attribute 0x10402");
	edited = edit(bytes, columns.at[3], columns.at[3], vcpu, sizeof(vcpu));
	error = load_fails(edited.at, edited.size);
	assert_int_equal(error.step, SGIC_STEP_FORMAT);
	assert_int_equal(error.group, 5);
	assert_int_equal(error.attr, 0x44);
	free(edited.at);
	free(bytes.at);
}

/* Columns that are known, and not what the machine has */
static void wrong_columns(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);
	struct columns columns = find_columns(bytes);
	static const uint8_t zeros[COLUMN];
	size_t end = bytes.size - 4, at, next, size;
	uint8_t *p;

	(void)unused;
	for (size_t i = 0; i < columns.n; i++) {
		at = columns.at[i];
		next = i + 1 < columns.n ? columns.at[i + 1] : end;
		size = next - at;
		/* missing, there twice, there again at the end */
		expect_edit(bytes, at, next, NULL, 0, -EBADMSG,
			    i + 1 < columns.n
				    ? "out of place"
				    : "ends before GITS_BASER0 (ITS 0)");
		if (i + 1 < columns.n)
			expect_edit(bytes, next, next, bytes.at + at, size,
				    -EBADMSG, "out of place");
		expect_edit(bytes, end, end, bytes.at + at, size, -EBADMSG,
			    "out of place");
		/* cut off, in its head and in its values */
		expect_edit(bytes, at + COLUMN - 1, end, NULL, 0, -EBADMSG,
			    "ends before");
		expect_edit(bytes, next - 1, end, NULL, 0, -EBADMSG, "ends in");
		/* a word more or less than the machine has */
		p = malloc(size);
		assert_non_null(p);
		memcpy(p, bytes.at + at, size);
		p[2]++;
		expect_edit(bytes, at, next, p, size, -EBADMSG, "wrong extent");
		p[2] -= 2;
		expect_edit(bytes, at, next, p, size, -EBADMSG, "wrong extent");
		free(p);
	}
	/* padding */
	for (size_t n = 1; n < COLUMN; n++)
		expect_edit(bytes, end, end, zeros, n, -EBADMSG,
			    "after its last register");
	expect_edit(bytes, HEADER, HEADER, zeros, 8, -EBADMSG, "same MPIDR");
	free(bytes.at);
}

static void wrong_machines(void **unused)
{
	static const struct {
		size_t at;
		int bytes;
		uint64_t val;
		int err;
		const char *text;
	} wrong[] = {
		{ 16, 2, 0, -EBADMSG, "0 vCPUs" },
		{ 16, 2, 513, -EBADMSG, "513 vCPUs" },
		{ 18, 2, 0, -EBADMSG, "interrupts" },
		{ 18, 2, 65, -EBADMSG, "interrupts" },
		{ 18, 2, 1024, -EBADMSG, "interrupts" },
		{ 20, 2, 17, -EBADMSG, "ITSs" },
		{ 22, 1, 4, -EBADMSG, "priority bits" },
		{ 22, 1, 8, -EBADMSG, "priority bits" },
		{ 23, 1, 0, -EBADMSG, "list registers" },
		{ 23, 1, 17, -EBADMSG, "list registers" },
		{ 24, 4, 1, -EBADMSG, "list registers without EL2" },
		{ 24, 4, 2, -EBADMSG, "no LPIs" },
		{ 24, 4, 7, -EPROTONOSUPPORT, "flags: 0x4" },
		{ 24, 4, 0x80000003, -EPROTONOSUPPORT, "flags: 0x80000000" },
		{ 32, 8, 1, -EBADMSG, "same MPIDR" },
		{ 32, 8, 1 << 24, -EBADMSG, "outside of its affinity" },
		{ 32, 8, 1ULL << 63, -EBADMSG, "outside of its affinity" },
		/* another machine than the columns are of */
		{ 16, 2, 1, -EBADMSG, "wrong extent, GICD_CTLR" },
		{ 18, 2, 96, -EBADMSG, "wrong extent, GICD_IGROUPR1" },
		{ 20, 2, 0, -EPROTONOSUPPORT, "unknown register of an ITS" },
		{ 22, 1, 5, -EBADMSG, "wrong extent, ICC_AP0R0_EL1 (vCPU 0)" },
		{ 23, 1, 3, -EBADMSG, "wrong extent, ICH_LR0_EL2 (vCPU 0)" },
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct bytes bytes = stored_machine(NESTED, 1);

		put_le(bytes.at + wrong[i].at, wrong[i].val, wrong[i].bytes);
		seal(bytes);
		expect(bytes.at, bytes.size, wrong[i].err, wrong[i].text);
		free(bytes.at);
	}
}

/* Memory */

static void store_refuses(void **unused)
{
	struct sgic_state *state = sgic_state_new();
	struct sgic_error error;
	struct bytes bytes;
	size_t size;

	(void)unused;
	assert_non_null(state);
	assert_int_equal(sgic_state_size(state), 0);
	assert_int_equal(sgic_state_store(state, NULL, 0, &error), -EINVAL);
	assert_non_null(strstr(error.message, "empty"));
	assert_int_equal(sgic_state_write(state, STDOUT_FILENO, &error),
			 -EINVAL);
	assert_non_null(strstr(error.message, "empty"));

	assert_int_equal(sgic_state_shape(state, NESTED), 0);
	size = sgic_state_size(state);
	bytes.at = malloc(size - 1);
	assert_non_null(bytes.at);
	assert_int_equal(sgic_state_store(state, bytes.at, size - 1, &error),
			 -ENOSPC);
	assert_int_equal(sgic_state_store(state, bytes.at, 0, NULL), -ENOSPC);
	assert_non_null(strstr(error.message, "the buffer"));
	free(bytes.at);
	sgic_state_free(state);
}

/* A state of the same machine, or a smaller one, takes no memory. */
static void no_allocation(void **unused)
{
	struct sgic_state *state = new_machine(NESTED, 1);
	struct bytes bytes = stored(state);

	(void)unused;
	alloc_reset(0);
	assert_int_equal(sgic_state_shape(state, NESTED), 0);
	assert_int_equal(sgic_state_shape(state, &machines[0].shape), 0);
	assert_int_equal(sgic_state_shape(state, NESTED), 0);
	assert_int_equal(sgic_state_store(state, bytes.at, bytes.size, NULL),
			 0);
	assert_int_equal(sgic_state_compare(state, state, NULL, NULL, NULL), 0);
	assert_int_equal(allocations, 0);
	free(bytes.at);
	sgic_state_free(state);
}

static int pipe_with(struct bytes bytes)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], bytes.at, bytes.size), bytes.size);
	close(fds[1]);
	return fds[0];
}

/* Each allocation fails once: -ENOMEM, and the state is as it was. */
static void out_of_memory(void **unused)
{
	struct sgic_state *state = new_machine(&machines[0].shape, 3);
	struct sgic_state *same_as = new_machine(&machines[0].shape, 3);
	struct bytes bytes = stored_machine(NESTED, 1);
	struct sgic_error error;
	int null = open("/dev/null", O_WRONLY), fd, ret;
	size_t n;

	(void)unused;
	for (n = 1; n < 20; n++) {
		fd = pipe_with(bytes);
		alloc_reset(n);
		ret = sgic_state_read(state, fd, &error);
		alloc_reset(0);
		close(fd);
		if (!ret)
			break;
		assert_int_equal(ret, -ENOMEM);
		assert_int_equal(error.step, SGIC_STEP_MEMORY);
		assert_int_equal(
			sgic_state_compare(state, same_as, NULL, NULL, NULL),
			0);
	}
	assert_int_equal(n, 5); /* a buffer; the state, registers, values */

	alloc_reset(1);
	assert_int_equal(sgic_state_write(state, null, &error), -ENOMEM);
	alloc_reset(1);
	assert_null(sgic_state_new());
	for (n = 1; n < 3; n++) {
		sgic_state_free(state);
		state = sgic_state_new();
		alloc_reset(n);
		assert_int_equal(sgic_state_shape(state, NESTED), -ENOMEM);
		alloc_reset(0);
		assert_int_equal(sgic_state_count(state), 0);
	}
	close(null);
	free(bytes.at);
	sgic_state_free(same_as);
	sgic_state_free(state);
}

/* File descriptors */

static void on_alarm(int sig)
{
	(void)sig;
}

/* Interrupt this program's system calls every @us; 0: no longer. */
static void interrupt_every(int us)
{
	/* without SA_RESTART */
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval timer = {
		.it_interval.tv_usec = us,
		.it_value.tv_usec = us,
	};

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

struct peer {
	int fd;
	struct bytes bytes;
	size_t piece;
};

static void block_alarm(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static void *write_in_pieces(void *data)
{
	struct peer *peer = data;
	size_t done, n;

	block_alarm();
	for (done = 0; done < peer->bytes.size; done += n) {
		n = peer->bytes.size - done;
		if (n > peer->piece)
			n = peer->piece;
		if (write(peer->fd, peer->bytes.at + done, n) != (ssize_t)n)
			break;
		usleep(300);
	}
	close(peer->fd);
	return NULL;
}

static void *read_in_pieces(void *data)
{
	struct peer *peer = data;
	size_t done = 0;
	ssize_t n;

	block_alarm();
	do {
		usleep(300);
		n = read(peer->fd, peer->bytes.at + done, peer->piece);
		done += n > 0 ? n : 0;
	} while (n > 0);
	peer->bytes.size = done;
	return NULL;
}

/* Two snapshots and more in one pipe, in pieces, with interruptions */
static void stream(void **unused)
{
	struct bytes one = stored_machine(&machines[1].shape, 1);
	struct bytes two = stored_machine(NESTED, 2);
	struct sgic_state *state = sgic_state_new();
	struct peer peer = { .piece = 7 };
	struct sgic_error error;
	struct bytes again;
	pthread_t thread;
	char rest[10];
	int fds[2];

	(void)unused;
	assert_non_null(state);
	peer.bytes.size = one.size + two.size + 4;
	peer.bytes.at = malloc(peer.bytes.size);
	assert_non_null(peer.bytes.at);
	memcpy(peer.bytes.at, one.at, one.size);
	memcpy(peer.bytes.at + one.size, two.at, two.size);
	memcpy(peer.bytes.at + one.size + two.size, "rest", 4);
	assert_int_equal(pipe(fds), 0);
	peer.fd = fds[1];
	assert_int_equal(pthread_create(&thread, NULL, write_in_pieces, &peer),
			 0);
	interrupt_every(1000);
	if (sgic_state_read(state, fds[0], &error))
		fail_msg("%s", error.message);
	again = stored(state);
	assert_true(same(one, again));
	free(again.at);
	if (sgic_state_read(state, fds[0], &error))
		fail_msg("%s", error.message);
	interrupt_every(0);
	again = stored(state);
	assert_true(same(two, again));
	free(again.at);
	pthread_join(thread, NULL);
	assert_int_equal(read(fds[0], rest, sizeof(rest)), 4);
	assert_memory_equal(rest, "rest", 4);
	assert_int_equal(sgic_state_read(state, fds[0], &error), -ENODATA);
	close(fds[0]);
	free(peer.bytes.at);
	free(two.at);
	free(one.at);
	sgic_state_free(state);
}

/* Into a pipe that takes a page at a time, with interruptions */
static void slow_writes(void **unused)
{
	struct sgic_state *state = new_machine(&machines[3].shape, 1);
	struct bytes bytes = stored(state);
	struct peer peer = { .piece = 512 };
	struct sgic_error error;
	pthread_t thread;
	int fds[2];

	(void)unused;
	peer.bytes.at = malloc(bytes.size + peer.piece);
	assert_non_null(peer.bytes.at);
	assert_int_equal(pipe(fds), 0);
	fcntl(fds[1], F_SETPIPE_SZ, 4096);
	peer.fd = fds[0];
	assert_int_equal(pthread_create(&thread, NULL, read_in_pieces, &peer),
			 0);
	interrupt_every(1000);
	if (sgic_state_write(state, fds[1], &error))
		fail_msg("%s", error.message);
	interrupt_every(0);
	close(fds[1]);
	pthread_join(thread, NULL);
	assert_true(same(bytes, peer.bytes));
	close(fds[0]);
	free(peer.bytes.at);
	free(bytes.at);
	sgic_state_free(state);
}

/* Every length of a file that ends too early; the state stays as it was. */
static void short_files(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);
	struct sgic_state *state = new_machine(&machines[0].shape, 3);
	struct sgic_state *same_as = new_machine(&machines[0].shape, 3);
	struct sgic_error error;

	(void)unused;
	for (size_t n = 0; n < bytes.size; n++) {
		int fd = pipe_with((struct bytes){ bytes.at, n });

		assert_int_equal(sgic_state_read(state, fd, &error), -ENODATA);
		close(fd);
		assert_int_equal(
			sgic_state_compare(state, same_as, NULL, NULL, NULL),
			0);
	}
	free(bytes.at);
	sgic_state_free(same_as);
	sgic_state_free(state);
}

/* A reader allocates by no length that it has not checked. */
static void forged_length(void **unused)
{
	struct bytes bytes = stored_machine(NESTED, 1);
	struct sgic_state *state = sgic_state_new();
	int fd;

	(void)unused;
	assert_non_null(state);
	put_le(bytes.at + AT_SIZE, UINT32_MAX, 4);
	fd = pipe_with(bytes); /* the header's checksum is wrong */
	alloc_reset(0);
	assert_int_equal(sgic_state_read(state, fd, NULL), -EBADMSG);
	assert_int_equal(allocations, 0);
	close(fd);
	seal(bytes);
	fd = pipe_with(bytes);
	assert_int_equal(sgic_state_read(state, fd, NULL), -EMSGSIZE);
	assert_int_equal(allocations, 0);
	close(fd);
	put_le(bytes.at + AT_SIZE, MAX_BYTES, 4);
	seal(bytes);
	fd = pipe_with(bytes);
	assert_int_equal(sgic_state_read(state, fd, NULL), -ENODATA);
	assert_int_equal(largest_allocation, MAX_BYTES);
	close(fd);
	free(bytes.at);
	sgic_state_free(state);
}

static void file_errors(void **unused)
{
	struct sgic_state *state = new_machine(NESTED, 1);
	struct sgic_error error;
	int fds[2], fd;

	(void)unused;
	fd = open("/dev/full", O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(sgic_state_write(state, fd, &error), -ENOSPC);
	assert_int_equal(error.step, SGIC_STEP_FILE);
	assert_non_null(strstr(error.message, "No space left"));
	close(fd);
	assert_int_equal(sgic_state_write(state, fd, &error), -EBADF);
	assert_int_equal(sgic_state_read(state, fd, &error), -EBADF);
	assert_int_equal(error.step, SGIC_STEP_FILE);
	assert_int_equal(sgic_state_read(state, fd, NULL), -EBADF);

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(sgic_state_write(state, fds[1], &error), -EPIPE);
	close(fds[1]);

	fd = open("/", O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(sgic_state_read(state, fd, &error), -EISDIR);
	close(fd);
	sgic_state_free(state);
}

static int write_file(const char *dir, const char *name,
		      const struct sgic_state *state)
{
	struct sgic_error error = { .err = 0 };
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s.sgic", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (fd < 0) {
		perror(path);
		return 1;
	}
	if (sgic_state_write(state, fd, &error))
		fprintf(stderr, "%s: %s\n", path, error.message);
	return close(fd) || error.err;
}

static void flip(struct sgic_state *state, const char *name, uint64_t bits)
{
	char buf[64];

	for (size_t i = 0; i < state->nr; i++) {
		sgic_reg_name(&state->regs[i], buf, sizeof(buf));
		if (!strcmp(buf, name))
			state->values[i] ^= bits;
	}
}

/* Each machine, and "its" with changes that tests/show.sh knows */
static int write_machines(const char *dir)
{
	struct sgic_state *state = sgic_state_new();
	int failed = !state;

	for (size_t m = 0; !failed && m < ARRAY_SIZE(machines); m++) {
		failed = sgic_state_shape(state, &machines[m].shape);
		if (failed)
			break;
		fill_values(state, m);
		failed = write_file(dir, machines[m].name, state);
		if (failed || strcmp(machines[m].name, "its"))
			continue;
		flip(state, "GICD_ISENABLER1", 1U << (40 - 32));
		flip(state, "GICD_IROUTER33[63:32]", 0x80);
		flip(state, "GICR_IPRIORITYR6 (vCPU 1)", 0xffU << 24);
		flip(state, "ICC_PMR_EL1 (vCPU 2)", 1ULL << 63);
		flip(state, "GITS_CTLR (ITS 1)", 1);
		failed = write_file(dir, "its-changed", state);
	}
	sgic_state_free(state);
	return failed;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(sizes),
		cmocka_unit_test(golden),
		cmocka_unit_test(truncated),
		cmocka_unit_test(longer),
		cmocka_unit_test(foreign),
		cmocka_unit_test(other_version),
		cmocka_unit_test(oversized),
		cmocka_unit_test(bit_flips),
		cmocka_unit_test(sealed_bit_flips),
		cmocka_unit_test(unknown_registers),
		cmocka_unit_test(wrong_columns),
		cmocka_unit_test(wrong_machines),
		cmocka_unit_test(store_refuses),
		cmocka_unit_test(no_allocation),
		cmocka_unit_test(out_of_memory),
		cmocka_unit_test(stream),
		cmocka_unit_test(slow_writes),
		cmocka_unit_test(short_files),
		cmocka_unit_test(forged_length),
		cmocka_unit_test(file_errors),
	};
	const char *dir = getenv("SWIFTGIC_WRITE");

	fill_kvm_mpidrs(NULL);
	if (dir)
		return write_machines(dir);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("snapshots", tests, NULL, NULL);
}
