// SPDX-License-Identifier: MIT
/*
 * Fuzzing the reader of snapshots with libFuzzer: what loads is walked, and is
 * stored again as the same bytes; what does not load leaves the state alone.
 */
#define _GNU_SOURCE /* memfd_create() */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <zlib.h>

#include "swiftgic.h"

#define HEADER	   32
#define AT_SIZE	   12
#define AT_MACHINE 16
#define AT_CRC	   28

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed);

#define check(condition)                                                     \
	do {                                                                 \
		if (!(condition)) {                                          \
			fprintf(stderr, "%s:%d: " #condition "\n", __FILE__, \
				__LINE__);                                   \
			abort();                                             \
		}                                                            \
	} while (0)

static void check_error(int ret, const struct sgic_error *error)
{
	check(ret == -ENOMSG || ret == -EPROTONOSUPPORT || ret == -ENODATA ||
	      ret == -EMSGSIZE || ret == -EBADMSG);
	check(error->err == ret);
	check(error->step == SGIC_STEP_FORMAT);
	check(!error->touched);
	check(memchr(error->message, '\0', sizeof(error->message)));
	check(error->message[0]);
}

static void walk(const struct sgic_state *state)
{
	size_t n = sgic_state_count(state);
	struct sgic_machine machine;
	struct sgic_value value, found;
	struct sgic_irq irq;

	sgic_state_machine(state, &machine);
	check(machine.nr_vcpus);
	for (size_t i = 0; i < n; i++) {
		check(!sgic_state_value(state, i, &value));
		check(value.vcpu < (int)machine.nr_vcpus);
		check(value.its < (int)machine.nr_its);
		if (i % 31)
			continue;
		check(!sgic_state_find(state, value.name, &found));
		check(found.attr == value.attr && found.val == value.val);
	}
	check(sgic_state_value(state, n, &value) == -ERANGE);
	for (uint32_t i = 0; i < machine.nr_irqs; i++)
		check(!sgic_state_irq(state, i, machine.nr_vcpus - 1, &irq));
	check(sgic_state_irq(state, machine.nr_irqs, 0, &irq) == -ERANGE);
}

static void check_stored(const struct sgic_state *state, const uint8_t *data,
			 size_t size)
{
	uint8_t *again;

	check(sgic_state_size(state) == size);
	again = malloc(size);
	check(again);
	check(!sgic_state_store(state, again, size, NULL));
	check(!memcmp(again, data, size));
	free(again);
}

/* Reading the file says the same, and leaves it at the snapshot's end. */
static void check_read(int loaded, const uint8_t *data, size_t size)
{
	static struct sgic_state *state;
	static int fd = -1;
	struct sgic_error error;
	int ret;

	if (fd < 0) {
		fd = memfd_create("snapshot", 0);
		state = sgic_state_new();
	}
	check(fd >= 0 && state);
	check(!ftruncate(fd, 0) && !lseek(fd, 0, SEEK_SET));
	check(pwrite(fd, data, size, 0) == (ssize_t)size);
	ret = sgic_state_read(state, fd, &error);
	if (ret)
		check_error(ret, &error);
	else
		check_stored(state, data, lseek(fd, 0, SEEK_CUR));
	/* what follows the snapshot is not the reader's */
	check(ret == loaded || loaded == -EMSGSIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sgic_state *state, *before;
	struct sgic_error error;
	int ret;

	if (!state) {
		state = sgic_state_new();
		before = sgic_state_new();
	}
	check(state && before);
	ret = sgic_state_load(state, data, size, &error);
	check_read(ret, data, size);
	if (ret) {
		check_error(ret, &error);
		check(!sgic_state_compare(state, before, NULL, NULL, NULL));
		return 0;
	}
	walk(state);
	check_stored(state, data, size);
	ret = sgic_state_compare(state, before, NULL, NULL, NULL);
	check(ret == 0 || ret == 1 || ret == -EXDEV);
	check(!sgic_state_load(before, data, size, NULL));
	check(!sgic_state_compare(state, before, NULL, NULL, NULL));
	return 0;
}

static void put_le32(uint8_t *p, uint32_t val)
{
	for (int i = 0; i < 4; i++, val >>= 8)
		p[i] = val;
}

/* Most inputs get the right size and checksums, to see what is behind them. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max,
			       unsigned int seed)
{
	static const uint8_t start[AT_SIZE] = "\x89SGIC\r\n\x1a\1\0\0";
	size_t from = seed % 4 == 1 && size > HEADER ? HEADER : 0;

	if (seed % 4 == 2 && size >= HEADER) /* the machine alone */
		LLVMFuzzerMutate(data + AT_MACHINE, AT_CRC - AT_MACHINE,
				 AT_CRC - AT_MACHINE);
	else
		size = from +
		       LLVMFuzzerMutate(data + from, size - from, max - from);
	if (seed % 8 == 0 || size < HEADER + 4)
		return size;
	memcpy(data, start, sizeof(start));
	put_le32(data + AT_SIZE, size);
	put_le32(data + AT_CRC, crc32(0, data, AT_CRC));
	put_le32(data + size - 4, crc32(0, data, size - 4));
	return size;
}
