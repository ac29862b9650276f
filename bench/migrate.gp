# SPDX-License-Identifier: MIT
# What the downtime of a live migration consists of; bench/report.sh calls it. data
# has a line for a bar: its name, then in ms what the source takes for the VGIC, the
# vCPUs and the rest, what the destination takes for the VGIC, the vCPUs and the rest.
set terminal svg size 860,260 font 'sans-serif,12'
set output out
set datafile separator "\t"
set style data boxes
set style fill solid 0.8 border -1
set yrange [-0.6:1.6]
set xrange [0:]
set xlabel 'ms, on the source and then on the destination'
set ytics ()
set key outside right
set grid xtics
names = 'VGIC,source;vCPUs,source;rest,source;VGIC,destination;vCPUs,destination;rest,destination'
from(i) = i == 2 ? 0 : sum [c=2:i-1] column(c)
plot for [i=2:7] data using (0):0:(from(i)):(from(i) + column(i)):($0 - 0.3):($0 + 0.3):ytic(1) \
	with boxxyerror linecolor i title system("echo '".names."' | cut -d';' -f".(i - 1)." | tr , ' '")
