/* SPDX-License-Identifier: (GPL-2.0 OR MIT) */
/* A map as libbpf wants it described: of BPF_MAP_TYPE_`kind`, of so many rows at most. */
#pragma once

#define MAP(kind, rows, of_key, of_value)                                                          \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_##kind);                                                 \
		__uint(max_entries, rows);                                                         \
		__type(key, of_key);                                                               \
		__type(value, of_value);                                                           \
	}
