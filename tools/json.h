/* SPDX-License-Identifier: MIT */
/* Reading a results file */
#ifndef SWIFTGIC_TOOLS_JSON_H
#define SWIFTGIC_TOOLS_JSON_H

#include <cjson/cJSON.h>

/*
 * What is in a file: JSON's null if it is not JSON, or has anything after it.
 * NULL, and said why, if it cannot be read. The caller deletes it.
 */
cJSON *json_read(const char *path);

#endif
