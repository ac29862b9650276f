// SPDX-License-Identifier: MIT
/* A state's bytes: docs/snapshot.md has the format. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "internal.h"

#define VERSION 1

/* Offsets in the header */
#define AT_VERSION  8
#define AT_SIZE	    12
#define AT_VCPUS    16
#define AT_IRQS	    18
#define AT_ITS	    20
#define AT_PRI_BITS 22
#define AT_LRS	    23
#define AT_FLAGS    24
#define AT_CRC	    28
#define HEADER_SIZE 32

#define COLUMN_SIZE 12 /* of a column's head */
#define CRC_SIZE    4

#define MAX_COLUMNS 64 /* more than the register table has rows */

/*
 * Four times as much as the largest machine's snapshot: what a reader takes
 * at a header's word. Registers that it does not know may be in it.
 */
#define MAX_SIZE (1U << 20)

#define FLAG_LPIS 1U
#define FLAG_EL2  2U

/* What is first damaged in transfers as text: bit 7, CR LF, end of file */
static const uint8_t magic[AT_VERSION] = {
	0x89, 'S', 'G', 'I', 'C', '\r', '\n', 0x1a,
};

enum scope {
	SCOPE_DIST,
	SCOPE_VCPU,
	SCOPE_ITS,
};

/*
 * struct column - a row of the register table on one machine
 * @reg:	its first word, of the first vCPU or ITS
 * @words:	how many it has of each vCPU or ITS
 * @owners:	vCPUs or ITSs; 1 of the distributor
 * @stride:	from an owner's slots to the next one's
 * @step:	from one word's attribute to the next one's
 */
struct column {
	const struct sgic_reg *reg;
	enum scope scope;
	uint32_t words;
	uint32_t owners;
	size_t stride;
	uint32_t step;
	uint32_t width;
};

struct columns {
	struct column at[MAX_COLUMNS];
	size_t nr;
};

/* Little-endian integers, whatever the host and the alignment */

static uint64_t get(const uint8_t *p, unsigned int bytes)
{
	uint64_t val = 0;

	while (bytes--)
		val = val << 8 | p[bytes];
	return val;
}

static uint8_t *put(uint8_t *p, uint64_t val, unsigned int bytes)
{
	for (; bytes; bytes--, val >>= 8)
		*p++ = val;
	return p;
}

static uint32_t checksum(const uint8_t *p, size_t size)
{
	return crc32(crc32(0, NULL, 0), p, size);
}

/* Columns */

static bool first_owner(const struct sgic_reg *reg)
{
	return !reg->vcpu && !reg->its;
}

/*
 * The column that begins at slot *@i, or after the slots of further vCPUs and
 * ITSs; *@i becomes the next one's. False if there is none.
 */
static bool next_column(const struct sgic_state *state, size_t *i,
			struct column *column)
{
	const struct sgic_reg *reg;

	while (*i < state->nr && !first_owner(&state->regs[*i]))
		++*i;
	if (*i == state->nr)
		return false;
	reg = &state->regs[*i];
	*column = (struct column){
		.reg = reg,
		.owners = 1,
		.width = sgic_reg_wide(reg) ? 8 : 4,
	};
	while (*i < state->nr && state->regs[*i].desc == reg->desc &&
	       first_owner(&state->regs[*i])) {
		column->words++;
		++*i;
	}
	if (column->words > 1)
		column->step = reg[1].attr - reg[0].attr;
	if (sgic_reg_has_vcpu(reg)) {
		column->scope = SCOPE_VCPU;
		column->owners = state->shape.nr_vcpus;
		column->stride = state->per_vcpu;
	} else if (sgic_reg_has_its(reg)) {
		column->scope = SCOPE_ITS;
		column->owners = state->shape.nr_its;
		column->stride = state->per_its;
	}
	return true;
}

/* Scope, group, attribute */
static bool comes_before(const struct column *a, const struct column *b)
{
	if (a->scope != b->scope)
		return a->scope < b->scope;
	if (a->reg->group != b->reg->group)
		return a->reg->group < b->reg->group;
	return (uint32_t)a->reg->attr < (uint32_t)b->reg->attr;
}

/*
 * All columns of @state, in an order that is the format's own: that of a
 * restore may have to change.
 */
static void find_columns(const struct sgic_state *state,
			 struct columns *columns)
{
	struct column column;
	size_t i = 0, at;

	columns->nr = 0;
	while (columns->nr < MAX_COLUMNS && next_column(state, &i, &column)) {
		at = columns->nr++;
		for (; at && comes_before(&column, &columns->at[at - 1]); at--)
			columns->at[at] = columns->at[at - 1];
		columns->at[at] = column;
	}
}

