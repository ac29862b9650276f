// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

/* A file of any kind as a string; NULL with errno set */
static char *read_file(const char *path)
{
	size_t len = 0, room = 1 << 16;
	FILE *f = fopen(path, "r");
	char *buf, *more;

	if (!f)
		return NULL;
	buf = malloc(room);
	while (buf) {
		len += fread(buf + len, 1, room - len - 1, f);
		if (len < room - 1)
			break;
		room *= 2;
		more = realloc(buf, room);
		if (!more)
			free(buf);
		buf = more;
	}
	if (buf)
		buf[len] = '\0';
	fclose(f);
	return buf;
}

cJSON *json_read(const char *path)
{
	char *text = read_file(path);
	cJSON *root;

	if (!text) {
		fprintf(stderr, "swiftgic: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	root = cJSON_ParseWithOpts(text, NULL, true);
	free(text);
	return root ? root : cJSON_CreateNull();
}
