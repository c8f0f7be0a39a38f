// SPDX-License-Identifier: MIT
/* Records of the kernel's log: whose line it is, and what one of the driver's says of an Xid. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver_words.h"
#include "probe/kernel_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

static void check_plain(const char *text, size_t room)
{
	CHECK(strnlen(text, room) < room);
	for (; *text; text++)
		CHECK(isprint((unsigned char)*text));
}

static void check(const struct xid_text *xid)
{
	check_plain(xid->device, sizeof(xid->device));
	check_plain(xid->name, sizeof(xid->name));
	check_plain(xid->text, sizeof(xid->text));
}

/* Nobody but the kernel is believed: "6," has the facility 0, and 8 is the first of others. */
static void check_record(char *record)
{
	const char *text = kernel_log_text(record);
	struct xid_text xid;

	if (!text)
		return;
	CHECK(isdigit((unsigned char)record[0]) && strtoull(record, NULL, 10) < 8);
	CHECK(!strchr(text, '\n'));
	if (xid_parse_line(text, &xid)) {
		CHECK(xid.number && xid.device[0] && !strncmp(text, "NVRM: Xid (PCI:", 15));
		check(&xid);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct xid_text xid = { 0 };

	if (xid_parse_line(text, &xid)) {
		CHECK(xid.number);
		check(&xid);
	}
	memset(&xid, 0, sizeof(xid));
	xid_parse_text(text, &xid);
	check(&xid);
	CHECK(!xid.number);
	xid_find(xid.pid);
	check_record(text);
	free(text);
	return 0;
}
