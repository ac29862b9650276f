# SPDX-License-Identifier: MIT
# Makes swiftgic-snapshot(5), for scdoc, of docs/snapshot.md.

BEGIN {
	print "swiftgic-snapshot(5)\n"
	print "# NAME\n\nswiftgic-snapshot - the snapshots of the GICv3 state of a VM\n"
	print "# DESCRIPTION"
}

# Code becomes bold, and what means something to scdoc is escaped.
function text(s,    out, n, part, i)
{
	gsub(/\\/, "\\\\", s)
	n = split(s, part, "`")
	for (i = 1; i <= n; i++) {
		gsub(/[*_#]/, "\\\\&", part[i])
		out = out (i % 2 ? part[i] : "*" part[i] "*")
	}
	return out
}

function cells(line, mark, empty,    n, cell, i)
{
	gsub(/^\| *| *\|$/, "", line)
	n = split(line, cell, / *\| */)
	for (i = 1; i <= n; i++)
		print (i == 1 ? mark : ":") "[ " text(cell[i])
}

/^<!--/ || /^# / { next }
/^\| ---/ || /^\| -/ { next }
/^\|/ { cells($0, in_table ? "|" : "["); in_table = 1; next }
{ in_table = 0 }
/^## / { print "# " toupper(substr($0, 4)); next }
{ print text($0) }

END {
	print "\n# SEE ALSO\n\n*libswiftgic*(3), *swiftgic-show*(1), *swiftgic-diff*(1)"
}
