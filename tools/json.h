/* SPDX-License-Identifier: MIT */
/* Results files, and reading any */
#ifndef SWIFTGIC_TOOLS_JSON_H
#define SWIFTGIC_TOOLS_JSON_H

#include <cjson/cJSON.h>

/* A file of any kind as a string, for the caller to free; NULL with errno set */
char *read_text(const char *path);

/*
 * What is in a file: JSON's null if it is not JSON, or has anything after it.
 * NULL, and said why, if it cannot be read. The caller deletes it.
 */
cJSON *json_read(const char *path);

/*
 * Write @root to a file, and delete it. Returns 0, or -1 with one line about
 * the file printed to stderr.
 */
int json_write(cJSON *root, const char *path);

#endif
