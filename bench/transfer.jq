# SPDX-License-Identifier: MIT
# transfer.json as tab-separated columns, for a mail
def m: if . == null then "-" else . / 1e6 * 1000 | round / 1000 end;
["vCPUs", "dir", "registers", "one by one", "batch", "ratio"],
(.rows[] | [.vcpus, .direction, .registers, (.one_by_one_insns | m),
	(.batch_insns | m),
	(if .one_by_one_insns and .batch_insns
	 then .one_by_one_insns / .batch_insns * 10 | round / 10 else "-" end)])
| map(tostring) | @tsv
