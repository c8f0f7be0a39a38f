// SPDX-License-Identifier: MIT
#include "nvidia/decode.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "nvidia/tables.h"

#define IOCTL_TYPE      0x46 /* 'F' */
#define LEGACY_CONTROL  0x8000
#define CLASS_SUBDEVICE 0x2080

/* ---- bytes ----------------------------------------------------------------------------------- */

static const uint8_t *bytes_at(const struct nvidia_bytes *bytes, uint32_t at, size_t width)
{
	if (!bytes->data || at < bytes->at || at - bytes->at > bytes->count ||
	    bytes->count - (at - bytes->at) < width)
		return NULL;
	return bytes->data + (at - bytes->at);
}

static const uint8_t *block_at(const struct nvidia_record *record, uint32_t at, size_t width)
{
	const uint8_t *found = bytes_at(&record->head, at, width);

	return found ? found : bytes_at(&record->tail, at, width);
}

static bool block_u32(const struct nvidia_record *record, uint32_t at, uint32_t *value)
{
	const uint8_t *bytes = block_at(record, at, sizeof(*value));

	*value = 0;
	if (bytes)
		memcpy(value, bytes, sizeof(*value));
	return bytes != NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int compare_number(const void *key, const void *row)
{
	uint32_t number = *(const uint32_t *)key, other = ((const struct nvidia_name *)row)->number;

	return (number > other) - (number < other);
}

static const char *name_of(const struct nvidia_name *names, size_t n, uint32_t number)
{
	const struct nvidia_name *found =
		bsearch(&number, names, n, sizeof(*names), compare_number);

	return found ? found->name : NULL;
}

/* Many classes have a control of the same name. */
static const char *object_of(uint32_t class)
{
	switch (class) {
	case 0:
		return " (client)";
	case 0x0080:
		return " (device)";
	case 0xa06c:
		return " (TSG)";
	default:
		return (class & 0xff) == 0x6f ? " (channel)" : "";
	}
}

static bool name_control(char *name, size_t room, uint32_t number)
{
	uint32_t class = number >> 16;
	const char *found =
		class == CLASS_SUBDEVICE
			? name_of(nvidia_subdevice_controls, n_nvidia_subdevice_controls, number)
			: name_of(nvidia_controls, n_nvidia_controls, number);

	if (found)
		snprintf(name, room, "RM_CONTROL %s%s", found, object_of(class));
	else
		snprintf(name, room, "RM_CONTROL 0x%08x%s%s", number, object_of(class),
		         number & LEGACY_CONTROL ? " (legacy)" : "");
	return found != NULL;
}

static bool name_class(char *name, size_t room, const char *what, uint32_t number)
{
	const char *found = name_of(nvidia_classes, n_nvidia_classes, number);

	if (found)
		snprintf(name, room, "%s %s", what, found);
	else
		snprintf(name, room, "%s 0x%04x", what, number);
	return found != NULL;
}

static const char *params_of(const struct nvidia_params *rows, size_t n, uint32_t number)
{
	for (size_t i = 0; i < n; i++) {
		if ((number & rows[i].mask) == rows[i].number)
			return rows[i].fields;
	}
	return "";
}

static void add_detail(const struct nvidia_record *record, const struct nvidia_ioctl *row,
                       struct nvidia_call *call)
{
	uint32_t number;

	if (row->detail == DETAIL_NONE)
		return;
	if (!block_u32(record, row->detail_at, &number)) {
		snprintf(call->name, sizeof(call->name), "%s (not read)", row->name);
		return;
	}
	if (row->detail == DETAIL_CONTROL) {
		call->known = name_control(call->name, sizeof(call->name), number);
		call->more = params_of(nvidia_control_params, n_nvidia_control_params, number);
		return;
	}
	call->known = name_class(call->name, sizeof(call->name), row->name, number);
	if (!strcmp(row->name, "RM_ALLOC")) /* others have no parameters behind theirs */
		call->more = params_of(nvidia_class_params, n_nvidia_class_params, number);
}

/* ---- which call it is ------------------------------------------------------------------------ */

static bool fits_version(const struct nvidia_ioctl *row, unsigned version)
{
	if (!version)
		return !row->last;
	return version >= row->first && (!row->last || version <= row->last);
}

/* A layout that the size tells apart is no other's, whatever the version says. */
static const struct nvidia_ioctl *row_of(const struct nvidia_ioctl *rows, size_t n, uint32_t number,
                                         uint32_t bytes, unsigned version)
{
	for (size_t i = 0; i < n; i++) {
		if (rows[i].nr == number && (!rows[i].bytes || rows[i].bytes == bytes) &&
		    fits_version(&rows[i], version))
			return &rows[i];
	}
	return NULL;
}

static bool is_frontend(enum nvidia_device device)
{
	return device == NVIDIA_GPU || device == NVIDIA_CONTROL;
}

static bool is_uvm(enum nvidia_device device)
{
	return device == NVIDIA_UVM || device == NVIDIA_UVM_TOOLS;
}

static void name_unknown(const struct nvidia_record *record, struct nvidia_call *call)
{
	char device[32];

	nvidia_device_name(record->device, record->minor, device, sizeof(device));
	if (is_frontend(record->device))
		snprintf(call->name, sizeof(call->name), "ioctl 0x%02x/0x%02x (%s)",
		         record->command >> 8 & 0xff, record->number & 0xff, device);
	else if (is_uvm(record->device))
		snprintf(call->name, sizeof(call->name), "ioctl %u (%s)", record->command, device);
	else
		snprintf(call->name, sizeof(call->name), "ioctl 0x%08x (%s)", record->command,
		         device);
	call->known = false;
}

static void identify_ioctl(const struct nvidia_record *record, unsigned version,
                           struct nvidia_call *call)
{
	const struct nvidia_ioctl *row = NULL;

	if (is_frontend(record->device) && (record->command >> 8 & 0xff) == IOCTL_TYPE)
		row = row_of(nvidia_rm_ioctls, n_nvidia_rm_ioctls, record->number & 0xff,
		             record->bytes, version);
	else if (is_uvm(record->device))
		row = row_of(nvidia_uvm_ioctls, n_nvidia_uvm_ioctls, record->command, 0, version);
	if (!row) {
		name_unknown(record, call);
		return;
	}
	snprintf(call->name, sizeof(call->name), "%s", row->name);
	call->fields = row->fields;
	call->status = row->status;
	add_detail(record, row, call);
}

/* Of other calls: `#n` is a number of the record itself. */
static const struct {
	const char *name, *fields;
} syscalls[NVIDIA_SYSCALLS] = {
	[NVIDIA_IOCTL] = { "ioctl", "" },
	[NVIDIA_OPEN] = { "open", "" },
	[NVIDIA_CLOSE] = { "close", "" },
	[NVIDIA_MMAP] = { "mmap", "#length:size@1 #address:*addr@0" },
	[NVIDIA_POLL] = { "poll", "#descriptors:uint@0 #timeout_ms:int@1" },
};

/* One that could not be opened has no number: its path says which it was to be. */
static void name_of_path(const struct nvidia_record *record, struct nvidia_call *call, char *name,
                         size_t room)
{
	static const char folder[] = "/dev/";
	const uint8_t *path = bytes_at(&record->head, 0, sizeof(folder));
	size_t at = sizeof(folder) - 1, n = 0;

	for (; path && at < record->head.count && n + 1 < room; at++, n++) {
		if (!isalnum(path[at]) && path[at] != '-' && path[at] != '/')
			break;
		name[n] = (char)path[at];
	}
	name[n] = '\0';
	if (!n)
		snprintf(name, room, "unknown");
	call->library = strncmp(name, "nvidia-uvm", 10) ? "nvidia" : "nvidia-uvm";
}

void nvidia_identify(const struct nvidia_record *record, unsigned version, struct nvidia_call *call)
{
	*call = (struct nvidia_call){ .library = nvidia_device_library(record->device),
		                      .fields = "",
		                      .more = "",
		                      .status = NVIDIA_NO_STATUS,
		                      .known = true };
	if (record->syscall == NVIDIA_IOCTL) {
		identify_ioctl(record, version, call);
	} else if (record->syscall > NVIDIA_IOCTL && record->syscall < NVIDIA_SYSCALLS) {
		char device[32];

		if (record->syscall == NVIDIA_OPEN && !record->device)
			name_of_path(record, call, device, sizeof(device));
		else
			nvidia_device_name(record->device, record->minor, device, sizeof(device));
		snprintf(call->name, sizeof(call->name), "%s %s", syscalls[record->syscall].name,
		         device);
		call->fields = syscalls[record->syscall].fields;
	} else {
		snprintf(call->name, sizeof(call->name), "unknown");
		call->known = false;
	}
}

/* ---- arguments ------------------------------------------------------------------------------- */

static uint8_t width_of(const char *word)
{
	static const char *const narrow[] = { "handle", "hex", "int", "uint" };

	for (size_t i = 0; i < ARRAY_SIZE(narrow); i++) {
		if (!strcmp(word, narrow[i]))
			return 4;
	}
	return strcmp(word, "processor") ? 8 : NVIDIA_UUID_BYTES;
}

/* One `name:type@offset`; true where there was one. */
static bool read_field(const char **at, struct nvidia_field *field)
{
	char word[16];
	int used = 0;
	unsigned offset;

	*field = (struct nvidia_field){ 0 };
	*at += strspn(*at, " ");
	field->params = **at == '+';
	field->argument = **at == '#';
	*at += field->params || field->argument;
	if (sscanf(*at, "%23[a-z_]:%15[a-z0-9*]@%u%n", field->name, word, &offset, &used) != 3 ||
	    !used)
		return false;
	field->out = word[0] == '*';
	snprintf(field->word, sizeof(field->word), "%.11s", word + field->out);
	field->at = (uint16_t)offset;
	field->width = width_of(field->word);
	*at += used;
	return true;
}

static void add_spec(struct buf *spec, const struct nvidia_field *field)
{
	bool text = field->width == NVIDIA_UUID_BYTES;

	buf_printf(spec, "%s%s:%s%s", spec->len ? " " : "", field->name,
	           field->out && !text ? "*" : "", text ? "string" : field->word);
}

size_t nvidia_fields(const struct nvidia_call *call, struct nvidia_field fields[NVIDIA_FIELDS_MAX],
                     struct buf *spec)
{
	const char *lists[] = { call->fields, call->more };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		for (const char *at = lists[i];
		     n < NVIDIA_FIELDS_MAX && read_field(&at, &fields[n]); n++)
			add_spec(spec, &fields[n]);
	}
	return n;
}

