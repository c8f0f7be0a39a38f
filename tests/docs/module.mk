# SPDX-License-Identifier: MIT
# make test-docs           the pages in docs/ against what the program says

test-docs: $(B)/cuscope
	@tests/docs/check.py $(B)/cuscope

.PHONY: test-docs
