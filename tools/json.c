// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"

char *read_text(const char *path)
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
	char *text = read_text(path);
	cJSON *root;

	if (!text) {
		fprintf(stderr, "swiftgic: %s: %s\n", path, strerror(errno));
		return NULL;
	}
	root = cJSON_ParseWithOpts(text, NULL, true);
	free(text);
	return root ? root : cJSON_CreateNull();
}

int json_write(cJSON *root, const char *path)
{
	char *text = cJSON_Print(root);
	FILE *f = text ? fopen(path, "w") : NULL;
	int ret = -1;

	if (f) {
		ret = fprintf(f, "%s\n", text) < 0 ? -1 : 0;
		if (fclose(f))
			ret = -1;
	}
	if (ret)
		fprintf(stderr, "swiftgic: %s: %s\n", path, strerror(errno));
	free(text);
	cJSON_Delete(root);
	return ret;
}