static size_t column_values(const struct column *column)
{
	return (size_t)column->owners * column->words * column->width;
}

static uint8_t *put_column_head(uint8_t *p, const struct column *column)
{
	p = put(p, column->reg->group, 2);
	p = put(p, column->words, 2);
	p = put(p, (uint32_t)column->reg->attr, 4); /* the MPIDR left out */
	p = put(p, column->step, 2);
	p = put(p, column->width, 1);
	return put(p, column->scope, 1);
}

static uint8_t *put_column_values(uint8_t *p, const struct column *column,
				  const struct sgic_state *state)
{
	size_t slot = column->reg->slot;

	for (uint32_t o = 0; o < column->owners; o++, slot += column->stride)
		for (uint32_t w = 0; w < column->words; w++)
			p = put(p, state->values[slot + w], column->width);
	return p;
}

static void get_column_values(const uint8_t *p, const struct column *column,
			      struct sgic_state *state)
{
	size_t slot = column->reg->slot;

	for (uint32_t o = 0; o < column->owners; o++, slot += column->stride)
		for (uint32_t w = 0; w < column->words; w++) {
			state->values[slot + w] = get(p, column->width);
			p += column->width;
		}
}

/* Writing */

size_t sgic_state_size(const struct sgic_state *state)
{
	struct columns columns;
	size_t size;

	if (!state->nr)
		return 0;
	size = HEADER_SIZE + 8 * state->shape.nr_vcpus + CRC_SIZE;
	find_columns(state, &columns);
	for (size_t i = 0; i < columns.nr; i++)
		size += COLUMN_SIZE + column_values(&columns.at[i]);
	return size;
}

static void put_header(uint8_t *buf, const struct sgic_shape *shape,
		       size_t size)
{
	memcpy(buf, magic, sizeof(magic));
	put(buf + AT_VERSION, VERSION, 4);
	put(buf + AT_SIZE, size, 4);
	put(buf + AT_VCPUS, shape->nr_vcpus, 2);
	put(buf + AT_IRQS, shape->nr_irqs, 2);
	put(buf + AT_ITS, shape->nr_its, 2);
	put(buf + AT_PRI_BITS, shape->pri_bits, 1);
	put(buf + AT_LRS, shape->nr_lrs, 1);
	put(buf + AT_FLAGS,
	    (shape->lpis ? FLAG_LPIS : 0) | (shape->el2 ? FLAG_EL2 : 0), 4);
	put(buf + AT_CRC, checksum(buf, AT_CRC), 4);
}

int sgic_state_store(const struct sgic_state *state, void *buf, size_t size,
		     struct sgic_error *error)
{
	size_t need = sgic_state_size(state);
	struct columns columns;
	uint8_t *p = buf;

	if (!need)
		return sgic_fail(error, SGIC_STEP_ARGUMENT, -EINVAL,
				 "the state is empty");
	if (size < need)
		return sgic_fail(error, SGIC_STEP_ARGUMENT, -ENOSPC,
				 "the snapshot has %zu bytes, the buffer %zu",
				 need, size);
	put_header(p, &state->shape, need);
	p += HEADER_SIZE;
	for (uint32_t v = 0; v < state->shape.nr_vcpus; v++)
		p = put(p, state->mpidrs[v], 8);
	find_columns(state, &columns);
	for (size_t i = 0; i < columns.nr; i++) {
		p = put_column_head(p, &columns.at[i]);
		p = put_column_values(p, &columns.at[i], state);
	}
	put(p, checksum(buf, need - CRC_SIZE), 4);
	return 0;
}

int sgic_state_write(const struct sgic_state *state, int fd,
		     struct sgic_error *error)
{
	size_t size = sgic_state_size(state), done = 0;
	uint8_t *buf = malloc(size ? size : 1);
	ssize_t n;
	int ret;

	if (!buf)
		return sgic_fail_errno(error, SGIC_STEP_MEMORY, -ENOMEM,
				       "a buffer of %zu bytes", size);
	ret = sgic_state_store(state, buf, size, error);
	while (!ret && done < size) {
		n = write(fd, buf + done, size - done);
		if (n >= 0)
			done += n;
		else if (errno != EINTR)
			ret = sgic_fail_errno(
				error, SGIC_STEP_FILE, -errno,
				"writing the snapshot, %zu of %zu bytes", done,
				size);
	}
	free(buf);
	return ret;
}

/* Reading */

#define fail(error, err, ...) \
	sgic_fail(error, SGIC_STEP_FORMAT, err, __VA_ARGS__)

static int truncated(struct sgic_error *error, size_t size, size_t need)
{
	return fail(error, -ENODATA,
		    "the snapshot is truncated: %zu bytes of %zu", size, need);
}

