# SPDX-License-Identifier: MIT
# make check-arm64: compiles everything for AArch64, eBPF programs included; links only the library for targets.

test-arm64 check-arm64:
	@MAKE='$(MAKE)' tests/arm64/run $(B)/arm64

.PHONY: check-arm64 test-arm64
