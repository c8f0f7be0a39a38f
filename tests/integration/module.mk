# SPDX-License-Identifier: MIT
# make test-integration    cuscope itself on the programs of tests/programs (root)

test-integration: $(B)/cuscope programs simcuda simnvml
	@tests/integration/run --build $(B)

.PHONY: test-integration
