/* SPDX-License-Identifier: MIT */
/* The table of processes of `cuscope info`, in both forms. */
#ifndef CUSCOPE_CLI_INFO_PROCESSES_H
#define CUSCOPE_CLI_INFO_PROCESSES_H

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "report/contents.h"

/* To one of the two. 0 or a negative errno. */
int info_add_processes(const struct contents *contents, const struct run_info *run,
                       struct buf *text, struct json *json, struct err *err);

#endif
