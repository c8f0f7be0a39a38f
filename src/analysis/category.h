/* SPDX-License-Identifier: MIT */
/* The stages of work with a GPU that a timeline tells apart: coarser than classes of functions. */
#pragma once

#include "trace/event.h"

enum category {
	CATEGORY_INIT,
	CATEGORY_MEMORY,
	CATEGORY_TRANSFER,
	CATEGORY_KERNEL,
	CATEGORY_SYNC,
	CATEGORY_CONTEXT,
	CATEGORY_STREAM,
	CATEGORY_MODULE,
	CATEGORY_OTHER,
	CATEGORY_COUNT,
};

enum category category_of(const struct function *function);
enum category category_of_activity(const struct activity *activity);

const char *category_name(enum category category); /* "memory_mgmt" */
char category_letter(enum category category);      /* a capital */
