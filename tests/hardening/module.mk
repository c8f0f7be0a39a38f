# SPDX-License-Identifier: MIT
# make test-hardening    what compiler and linker were asked for, read back from what they made

test-hardening: $(B)/cuscope $(AGENT_SO) simnvml
	+@MAKE='$(MAKE)' tests/hardening/check.py $(B) dist/cuscope

.PHONY: test-hardening
