# SPDX-License-Identifier: MIT
# What injecting an LPI costs; bench/report.sh calls it. dir has a file for each
# kernel, named in kernels: mapped LPIs, then stock and patched, in instructions.
set terminal svg size 860,360 font 'sans-serif,12'
set output out
set logscale xy
set logscale x 2
set xrange [0.8:6000]
set yrange [500:50000]
set format y '%.0s%c'
set xlabel 'mapped LPIs'
set ylabel 'instructions an injection'
set key outside right
set grid
set xtics (1, 32, 256, 1024, 4096)
plot for [i=1:words(kernels)] sprintf('%s/%s', dir, word(kernels, i)) \
	using 1:2 with linespoints linecolor i dashtype 2 \
	title word(kernels, i).' stock', \
     for [i=1:words(kernels)] sprintf('%s/%s', dir, word(kernels, i)) \
	using 1:3 with linespoints linecolor i linewidth 2 \
	title word(kernels, i).' patched'
