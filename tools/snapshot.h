/* SPDX-License-Identifier: MIT */
/* What the commands that print snapshots share */
#ifndef SWIFTGIC_TOOLS_SNAPSHOT_H
#define SWIFTGIC_TOOLS_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>
#include <swiftgic.h>

/*
 * The state in the snapshot at @path, "-" for standard input, which has to end
 * after it. NULL, and said why, if there is none. To be freed.
 */
struct sgic_state *snapshot_load(const char *path);

/* "0x" and as many digits as the register has */
#define HEX_SIZE 20
const char *hex_value(const struct sgic_value *value, char buf[HEX_SIZE]);

/* "Aff3.Aff2.Aff1.Aff0" */
#define AFFINITY_SIZE 16
const char *affinity(uint64_t mpidr, char buf[AFFINITY_SIZE]);

/* What there is to say of an interrupt */
enum irq_field {
	IRQ_PRIORITY,
	IRQ_GROUP,
	IRQ_TRIGGER,
	IRQ_ENABLED,
	IRQ_LATCHED,
	IRQ_LINE,
	IRQ_ACTIVE,
	IRQ_TARGET,
	NR_IRQ_FIELDS,
};

extern const char *const irq_field_names[NR_IRQ_FIELDS];

/* Equal if the field is the same of both. */
uint64_t irq_field(const struct sgic_irq *irq, enum irq_field field);

#define IRQ_TEXT_SIZE AFFINITY_SIZE
const char *irq_text(const struct sgic_irq *irq, enum irq_field field,
		     char buf[IRQ_TEXT_SIZE]);
cJSON *irq_json(const struct sgic_irq *irq, enum irq_field field);

/* "INTID 27 (vCPU 5)" as a JSON object, for more to be added */
cJSON *irq_json_identity(const struct sgic_irq *irq);

/* A register without its value, likewise */
cJSON *register_json_identity(const struct sgic_value *value);

cJSON *machine_json(const struct sgic_state *state);

/* Prints and deletes it. Returns an exit status. */
int json_print(cJSON *root);

/*
 * Calls @each with each interrupt, those of vCPU 0 first, then of vCPU 1, and
 * so on, the SPIs last.
 */
void each_irq(const struct sgic_state *state,
	      void (*each)(const struct sgic_irq *irq, void *data), void *data);

/* Escape sequences on a terminal whose user has not set NO_COLOR; else "" */
enum colour {
	PLAIN,
	BOLD,
	RED,
	GREEN,
};

const char *colour(enum colour colour);

#endif
