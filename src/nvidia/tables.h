/* SPDX-License-Identifier: MIT */
/*
 * What ioctls of NVIDIA's kernel modules mean, as rows: adding one is adding a row.
 *
 * The fields of a row are one string, `name:type@offset` each, in the order in which they are
 * shown: `client:handle@0 object:*handle@8`. An offset is one of the parameter block; with a `+`
 * before the name it is one of what the block points at. A `*` marks what the driver writes. Types
 * are those of the tables of functions (cuda/row.h): handle, hex, int and uint have 4 bytes here,
 * all others 8. `status` is where the driver puts its own result.
 *
 * Layouts that changed have a row for each, with the first and the last major version of the driver
 * that it is for; 0: no bound. Numbers do not change their meaning.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NVIDIA_NO_STATUS 0xffff

/* What more a number says: the class of an object, or which of the controls it is. */
enum nvidia_detail { DETAIL_NONE, DETAIL_CLASS, DETAIL_CONTROL };

struct nvidia_ioctl {
	uint32_t nr;
	const char *name;
	uint16_t status;      /* offset in the block, or NVIDIA_NO_STATUS */
	uint16_t bytes;       /* of the block where that tells layouts apart; 0: any */
	uint16_t first, last; /* major versions */
	uint8_t detail;       /* enum nvidia_detail */
	uint8_t detail_at;
	const char *fields;
};

extern const struct nvidia_ioctl nvidia_rm_ioctls[], nvidia_uvm_ioctls[];
extern const size_t n_nvidia_rm_ioctls, n_nvidia_uvm_ioctls;

/* By number, in their order. */
struct nvidia_name {
	uint32_t number;
	const char *name;
};

extern const struct nvidia_name nvidia_classes[], nvidia_controls[], nvidia_subdevice_controls[];
extern const size_t n_nvidia_classes, n_nvidia_controls, n_nvidia_subdevice_controls;

/* What is behind the pointer of a block, for some classes and controls. */
struct nvidia_params {
	uint32_t number, mask;
	const char *fields;
};

extern const struct nvidia_params nvidia_class_params[], nvidia_control_params[];
extern const size_t n_nvidia_class_params, n_nvidia_control_params;
