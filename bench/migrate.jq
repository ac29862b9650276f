# SPDX-License-Identifier: MIT
# migrate.json as tab-separated columns, for a mail: medians in milliseconds
def median: sort | if length == 0 then null else .[length / 2 | floor] end;
def of($variant; $key): [.runs[] | select(.kernel == $variant and
	.source == $variant and .destination == $variant) | .[$key]] | median;
def less(a; b): if a and b then "\((1 - b / a) * 1000 | round / 10) %"
	else "-" end;
["", "before", "after", "less"],
(. as $all |
	(["downtime", "downtime_ms"], ["source, VGIC get", "source_get_ms"],
		["destination, VGIC put", "destination_put_ms"]) as [$name, $key] |
	$all | of("stock"; $key) as $a | of("patched"; $key) as $b |
	[$name, $a, $b, less($a; $b)])
| map(tostring) | @tsv
