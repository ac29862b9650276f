# SPDX-License-Identifier: MIT
# What moving the VGIC state of a VM costs; bench/report.sh calls it
set terminal svg size 860,360 font 'sans-serif,12'
set output out
set multiplot layout 1,2
set logscale x 2
set logscale y 10
set xrange [0.8:640]
set yrange [1e5:1e10]
set format y '%.0s%c'
set xlabel 'vCPUs'
set ylabel 'instructions'
set key top left
set grid
set xtics (1, 4, 16, 64, 160, 512)
do for [direction in 'get put'] {
	data = direction eq 'get' ? get : put
	set title direction
	plot data using 1:2 with linespoints title 'one by one', \
	     data.'.proposal' using 1:2 with linespoints title 'posted proposal', \
	     data using 1:3 with linespoints title 'batch', \
	     data using 1:4 with lines dashtype 2 title 'handlers alone'
}
unset multiplot
