/* SPDX-License-Identifier: MIT */
/*
 * The rows of nsys_tables as Parquet files in a folder, TABLE.parquet each: the other kind of
 * struct database. Several of them, one for each rank, share what they hold in memory: when that is
 * much, the table that holds most gets a row group. Private to src/output.
 */
#pragma once

#include "base/new_folder.h"
#include "output/sqlite/database.h"

struct parquet_share;

struct parquet_share *parquet_share_new(void);
void parquet_share_free(struct parquet_share *share); /* after all that share it */

/* Of which `folder` and `share` stay the caller's; freed by database_close(). */
struct database *parquet_tables_new(struct new_folder *folder, struct parquet_share *share);
