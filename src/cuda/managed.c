// SPDX-License-Identifier: MIT
#include "cuda/managed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cuda/xid.h"

static const char *const kinds[MANAGED_KINDS] = {
	[MANAGED_CPU_FAULT] = "CPU fault",
	[MANAGED_GPU_FAULT] = "GPU fault",
	[MANAGED_MIGRATION] = "migration",
	[MANAGED_REVOCATION] = "revocation",
	[MANAGED_THRASHING] = "thrashing",
	[MANAGED_THROTTLING] = "throttling",
	[MANAGED_FATAL_FAULT] = "fatal GPU fault",
	[MANAGED_FAULT_BATCH] = "batch of GPU faults",
	[MANAGED_INTERRUPT] = "interrupt",
	[MANAGED_WAIT] = "wait for the driver",
	[MANAGED_XID] = "Xid",
};

static const char *const causes[] = {
	"fault", "non-replayable fault", "access counter", "prefetch", "eviction",
	"tools", "migrate call",         "range group",    "hint"
};

static const char *managed_kind_name(uint8_t kind)
{
	return kind < MANAGED_KINDS ? kinds[kind] : "?";
}

const char *managed_cause_name(uint8_t cause)
{
	return cause < ARRAY_SIZE(causes) ? causes[cause] : "";
}

static void processor_name(uint8_t processor, char name[16])
{
	if (processor == MANAGED_NOT_KNOWN)
		snprintf(name, 16, "GPU");
	else if (!processor)
		snprintf(name, 16, "CPU");
	else
		snprintf(name, 16, "GPU%u", processor - 1u);
}

static void single_name(const struct managed *event, char *name, size_t size)
{
	char dst[16], src[16];
	const char *cause = managed_cause_name(event->cause);
	const struct xid *xid;

	processor_name(event->dst, dst);
	processor_name(event->src, src);
	switch (event->kind) {
	case MANAGED_CPU_FAULT:
		snprintf(name, size, "CPU fault (%s)", event->cause ? "write" : "read");
		break;
	case MANAGED_GPU_FAULT:
	case MANAGED_THROTTLING:
	case MANAGED_FATAL_FAULT:
		snprintf(name, size, "%s (%s)", kinds[event->kind], dst);
		break;
	case MANAGED_MIGRATION:
		snprintf(name, size, "migration %s to %s%s%s%s", src, dst, *cause ? " (" : "",
		         cause, *cause ? ")" : "");
		break;
	case MANAGED_XID:
		xid = xid_find(event->xid);
		snprintf(name, size, "Xid %u%s%s%s", event->xid, xid ? " (" : "",
		         xid ? xid->name : "", xid ? ")" : "");
		break;
	default:
		snprintf(name, size, "%s", managed_kind_name(event->kind));
	}
}

const char *managed_name(const struct managed *event, char name[MANAGED_NAME])
{
	size_t before = event->sum ? sizeof(MANAGED_SUM) - 1 : 0;

	snprintf(name, MANAGED_NAME, "%s", event->sum ? MANAGED_SUM : "");
	single_name(event, name + before, MANAGED_NAME - before);
	return name;
}

const char *managed_arguments(const struct managed *event)
{
	if (event->sum)
		return "count:u64 bytes:size first:addr last:addr time_ns:u64 sizes:string";
	switch (event->kind) {
	case MANAGED_WAIT:
		return "to_interrupt_ns:u64 to_event_ns:u64 to_run_ns:u64";
	case MANAGED_XID:
		return "xid:uint of_pid:uint text:string";
	case MANAGED_INTERRUPT:
	case MANAGED_FAULT_BATCH:
		return "";
	default:
		return "address:addr bytes:size";
	}
}

const char *managed_library(const struct managed *event)
{
	return event->kind >= MANAGED_INTERRUPT ? "nvidia" : "nvidia-uvm";
}

/* ---- back from names ----------------------------------------------------------------------- */

static const char *take_processor(const char *text, uint8_t *processor)
{
	char *end;
	unsigned long gpu;

	*processor = MANAGED_NOT_KNOWN;
	if (!strncmp(text, "CPU", 3)) {
		*processor = 0;
		return text + 3;
	}
	if (strncmp(text, "GPU", 3))
		return text;
	gpu = strtoul(text + 3, &end, 10);
	if (end > text + 3 && gpu < MANAGED_NOT_KNOWN - 1)
		*processor = (uint8_t)(gpu + 1);
	return end > text + 3 ? end : text + 3;
}

/* " CPU to GPU0 (prefetch)" */
static void take_migration(const char *text, struct managed *event)
{
	text = take_processor(text + (*text == ' '), &event->src);
	if (!strncmp(text, " to ", 4))
		text = take_processor(text + 4, &event->dst);
	if (strncmp(text, " (", 2))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		size_t length = strlen(causes[i]);

		if (!strncmp(text + 2, causes[i], length) && text[2 + length] == ')')
			event->cause = (uint8_t)i;
	}
}

bool managed_parse(const char *name, struct managed *event)
{
	*event = (struct managed){ .cause = MANAGED_NOT_KNOWN,
		                   .src = MANAGED_NOT_KNOWN,
		                   .dst = MANAGED_NOT_KNOWN };
	event->sum = !strncmp(name, MANAGED_SUM, sizeof(MANAGED_SUM) - 1);
	if (event->sum)
		name += sizeof(MANAGED_SUM) - 1;
	for (uint8_t i = 0; i < MANAGED_KINDS; i++) {
		size_t length = strlen(kinds[i]);

		if (strncmp(name, kinds[i], length) || (name[length] && name[length] != ' '))
			continue;
		event->kind = i;
		name += length;
		if (i == MANAGED_MIGRATION)
			take_migration(name, event);
		else if (i == MANAGED_CPU_FAULT)
			event->cause = !strcmp(name, " (write)");
		else if (i == MANAGED_XID)
			event->xid = (uint32_t)strtoul(name, NULL, 10);
		else if (!strncmp(name, " (", 2))
			take_processor(name + 2, &event->dst);
		return true;
	}
	return false;
}