/*
 * The machine and the size of the snapshot whose first @size bytes are at
 * @buf; the shape's MPIDRs are not there yet. What it returns can be trusted
 * to be what was written, and to be within the limits.
 */
static int get_header(const uint8_t *buf, size_t size, struct sgic_shape *shape,
		      size_t *snapshot_size, struct sgic_error *error)
{
	uint32_t flags;

	if (memcmp(buf, magic, size < sizeof(magic) ? size : sizeof(magic)))
		return fail(error, -ENOMSG, "this is no snapshot of swiftgic");
	if (size < HEADER_SIZE)
		return truncated(error, size, HEADER_SIZE);
	if (get(buf + AT_VERSION, 4) != VERSION)
		return fail(error, -EPROTONOSUPPORT,
			    "the snapshot's format is version %u, not %u",
			    (unsigned int)get(buf + AT_VERSION, 4), VERSION);
	if (get(buf + AT_CRC, 4) != checksum(buf, AT_CRC))
		return fail(
			error, -EBADMSG,
			"the snapshot's header is corrupt: its checksum is wrong");

	flags = get(buf + AT_FLAGS, 4);
	if (flags & ~(FLAG_LPIS | FLAG_EL2))
		return fail(error, -EPROTONOSUPPORT,
			    "the snapshot has unknown flags: %#x",
			    flags & ~(FLAG_LPIS | FLAG_EL2));
	*shape = (struct sgic_shape){
		.nr_vcpus = get(buf + AT_VCPUS, 2),
		.nr_irqs = get(buf + AT_IRQS, 2),
		.nr_its = get(buf + AT_ITS, 2),
		.pri_bits = get(buf + AT_PRI_BITS, 1),
		.nr_lrs = get(buf + AT_LRS, 1),
		.lpis = flags & FLAG_LPIS,
		.el2 = flags & FLAG_EL2,
	};
	*snapshot_size = get(buf + AT_SIZE, 4);
	if (*snapshot_size > MAX_SIZE)
		return fail(error, -EMSGSIZE,
			    "the snapshot's size is %zu bytes, more than %u",
			    *snapshot_size, MAX_SIZE);
	if (shape->nr_lrs && !shape->el2)
		return fail(error, -EBADMSG,
			    "the snapshot has list registers without EL2");
	if (!shape->nr_vcpus || shape->nr_vcpus > SGIC_MAX_VCPUS)
		return fail(error, -EBADMSG,
			    "the snapshot's machine: %u vCPUs, not 1 to %u",
			    shape->nr_vcpus, SGIC_MAX_VCPUS);
	if (*snapshot_size < HEADER_SIZE + 8 * shape->nr_vcpus + CRC_SIZE)
		return fail(
			error, -EBADMSG,
			"the snapshot's size is %zu bytes: too few for %u vCPUs",
			*snapshot_size, shape->nr_vcpus);
	return 0;
}

/* Is there a register of that identity, wherever it should stand? */
static const struct sgic_reg *find_register(const struct columns *columns,
					    const uint8_t *head)
{
	for (size_t i = 0; i < columns->nr; i++) {
		const struct column *column = &columns->at[i];
		uint32_t off = get(head + 4, 4) - (uint32_t)column->reg->attr;

		if (column->reg->group == get(head, 2) &&
		    column->scope == get(head + 11, 1) &&
		    (!off || (column->step && !(off % column->step) &&
			      off / column->step < column->words)))
			return column->reg;
	}
	return NULL;
}

/* @head is not @expected's, or that is NULL: say what is wrong with it. */
static int wrong_column(const struct columns *columns,
			const struct column *expected, const uint8_t *head,
			struct sgic_error *error)
{
	static const char *const scopes[] = {
		"the distributor",
		"a vCPU",
		"an ITS",
	};
	const struct sgic_reg *known = find_register(columns, head);
	uint32_t scope = get(head + 11, 1);
	int ret;

	if (known)
		return sgic_fail_reg(error, SGIC_STEP_FORMAT, -EBADMSG, known,
				     expected && known == expected->reg
					     ? "a column of the wrong extent,"
					     : "a column out of place,");
	ret = fail(
		error, -EPROTONOSUPPORT,
		"the snapshot has an unknown register of %s: group %u, attribute %#x",
		scope < 3 ? scopes[scope] : "an unknown owner",
		(unsigned int)get(head, 2), (unsigned int)get(head + 4, 4));
	if (error) {
		error->group = get(head, 2);
		error->attr = get(head + 4, 4);
	}
	return ret;
}

/* Columns from @p up to @end must be those of @state's machine. */
static int get_columns(const uint8_t *p, const uint8_t *end,
		       struct sgic_state *state, struct sgic_error *error)
{
	uint8_t head[COLUMN_SIZE];
	struct columns columns;

