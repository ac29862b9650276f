/* SPDX-License-Identifier: MIT */
/* Reading the arguments of options */
#ifndef SWIFTGIC_TOOLS_OPTIONS_H
#define SWIFTGIC_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* A number up to @max, decimal or as in C; *@end is what comes after it. */
bool parse_number(const char *s, unsigned long max, char **end, uint32_t *val);

/* The same, with nothing after it */
bool parse_whole(const char *s, unsigned long max, uint32_t *val);

/* A number of interrupts that a GICv3 of KVM can have */
bool parse_irqs(const char *s, uint32_t *irqs);

#endif
