// SPDX-License-Identifier: MIT
#include "cuda/driver_words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* By number. */
static const struct xid xids[] = {
	{ 8, "GPU stopped processing",
	  "Work did not come to an end in the time that the driver gives it. Where a GPU also "
	  "drives "
	  "a display, a kernel that runs for seconds is enough.",
	  true },
	{ 13, "exception in the graphics engine",
	  "A kernel did what its hardware refuses: an access out of bounds, a misaligned address, "
	  "an "
	  "illegal instruction. compute-sanitizer finds the place.",
	  true },
	{ 31, "GPU memory page fault",
	  "A kernel or a copy used an address that nothing is mapped at: memory that was freed, or "
	  "beyond an allocation. compute-sanitizer finds the place.",
	  true },
	{ 32, "corrupted push buffer",
	  "The commands that the driver sent were damaged on their way: the PCIe link, the memory "
	  "of "
	  "the host, or a driver's bug.",
	  false },
	{ 38, "driver firmware error",
	  "Firmware and driver disagree. A restart of the machine, then "
	  "another driver version.",
	  false },
	{ 43, "work of a program was stopped",
	  "The program's channel was reset after an error of its own; other programs go on.",
	  true },
	{ 44, "fault in the graphics engine at a context switch",
	  "The GPU could not save or load a program's state.", false },
	{ 45, "work was preempted for clean-up",
	  "The program ended, or failed, while its work ran. An earlier Xid of the same program is "
	  "the cause.",
	  true },
	{ 46, "GPU stopped processing", "The GPU did not answer the driver.", false },
	{ 48, "double-bit ECC error",
	  "Memory of the GPU had an error that could not be corrected. The program ends; the GPU "
	  "should be reset.",
	  false },
	{ 61, "fault in the controller of the GPU", "The GPU needs a reset.", false },
	{ 62, "fault in the controller of the GPU", "The GPU needs a reset.", false },
	{ 63, "a page or row of memory was retired",
	  "A part of the GPU's memory is replaced by a spare one at the next reset.", false },
	{ 64, "a page or row of memory could not be retired",
	  "No spare part of memory is left, or it could not be noted down. The GPU may need to be "
	  "exchanged.",
	  false },
	{ 68, "exception in the video decoder", "The decoder was given what it cannot do.", true },
	{ 69, "error of a class in the graphics engine",
	  "A command had a value that its engine does not know.", true },
	{ 74, "NVLink error",
	  "A link between GPUs, or to a switch, failed. Programs that use it end.", false },
	{ 79, "GPU has fallen off the bus",
	  "The machine does not reach the GPU any more: power, heat, the slot, or the GPU itself.",
	  false },
	{ 92, "many single-bit ECC errors", "Corrected errors of memory come often.", false },
	{ 94, "contained ECC error",
	  "Memory had an error that hit one program alone. That one ends, others go on.", false },
	{ 95, "uncontained ECC error",
	  "Memory had an error that may have hit any program. The GPU needs a reset.", false },
	{ 109, "context switch timed out", "Work of a program did not give the GPU away in time.",
	  true },
	{ 119, "no answer from the GPU firmware",
	  "A request to the firmware (GSP) was not answered. The GPU needs a reset.", false },
	{ 120, "error in the GPU firmware", "The firmware (GSP) failed. The GPU needs a reset.",
	  false },
	{ 121, "corrected error between host and GPU", "The link of a Grace host had an error.",
	  false },
	{ 140, "ECC error that was not corrected",
	  "Memory had an error of which the hardware does not say more.", false },
	{ 143, "GPU did not start", "Its initialisation failed.", false },
	{ 149, "NVLink error", "A link between GPUs reported an error.", false },
	{ 154, "what the GPU needs has changed",
	  "The driver says what is to be done after earlier Xids: a reset, a restart, or nothing.",
	  false },
};

const struct xid *xid_find(uint32_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(xids); i++) {
		if (xids[i].number == number)
			return &xids[i];
	}
	return NULL;
}

/* Up to a comma or the end; what can be shown of it. Returns what follows. */
static const char *take_word(const char *text, char *word, size_t size)
{
	size_t n = 0;

	for (; *text && *text != ','; text++) {
		if (n + 1 < size)
			word[n++] = isprint((unsigned char)*text) ? *text : '?';
	}
	word[n] = '\0';
	while (*text == ',' || *text == ' ')
		text++;
	return text;
}

void xid_parse_text(const char *text, struct xid_text *xid)
{
	char word[16];
	size_t n = 0;

	while (*text == ' ')
		text++;
	xid->pid = 0;
	xid->name[0] = '\0';
	if (!strncmp(text, "pid=", 4)) {
		text = take_word(text + 4, word, sizeof(word));
		xid->pid = (uint32_t)strtoul(word, NULL, 10);
	}
	if (!strncmp(text, "name=", 5))
		text = take_word(text + 5, xid->name, sizeof(xid->name));
	for (; *text && n + 1 < sizeof(xid->text); text++)
		xid->text[n++] = isprint((unsigned char)*text) ? *text : ' ';
	while (n && xid->text[n - 1] == ' ')
		n--;
	xid->text[n] = '\0';
}

bool xid_parse_line(const char *line, struct xid_text *xid)
{
	static const char begin[] = "NVRM: Xid (PCI:";
	const char *at;
	size_t length;
	char *end;

	memset(xid, 0, sizeof(*xid));
	/* further in, a line can have words of any user: options of a mount, names of files */
	if (strncmp(line, begin, sizeof(begin) - 1))
		return false;
	at = line + sizeof(begin) - 1;
	length = strspn(at, "0123456789abcdefABCDEF:.");
	if (!length || length >= sizeof(xid->device))
		return false;
	memcpy(xid->device, at, length);
	at = strstr(at + length, "): ");
	if (!at)
		return false;
	xid->number = (uint32_t)strtoul(at + 3, &end, 10);
	if (end == at + 3 || !xid->number)
		return false;
	xid_parse_text(end + (*end == ','), xid);
	return true;
}

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
