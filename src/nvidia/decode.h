/* SPDX-License-Identifier: MIT */
/*
 * From a system call to a device of NVIDIA's driver, as it was recorded, to its name, its arguments
 * and its result. Nothing in a record is believed: all of it is a target's.
 *
 *   nvidia_identify   which call it is: its name, and where its arguments are
 *   nvidia_fields     these, parsed once for each name
 *   nvidia_value, nvidia_processor, nvidia_result
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "nvidia/devices.h"

#define NVIDIA_NAME_MAX   96
#define NVIDIA_FIELDS_MAX 12
#define NVIDIA_UUID_BYTES 16

enum nvidia_syscall {
	NVIDIA_IOCTL = 1,
	NVIDIA_OPEN,
	NVIDIA_CLOSE,
	NVIDIA_MMAP,
	NVIDIA_POLL,
	NVIDIA_SYSCALLS
};

/* The bytes that were read of the parameters: from `at` of the block, or what it points at. */
struct nvidia_bytes {
	const uint8_t *data;
	size_t count;
	uint32_t at;
};

struct nvidia_record {
	enum nvidia_syscall syscall;
	enum nvidia_device device;
	uint32_t minor;
	int32_t fd;
	uint32_t command; /* as the program gave it */
	uint32_t number;  /* of frontend devices that of XFER_CMD, where it was one */
	uint32_t bytes;   /* of the block, as the command says; 0: it does not */
	int64_t result;
	bool ended;
	uint64_t argument[3]; /* mmap: address, bytes; poll: descriptors, timeout in ms */
	struct nvidia_bytes head, tail, params;
};

/* Strings that are not in `name` live as long as the program. */
struct nvidia_call {
	char name[NVIDIA_NAME_MAX]; /* "RM_CONTROL GPFIFO_SCHEDULE (TSG)" */
	const char *library;        /* the kernel module: "nvidia" */
	const char *fields, *more;  /* see tables.h */
	uint16_t status;            /* offset, or NVIDIA_NO_STATUS */
	bool known;                 /* its number has a row; false: it is in the name */
};

/* `version`: the driver's major one; 0: not known, and taken for the newest. */
void nvidia_identify(const struct nvidia_record *record, unsigned version,
                     struct nvidia_call *call);

struct nvidia_field {
	char name[24], word[12];
	uint16_t at;
	uint8_t width; /* bytes: 4, 8, or 16 of a processor */
	bool out, params;
	bool argument; /* `at` is an index of record.argument, and not an offset */
};

/*
 * The arguments of a call, and `spec`, the same in the language of cuda/row.h. Returns how many.
 * Those that do not fit are left out.
 */
size_t nvidia_fields(const struct nvidia_call *call, struct nvidia_field fields[NVIDIA_FIELDS_MAX],
                     struct buf *spec);

/* False where these bytes were not read; the value is 0 then. */
bool nvidia_value(const struct nvidia_record *record, const struct nvidia_field *field,
                  uint64_t *value);

/* The UUID of a field of 16 bytes; NULL where it was not read. */
const uint8_t *nvidia_processor(const struct nvidia_record *record,
                                const struct nvidia_field *field);

/*
 * The negative errno that the system call failed with, else the driver's status; 0 where there is
 * neither. `failed`: it did not do what it is for.
 */
int32_t nvidia_result(const struct nvidia_record *record, const struct nvidia_call *call,
                      bool *failed);

/* ---- what the programs are to read ----------------------------------------------------------- */

#define NVIDIA_HEAD_MAX   128
#define NVIDIA_TAIL_MAX   16
#define NVIDIA_PARAMS_MAX 160

/* Of the block of a UVM ioctl, whose command does not say how large it is. */
struct nvidia_window {
	uint16_t head, tail_at, tail;
};

/* Zeroes for numbers that have no row. */
struct nvidia_window nvidia_uvm_window(uint32_t number, unsigned version);
