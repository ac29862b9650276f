// SPDX-License-Identifier: MIT
/*
 * /bin/sh of the lab's host, where QEMU's "exec:" migration is how two QEMUs
 * talk, as the kernel has no sockets:
 *
 *   sh -c "IN OUT [AFTER OFFSET XOR]"
 *
 * copies stdin to the pipe OUT and the pipe IN to stdout, until both have
 * ended; "-" for none. To have a stream fail, the byte OFFSET bytes behind the
 * first occurrence of the string AFTER in stdin is changed by XOR.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIPE_BYTES (1 << 20)

/* What is to be changed in what goes from stdin to OUT */
static struct {
	const char *after;
	size_t matched; /* bytes of it that the stream so far ends with */
	unsigned long offset;
	unsigned long xor ;
} change;

static void alter(uint8_t *buf, size_t len)
{
	size_t i;

	for (i = 0; i < len && change.after; i++) {
		if (change.after[change.matched]) {
			/* No prefix of such a name is inside of it. */
			if (buf[i] != (uint8_t)change.after[change.matched])
				change.matched = 0;
			if (buf[i] == (uint8_t)change.after[change.matched])
				change.matched++;
		} else if (change.offset-- == 0) {
			buf[i] ^= change.xor ;
			change.after = NULL;
		}
	}
}

static bool write_all(int fd, const uint8_t *buf, size_t len)
{
	ssize_t n;

	for (; len; buf += n, len -= n) {
		n = write(fd, buf, len);
		if (n < 0)
			return false;
	}
	return true;
}

/* Returns false at the end of the stream, or if nobody reads it any more. */
static bool copy(int from, int to, bool altered)
{
	static uint8_t buf[PIPE_BYTES];
	ssize_t len;

	if (!altered)
		return splice(from, NULL, to, NULL, PIPE_BYTES, 0) > 0;
	len = read(from, buf, sizeof(buf));
	if (len <= 0)
		return false;
	alter(buf, len);
	return write_all(to, buf, len);
}

static int open_end(const char *path, int flags)
{
	int fd;

	if (!strcmp(path, "-"))
		return -1;
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "relay: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	return fd;
}

int main(int argc, char **argv)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	char in[128], out[128], after[64] = "";
	int to[2], nr;

	if (argc != 3 || strcmp(argv[1], "-c"))
		return 2;
	nr = sscanf(argv[2], "%127s %127s %63s %lu %lx", in, out, after,
		    &change.offset, &change.xor);
	if (nr != 2 && nr != 5) {
		fprintf(stderr, "relay: cannot run '%s'\n", argv[2]);
		return 2;
	}
	if (nr == 5)
		change.after = after;
	signal(SIGPIPE, SIG_IGN);
	fcntl(STDIN_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
	fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES);

	/* The reading end does not wait for the other side; the writing does. */
	fds[0].fd = strcmp(out, "-") ? STDIN_FILENO : -1;
	fds[1].fd = open_end(in, O_RDONLY | O_NONBLOCK);
	to[0] = open_end(out, O_WRONLY);
	to[1] = STDOUT_FILENO;
	fcntl(fds[1].fd, F_SETFL, 0);
	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		if (poll(fds, 2, -1) < 0)
			return 1;
		for (nr = 0; nr < 2; nr++) {
			if (fds[nr].fd < 0 || !fds[nr].revents)
				continue;
			if (copy(fds[nr].fd, to[nr], nr == 0 && change.after))
				continue;
			close(fds[nr].fd);
			close(to[nr]);
			fds[nr].fd = -1;
		}
	}
	return 0;
}
