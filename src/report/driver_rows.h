/* SPDX-License-Identifier: MIT */
/* Tables of what functions of the driver tell: of their own reports, and of the report `kernel`. */
#pragma once

#include <stdbool.h>

#include "analysis/xids.h"
#include "table/table.h"
#include "trace/event.h"

#define MANAGED_COLUMNS 8
#define XID_COLUMNS     8

extern const struct table_column managed_columns[MANAGED_COLUMNS], xid_columns[XID_COLUMNS];

/* The rows of a table that was begun, with their notes; how many there are. */
size_t managed_rows_write(struct table *table, struct consumer *managed_use);
size_t xid_rows_write(struct table *table, const struct xids *xids);
