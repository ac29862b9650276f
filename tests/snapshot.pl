#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# usage: tests/snapshot.pl DOCUMENT SNAPSHOT
# A reader of snapshots that knows docs/snapshot.md and nothing of the library:
# prints "group attr value" of each register, a line each, if the snapshot is
# what the document, whose table of columns it reads, says of it.

use strict;
use warnings;

my ($document, $path) = @ARGV;
sub slurp {
	open(my $f, '<:raw', $_[0]) or die "$_[0]: $!\n";
	local $/;
	return <$f>;
}

# The checksum, as the document defines it
my @crc_table = map {
	my $c = $_;
	$c = $c & 1 ? $c >> 1 ^ 0xedb88320 : $c >> 1 for 1 .. 8;
	$c;
} 0 .. 255;

sub crc32 {
	my $c = 0xffffffff;
	$c = $crc_table[($c ^ $_) & 255] ^ $c >> 8 for unpack('C*', $_[0]);
	return $c ^ 0xffffffff;
}
die "the document's check value\n" if crc32('123456789') != 0xcbf43926;

# Header
my $data = slurp($path);
my ($magic, $version, $size, $vcpus, $irqs, $its, $pri_bits, $lrs, $flags, $crc)
	= unpack('a8 V V v v v C C V V', $data);
die "magic\n" if $magic ne pack('H*', '89534749430d0a1a');
die "version\n" if $version != 1;
die "header's checksum\n" if $crc != crc32(substr($data, 0, 28));
die "size\n" if $size != length($data);
die "checksum\n"
	if unpack('V', substr($data, -4)) != crc32(substr($data, 0, -4));

# MPIDRs
my @mpidrs = unpack("Q<$vcpus", substr($data, 32));
my @above = map {
	(($_ >> 32 & 0xff) << 24 | $_ & 0xffffff) << 32;
} @mpidrs;

# The document's table, for this machine
my %counts = (
	N => $irqs / 32 - 1,
	A => 1 << ($pri_bits - 5),
	L => $lrs,
);
my %conditions = (
	'' => 1,
	LPIs => $flags & 1,
	EL2 => $flags & 2,
	ITSs => $its,
);
my @expected;
for (split /\n/, slurp($document)) {
	my ($name, $group, $words, $attr, $step, $width, $scope, $if) =
		/^\| (\w.*?) \| (\d+) \| (\w+) \| (0x\w+) \| (\d+) \| ([48]) \| ([012]) \| (\w*) ?\|$/
		or next;
	next unless $conditions{$if};
	$words =~ s/^(\d*)([NAL])$/($1 || 1) * $counts{$2}/e;
	$step = 0 if $words == 1;
	push @expected, [$group, $words, hex($attr), $step, $width, $scope];
}

# Columns
my $at = 32 + 8 * $vcpus;
while ($at < $size - 4) {
	my @head = unpack('v v V v C C', substr($data, $at, 12));
	my ($group, $words, $attr, $step, $width, $scope) = @head;
	my $expected = shift @expected or die "a column too many\n";
	die "column '@head', not '@$expected'\n" if "@head" ne "@$expected";
	$at += 12;
	my $owners = (1, $vcpus, $its)[$scope];
	my @values = unpack(($width == 8 ? 'Q<' : 'V') . $owners * $words,
		substr($data, $at));
	$at += $owners * $words * $width;
	for my $owner (0 .. $owners - 1) {
		for my $word (0 .. $words - 1) {
			my $full = $attr + $word * $step;
			$full |= $above[$owner] if $scope == 1;
			$full |= $above[0] if $scope == 0 && $group == 7;
			printf "%d 0x%x 0x%0*x\n", $group, $full, 2 * $width,
				$values[$owner * $words + $word];
		}
	}
}
die "columns missing\n" if @expected;
die "the columns end beyond the checksum\n" if $at != $size - 4;
