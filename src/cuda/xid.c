// SPDX-License-Identifier: MIT
#include "cuda/xid.h"

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
