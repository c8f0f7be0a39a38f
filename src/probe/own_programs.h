/* SPDX-License-Identifier: MIT */
/* The programs of hooks that users ask for, among all: which of them are loaded, and their maps. */
#ifndef CUSCOPE_PROBE_OWN_PROGRAMS_H
#define CUSCOPE_PROBE_OWN_PROGRAMS_H

#include <bpf/libbpf.h>

#include "probe/programs.h"

/*
 * Before the object is loaded, and after; `kinds` is of enum own_hooks_kind. Shares of calls that
 * wait are those of calls to the driver, too.
 */
int own_programs_choose(struct bpf_object *object, enum mechanism mechanism, unsigned kinds,
                        bool driver_calls);
int own_programs_fill(struct bpf_object *object, enum mechanism mechanism, unsigned kinds);

#endif
