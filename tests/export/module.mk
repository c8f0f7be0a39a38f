# SPDX-License-Identifier: MIT
# make test-export         the golden traces in every format, read by other programs

test-export: $(B)/cuscope
	@tests/export/run --build $(B)

.PHONY: test-export
