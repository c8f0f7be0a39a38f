#!/bin/sh
# SPDX-License-Identifier: MIT
# What the agent's library asks of a target: glibc.sh LIBRARY. Nothing of glibc newer than 2.17, no
# other library, nothing exported but its entries.
library=$1
failed=0

fail() {
	echo "FAIL: $library: $*"
	failed=1
}

newest=$(objdump -T "$library" | grep -o 'GLIBC_[0-9][0-9.]*' | sort -uV | tail -n 1)
[ -n "$newest" ] || fail "objdump found no versions"
[ "$(printf '%s\n' "$newest" GLIBC_2.17 | sort -V | tail -n 1)" = GLIBC_2.17 ] ||
	fail "needs $newest: $(objdump -T "$library" | grep "$newest" | awk '{ print $NF }' | tr '\n' ' ')"

needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
	grep -Ev '^(libc|libdl|libpthread|ld-linux-(x86-64|aarch64))\.so' | tr '\n' ' ')
[ -z "$needed" ] || fail "needs $needed"

exported=$(nm -D --defined-only "$library" | awk '{ print $3 }' | sort | tr '\n' ' ')
[ "$exported" = "InitializeInjection InitializeInjectionNvtx2 cuscope_agent_enter cuscope_agent_walk " ] ||
	fail "exports $exported"

readelf -d "$library" | grep -q NODELETE || fail "can be unloaded while CUPTI calls it"

[ "$failed" -eq 0 ]
