# SPDX-License-Identifier: MIT
# inject.json as tab-separated columns, for a mail: LPIs that are cached and
# pending, 60 vCPUs
["kernel", "path", "LPIs", "stock", "patched"],
([.rows[] | select(.vcpus == 60 and .state == "pending")] |
	group_by(.kernel, .path, .lpis)[] |
	(map({(.variant): .insns}) | add) as $insns |
	[.[0].kernel, .[0].path, .[0].lpis, ($insns.stock | round? // "-"),
		($insns.patched | round? // "-")])
| map(tostring) | @tsv
