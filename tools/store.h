/* SPDX-License-Identifier: MIT */
/* A snapshot in a file */
#ifndef SWIFTGIC_TOOLS_STORE_H
#define SWIFTGIC_TOOLS_STORE_H

#include <swiftgic.h>

/*
 * Write a snapshot to @path. A file that is there is replaced when all of the
 * new one has been written, and left alone on failure; what is no file (a
 * device, a pipe) is written to as it is, "-" is standard output.
 *
 * Return: 0, or a negative errno, described by @error.
 */
int store_write(const struct sgic_state *state, const char *path,
		struct sgic_error *error);

/* Read one, from standard input if @path is "-", with nothing after it. */
int store_read(struct sgic_state *state, const char *path,
	       struct sgic_error *error);

#endif
