// SPDX-License-Identifier: MIT
#define _GNU_SOURCE /* asprintf(), mkostemp() */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"
#include "store.h"

static int file_failed(struct sgic_error *error, const char *what)
{
	return sgic_fail_errno(error, SGIC_STEP_FILE, -errno, "%s", what);
}

static int write_device(const struct sgic_state *state, const char *path,
			struct sgic_error *error)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret;

	if (fd < 0)
		return file_failed(error, "opening it");
	ret = sgic_state_write(state, fd, error);
	if (close(fd) && !ret)
		ret = file_failed(error, "closing it");
	return ret;
}

static int write_file(const struct sgic_state *state, const char *path,
		      struct sgic_error *error)
{
	const mode_t mask = umask(0);
	char *tmp;
	int fd, ret;

	umask(mask);
	if (asprintf(&tmp, "%s.XXXXXX", path) < 0)
		return sgic_fail(error, SGIC_STEP_MEMORY, -ENOMEM,
				 "no memory for its name");
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0) {
		ret = file_failed(error, "creating a file beside it");
		free(tmp);
		return ret;
	}
	ret = sgic_state_write(state, fd, error);
	if (!ret && (fchmod(fd, 0666 & ~mask) || fsync(fd)))
		ret = file_failed(error, "writing it");
	if (close(fd) && !ret)
		ret = file_failed(error, "closing it");
	if (!ret && rename(tmp, path))
		ret = file_failed(error, "renaming the new file to it");
	if (ret)
		unlink(tmp);
	free(tmp);
	return ret;
}

int store_write(const struct sgic_state *state, const char *path,
		struct sgic_error *error)
{
	struct stat st;

	if (!strcmp(path, "-"))
		return sgic_state_write(state, STDOUT_FILENO, error);
	if (!stat(path, &st) && !S_ISREG(st.st_mode))
		return write_device(state, path, error);
	return write_file(state, path, error);
}

int store_read(struct sgic_state *state, const char *path,
	       struct sgic_error *error)
{
	int fd = STDIN_FILENO, ret;
	ssize_t n;
	char c;

	if (strcmp(path, "-"))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return file_failed(error, "opening it");
	ret = sgic_state_read(state, fd, error);
	if (!ret) {
		do
			n = read(fd, &c, 1);
		while (n < 0 && errno == EINTR);
		if (n < 0)
			ret = file_failed(error, "reading it");
		else if (n)
			ret = sgic_fail(error, SGIC_STEP_FORMAT, -EMSGSIZE,
					"there is more after the snapshot");
	}
	if (fd != STDIN_FILENO)
		close(fd);
	return ret;
}