	find_columns(state, &columns);
	for (size_t i = 0; i < columns.nr; i++) {
		const struct column *column = &columns.at[i];

		if (end - p < COLUMN_SIZE)
			return sgic_fail_reg(error, SGIC_STEP_FORMAT, -EBADMSG,
					     column->reg,
					     "the snapshot ends before");
		put_column_head(head, column);
		if (memcmp(p, head, COLUMN_SIZE))
			return wrong_column(&columns, column, p, error);
		p += COLUMN_SIZE;
		if ((size_t)(end - p) < column_values(column))
			return sgic_fail_reg(error, SGIC_STEP_FORMAT, -EBADMSG,
					     column->reg,
					     "the snapshot ends in");
		get_column_values(p, column, state);
		p += column_values(column);
	}
	if (end - p >= COLUMN_SIZE)
		return wrong_column(&columns, NULL, p, error);
	if (p != end)
		return fail(
			error, -EBADMSG,
			"the snapshot has %zu bytes after its last register",
			(size_t)(end - p));
	return 0;
}

/* A state of @shape, with the values in the columns */
static int new_state(struct sgic_state **state, const struct sgic_shape *shape,
		     const uint8_t *columns, const uint8_t *end,
		     struct sgic_error *error)
{
	int ret = -ENOMEM;

	*state = sgic_state_new();
	if (*state)
		ret = sgic_state_shape(*state, shape);
	if (ret)
		sgic_fail_errno(error, SGIC_STEP_MEMORY, ret,
				"a state of %u vCPUs", shape->nr_vcpus);
	else
		ret = get_columns(columns, end, *state, error);
	if (!ret)
		return 0;
	sgic_state_free(*state);
	return ret;
}

/* What @from holds, which is freed */
static void take(struct sgic_state *state, struct sgic_state *from)
{
	free(state->regs);
	free(state->values);
	*state = *from;
	state->shape.mpidrs = state->mpidrs;
	free(from);
}

int sgic_state_load(struct sgic_state *state, const void *buf, size_t size,
		    struct sgic_error *error)
{
	const uint8_t *p = buf, *end;
	uint64_t mpidrs[SGIC_MAX_VCPUS];
	struct sgic_shape shape;
	struct sgic_state *loaded;
	size_t need;
	const char *wrong;
	int ret;

	ret = get_header(p, size, &shape, &need, error);
	if (ret)
		return ret;
	if (size < need)
		return truncated(error, size, need);
	if (size > need)
		return fail(error, -EMSGSIZE,
			    "%zu bytes follow the snapshot of %zu", size - need,
			    need);
	end = p + need - CRC_SIZE;
	if (get(end, CRC_SIZE) != checksum(p, need - CRC_SIZE))
		return fail(error, -EBADMSG,
			    "the snapshot is corrupt: its checksum is wrong");

	p += HEADER_SIZE;
	for (uint32_t v = 0; v < shape.nr_vcpus; v++, p += 8)
		mpidrs[v] = get(p, 8);
	shape.mpidrs = mpidrs;
	wrong = sgic_shape_check(&shape);
	if (wrong)
		return fail(error, -EBADMSG, "the snapshot's machine: %s",
			    wrong);

	ret = new_state(&loaded, &shape, p, end, error);
	if (ret)
		return ret;
	take(state, loaded);
	return 0;
}

/*
 * Bytes @*done up to @size, and no more; @*done stays below @size at the end
 * of the file.
 */
static int read_up_to(int fd, uint8_t *buf, size_t *done, size_t size,
		      struct sgic_error *error)
{
	ssize_t n;

	while (*done < size) {
		n = read(fd, buf + *done, size - *done);
		if (!n)
			break;
		if (n > 0)
			*done += n;
		else if (errno != EINTR)
			return sgic_fail_errno(
				error, SGIC_STEP_FILE, -errno,
				"reading the snapshot, at byte %zu", *done);
	}
	return 0;
}

int sgic_state_read(struct sgic_state *state, int fd, struct sgic_error *error)
{
	uint8_t header[HEADER_SIZE], *buf;
	struct sgic_shape shape;
	size_t done = 0, size;
	int ret;

	ret = read_up_to(fd, header, &done, sizeof(header), error);
	if (!ret)
		ret = get_header(header, done, &shape, &size, error);
	if (ret)
		return ret;

	buf = malloc(size);
	if (!buf)
		return sgic_fail_errno(error, SGIC_STEP_MEMORY, -ENOMEM,
				       "a buffer of %zu bytes", size);
	memcpy(buf, header, done);
	ret = read_up_to(fd, buf, &done, size, error);
	if (!ret)
		ret = sgic_state_load(state, buf, done, error);
	free(buf);
	return ret;
}
