// SPDX-License-Identifier: MIT
/* System calls to the driver with any parameters: their names and arguments are what is promised.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nvidia/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

struct head {
	uint8_t syscall, device, version, head, tail, params, ended, unused;
	uint32_t minor, command, number, bytes, tail_at;
	int64_t result;
	uint64_t argument[3];
};

/* A copy of exactly that length, so that a byte too many is found. */
static struct nvidia_bytes part(const uint8_t **data, size_t *size, size_t want, uint32_t at)
{
	struct nvidia_bytes bytes = { .count = want < *size ? want : *size, .at = at };
	uint8_t *copy = malloc(bytes.count ? bytes.count : 1);

	memcpy(copy, *data, bytes.count);
	bytes.data = copy;
	*data += bytes.count;
	*size -= bytes.count;
	return bytes;
}

static void look_at(const struct nvidia_record *record, unsigned version)
{
	struct nvidia_field fields[NVIDIA_FIELDS_MAX];
	struct nvidia_call call;
	struct buf spec = { 0 };
	bool failed;
	size_t n;

	nvidia_identify(record, version, &call);
	CHECK(strlen(call.name) > 0 && strlen(call.name) < NVIDIA_NAME_MAX - 1);
	for (const char *at = call.name; *at; at++)
		CHECK(*at >= ' ' && *at < 127 && !strchr(",\"'\\<>&", *at));
	CHECK(call.library && call.fields && call.more);
	n = nvidia_fields(&call, fields, &spec);
	CHECK(n <= NVIDIA_FIELDS_MAX);
	for (size_t i = 0; i < n; i++) {
		const uint8_t *processor = nvidia_processor(record, &fields[i]);
		uint64_t value = 1;

		CHECK(nvidia_value(record, &fields[i], &value) || !value);
		CHECK(fields[i].width > 4 || value <= UINT32_MAX || fields[i].argument);
		if (processor)
			CHECK(processor[0] + processor[15] <= 510);
	}
	CHECK(nvidia_result(record, &call, &failed) ? failed : !failed);
	buf_free(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nvidia_record record = { 0 };
	struct nvidia_window window;
	struct head head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	size -= sizeof(head);
	record.syscall = head.syscall % (NVIDIA_SYSCALLS + 1);
	record.device = head.device % (NVIDIA_DEVICES + 1);
	record.minor = head.minor;
	record.command = head.command;
	record.number = head.number;
	record.bytes = head.bytes;
	record.result = head.result;
	record.ended = head.ended & 1;
	memcpy(record.argument, head.argument, sizeof(record.argument));
	record.head = part(&data, &size, head.head, 0);
	record.tail = part(&data, &size, head.tail, head.tail_at);
	record.params = part(&data, &size, head.params, 0);
	look_at(&record, head.version * 10u);
	window = nvidia_uvm_window(head.command, head.version * 10u);
	CHECK(window.head <= NVIDIA_HEAD_MAX && window.tail <= NVIDIA_TAIL_MAX);
	free((void *)record.head.data);
	free((void *)record.tail.data);
	free((void *)record.params.data);
	return 0;
}
