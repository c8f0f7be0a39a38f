/* SPDX-License-Identifier: MIT */
/* Functions that stand between CUDA and those who want something of it: no place of a stack. */
#pragma once

#include <stdbool.h>

/* Whether a function of this (demangled) name only passes on requests for memory. */
bool place_is_wrapper(const char *function);

/* The same, or it is a function of CUDA's itself, as where the runtime is linked in. */
bool place_passes_on(const char *function);
