# SPDX-License-Identifier: MIT
# make test-shipped        completions in real shells, manual pages, what is installed

test-shipped: $(B)/cuscope $(B)/agent/embedded.so programs simcuda simnvml
	+@MAKE='$(MAKE)' tests/shipped/check.py $(B)

.PHONY: test-shipped

# make test-debian         the packages on a Debian 12 with nothing else (root; takes minutes and a mirror)

test-debian: deb
	@tests/shipped/debian dist

.PHONY: test-debian

# make stress-machine      them on a machine of Debian 12 that boots, from their installation to their purge (root; takes many
#                          minutes, a mirror and qemu)

stress-machine: deb programs simcuda simnvml
	@tests/shipped/machine/run $(B) dist

stress: stress-machine

.PHONY: stress-machine
