// SPDX-License-Identifier: MIT
/* The tracepoint kvm:vgic_batch_access */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define TRACEFS "/sys/kernel/tracing"
#define EVENT	TRACEFS "/events/kvm/vgic_batch_access"

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ssize_t len = strlen(text);
	bool ok = fd >= 0 && write(fd, text, len) == len;

	if (fd >= 0)
		close(fd);
	return ok;
}

static size_t read_file(const char *path, char *buf, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	size_t len = 0;

	while (fd >= 0 && (n = read(fd, buf + len, room - 1 - len)) > 0)
		len += n;
	if (fd >= 0)
		close(fd);
	buf[len] = '\0';
	return len;
}

static struct vm *traced_vm(void)
{
	struct vm *vm = plain_vm(1);

	if (access(TRACEFS "/trace", W_OK))
		test_skip("no tracefs here");
	REQUIRE(!access(EVENT "/enable", W_OK), "no event " EVENT);
	REQUIRE(write_file(TRACEFS "/trace", "") &&
			write_file(EVENT "/enable", "1"),
		"cannot enable it");
	return vm;
}

static void has_fields(void)
{
	static const char *const fields[] = {
		" write;",
		" count;",
		" failed;",
		" ns;",
	};
	char buf[4096];
	size_t i;

	traced_vm();
	read_file(EVENT "/format", buf, sizeof(buf));
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		CHECK(strstr(buf, fields[i]), "no field%s", fields[i]);
	write_file(EVENT "/enable", "0");
}

/* "... vgic_batch_access: name value, ..." without the names */
static int parse_numbers(const char *line, unsigned long long *numbers, int max)
{
	int n = 0;
	char *end;

	while (*line && *line != '\n' && n < max) {
		if (*line < '0' || *line > '9') {
			line++;
			continue;
		}
		numbers[n++] = strtoull(line, &end, 0);
		line = end;
	}
	return n;
}

static void check_event(struct vm *vm, bool write, entry_t *e, size_t count,
			unsigned int failed)
{
	unsigned long long numbers[4] = { 0 };
	static char buf[1 << 16];
	const char *line;
	int n;

	write_file(TRACEFS "/trace", "");
	vm_batch(vm, write, e, count);
	read_file(TRACEFS "/trace", buf, sizeof(buf));
	line = strstr(buf, "vgic_batch_access: ");
	if (!CHECK(line, "no event in the trace"))
		return;
	line += strlen("vgic_batch_access: ");
	CHECK(!strstr(line, "vgic_batch_access: "), "more than one event");
	test_diag("%.*s", (int)strcspn(line, "\n"), line);
	CHECK(strstr(line, write ? "set" : "get"), "direction");
	n = parse_numbers(line, numbers, 4);
	CHECK(n == 3 && numbers[0] == count && numbers[1] == failed,
	      "count, failed and ns are %llu, %llu, %llu", numbers[0],
	      numbers[1], numbers[2]);
	CHECK(numbers[2] > 0 && numbers[2] < 10000000000ULL, "%llu ns",
	      numbers[2]);
}

static void events(void)
{
	struct vm *vm = traced_vm();
	entry_t e[7];
	int i;

	for (i = 0; i < 7; i++)
		e[i] = entry(DIST, GIC_ISENABLER + 4, 1);
	check_event(vm, false, e, 7, 0);
	check_event(vm, true, e, 6, 0);
	e[0].group = e[4].group = KVM_DEV_ARM_VGIC_GRP_BATCH_REGS;
	check_event(vm, true, e, 5, 2);
	check_event(vm, false, e, 1, 1);
	write_file(EVENT "/enable", "0");
}

static void one_register(void)
{
	struct vm *vm = traced_vm();
	static char buf[1 << 16];
	uint64_t val;

	write_file(TRACEFS "/trace", "");
	CHECK_RET(vm_get(vm, DIST, GICD_IIDR, &val), 0);
	read_file(TRACEFS "/trace", buf, sizeof(buf));
	CHECK(!strstr(buf, "vgic_batch_access: "), "an event for one register");
	write_file(EVENT "/enable", "0");
}

int main(int argc, char **argv)
{
	static const struct test tests[] = {
		{ "the event has write, count, failed and ns", has_fields },
		{ "one event a batch, with what happened", events },
		{ "no event for a one-register call", one_register },
	};

	return run_tests(argc, argv, tests, ARRAY_SIZE(tests));
}
