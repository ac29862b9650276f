// SPDX-License-Identifier: MIT
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "snapshot.h"
#include "store.h"
#include "swiftgic.h"
#include "vgic.h"

struct sgic_state *snapshot_load(const char *path)
{
	struct sgic_state *state = sgic_state_new();
	struct sgic_error error = { .message = "out of memory" };

	if (state && !store_read(state, path, &error))
		return state;
	fprintf(stderr, "swiftgic: %s: %s\n",
		strcmp(path, "-") ? path : "standard input", error.message);
	sgic_state_free(state);
	return NULL;
}

/* Text */

const char *hex_value(const struct sgic_value *value, char buf[HEX_SIZE])
{
	bool wide = value->group == KVM_DEV_ARM_VGIC_GRP_CPU_SYSREGS ||
		    value->group == KVM_DEV_ARM_VGIC_GRP_ITS_REGS;

	snprintf(buf, HEX_SIZE, "0x%0*" PRIx64, wide ? 16 : 8, value->val);
	return buf;
}

const char *affinity(uint64_t mpidr, char buf[AFFINITY_SIZE])
{
	snprintf(buf, AFFINITY_SIZE, "%u.%u.%u.%u",
		 (unsigned int)(mpidr >> 32 & 0xff),
		 (unsigned int)(mpidr >> 16 & 0xff),
		 (unsigned int)(mpidr >> 8 & 0xff),
		 (unsigned int)(mpidr & 0xff));
	return buf;
}

const char *colour(enum colour colour)
{
	static const char *const sequences[] = {
		[PLAIN] = "\033[0m",
		[BOLD] = "\033[1m",
		[RED] = "\033[31m",
		[GREEN] = "\033[32m",
	};
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if ((no_color && *no_color) || !term || !strcmp(term, "dumb") ||
	    !isatty(STDOUT_FILENO))
		return "";
	return sequences[colour];
}

/* Interrupts */

const char *const irq_field_names[NR_IRQ_FIELDS] = {
	[IRQ_PRIORITY] = "priority", [IRQ_GROUP] = "group",
	[IRQ_TRIGGER] = "trigger",   [IRQ_ENABLED] = "enabled",
	[IRQ_LATCHED] = "latched",   [IRQ_LINE] = "line",
	[IRQ_ACTIVE] = "active",     [IRQ_TARGET] = "target",
};

uint64_t irq_field(const struct sgic_irq *irq, enum irq_field field)
{
	switch (field) {
	case IRQ_PRIORITY:
		return irq->priority;
	case IRQ_GROUP:
		return irq->group1;
	case IRQ_TRIGGER:
		return irq->edge;
	case IRQ_ENABLED:
		return irq->enabled;
	case IRQ_LATCHED:
		return irq->latched;
	case IRQ_LINE:
		return irq->line;
	case IRQ_ACTIVE:
		return irq->active;
	default:
		/* the affinity counts only if it is not "any" */
		return irq->any ? UINT64_MAX : irq->target;
	}
}

const char *irq_text(const struct sgic_irq *irq, enum irq_field field,
		     char buf[IRQ_TEXT_SIZE])
{
	uint64_t val = irq_field(irq, field);

	switch (field) {
	case IRQ_PRIORITY:
		snprintf(buf, IRQ_TEXT_SIZE, "0x%02x", (unsigned int)val);
		return buf;
	case IRQ_GROUP:
		return val ? "1" : "0";
	case IRQ_TRIGGER:
		return val ? "edge" : "level";
	case IRQ_TARGET:
		if (irq->vcpu >= 0)
			return "-";
		return irq->any ? "any" : affinity(val, buf);
	default:
		return val ? "yes" : "no";
	}
}

cJSON *irq_json(const struct sgic_irq *irq, enum irq_field field)
{
	uint64_t val = irq_field(irq, field);
	char buf[IRQ_TEXT_SIZE];

	switch (field) {
	case IRQ_PRIORITY:
	case IRQ_GROUP:
		return cJSON_CreateNumber(val);
	case IRQ_TRIGGER:
		return cJSON_CreateString(irq_text(irq, field, buf));
	case IRQ_TARGET:
		return irq->vcpu >= 0
			       ? cJSON_CreateNull()
			       : cJSON_CreateString(irq_text(irq, field, buf));
	default:
		return cJSON_CreateBool(val);
	}
}

void each_irq(const struct sgic_state *state,
	      void (*each)(const struct sgic_irq *irq, void *data), void *data)
{
	struct sgic_machine machine;
	struct sgic_irq irq;
	uint32_t vcpu, i;

	sgic_state_machine(state, &machine);
	for (vcpu = 0; vcpu < machine.nr_vcpus; vcpu++)
		for (i = 0; i < 32; i++)
			if (!sgic_state_irq(state, i, vcpu, &irq))
				each(&irq, data);
	for (i = 32; i < machine.nr_irqs; i++)
		if (!sgic_state_irq(state, i, 0, &irq))
			each(&irq, data);
}

/* JSON */

static void add_index(cJSON *obj, const char *name, int32_t index)
{
	if (index < 0)
		cJSON_AddNullToObject(obj, name);
	else
		cJSON_AddNumberToObject(obj, name, index);
}

cJSON *irq_json_identity(const struct sgic_irq *irq)
{
	cJSON *obj = cJSON_CreateObject();

	cJSON_AddNumberToObject(obj, "intid", irq->intid);
	add_index(obj, "vcpu", irq->vcpu);
	return obj;
}

cJSON *register_json_identity(const struct sgic_value *value)
{
	cJSON *obj = cJSON_CreateObject();
	char attr[HEX_SIZE];

	snprintf(attr, sizeof(attr), "0x%" PRIx64, value->attr);
	cJSON_AddStringToObject(obj, "name", value->name);
	cJSON_AddNumberToObject(obj, "group", value->group);
	cJSON_AddStringToObject(obj, "attr", attr);
	add_index(obj, "vcpu", value->vcpu);
	add_index(obj, "its", value->its);
	return obj;
}

cJSON *machine_json(const struct sgic_state *state)
{
	cJSON *obj = cJSON_CreateObject(), *list;
	struct sgic_machine machine;
	char buf[AFFINITY_SIZE];

	sgic_state_machine(state, &machine);
	cJSON_AddNumberToObject(obj, "vcpus", machine.nr_vcpus);
	cJSON_AddNumberToObject(obj, "interrupts", machine.nr_irqs);
	cJSON_AddNumberToObject(obj, "its", machine.nr_its);
	cJSON_AddNumberToObject(obj, "priority_bits", machine.pri_bits);
	cJSON_AddNumberToObject(obj, "list_registers", machine.nr_lrs);
	cJSON_AddBoolToObject(obj, "lpis", machine.lpis);
	cJSON_AddBoolToObject(obj, "el2", machine.el2);
	list = cJSON_AddArrayToObject(obj, "affinities");
	for (uint32_t v = 0; v < machine.nr_vcpus; v++)
		cJSON_AddItemToArray(list,
				     cJSON_CreateString(affinity(
					     sgic_state_mpidr(state, v), buf)));
	return obj;
}

int json_print(cJSON *root)
{
	char *text = cJSON_Print(root);

	cJSON_Delete(root);
	if (!text) {
		fprintf(stderr, "swiftgic: out of memory\n");
		return EXIT_FAILED;
	}
	puts(text);
	free(text);
	return EXIT_OK;
}