static const uint8_t *field_bytes(const struct nvidia_record *record,
                                  const struct nvidia_field *field)
{
	return field->params ? bytes_at(&record->params, field->at, field->width)
	                     : block_at(record, field->at, field->width);
}

bool nvidia_value(const struct nvidia_record *record, const struct nvidia_field *field,
                  uint64_t *value)
{
	const uint8_t *bytes;

	*value = 0;
	if (field->argument) {
		*value = field->at < ARRAY_SIZE(record->argument) ? record->argument[field->at] : 0;
		return true;
	}
	bytes = field_bytes(record, field);
	if (!bytes || field->width > sizeof(*value))
		return false;
	memcpy(value, bytes, field->width); /* little-endian, as all that have this driver */
	return true;
}

const uint8_t *nvidia_processor(const struct nvidia_record *record,
                                const struct nvidia_field *field)
{
	return field->width == NVIDIA_UUID_BYTES ? field_bytes(record, field) : NULL;
}

#define ERRNO_MAX 4095

int32_t nvidia_result(const struct nvidia_record *record, const struct nvidia_call *call,
                      bool *failed)
{
	uint32_t status = 0;

	*failed = false;
	if (!record->ended)
		return 0;
	if (record->result < 0 && record->result >= -ERRNO_MAX) {
		*failed = true;
		return (int32_t)record->result;
	}
	if (call->status != NVIDIA_NO_STATUS)
		block_u32(record, call->status, &status);
	*failed = status != 0;
	return status <= INT32_MAX ? (int32_t)status : INT32_MAX;
}

/* ---- what is to be read ---------------------------------------------------------------------- */

static void reach(struct nvidia_window *window, uint32_t at, uint32_t width)
{
	uint32_t end;

	if (at + width <= NVIDIA_HEAD_MAX) {
		if (window->head < at + width)
			window->head = (uint16_t)(at + width);
		return;
	}
	end = window->tail ? window->tail_at + window->tail : 0;
	if (!window->tail || at < window->tail_at)
		window->tail_at = (uint16_t)at;
	if (end < at + width)
		end = at + width;
	window->tail = (uint16_t)(end - window->tail_at);
	if (window->tail > NVIDIA_TAIL_MAX)
		window->tail = NVIDIA_TAIL_MAX;
}

struct nvidia_window nvidia_uvm_window(uint32_t number, unsigned version)
{
	const struct nvidia_ioctl *row =
		row_of(nvidia_uvm_ioctls, n_nvidia_uvm_ioctls, number, 0, version);
	struct nvidia_window window = { 0 };
	struct nvidia_field field;

	if (!row)
		return window;
	for (const char *at = row->fields; read_field(&at, &field);)
		reach(&window, field.at, field.width);
	if (row->status != NVIDIA_NO_STATUS)
		reach(&window, row->status, 4);
	return window;
}
