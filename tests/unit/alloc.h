/* SPDX-License-Identifier: MIT */
/*
 * Counts what the library allocates, and lets an allocation fail: for a program
 * that is linked with --wrap=malloc,--wrap=calloc.
 */
#ifndef SWIFTGIC_TESTS_UNIT_ALLOC_H
#define SWIFTGIC_TESTS_UNIT_ALLOC_H

#include <stddef.h>

static size_t allocations;
static size_t largest_allocation;
static size_t failing_allocation; /* the how manieth from now on; 0: none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);

static void alloc_reset(size_t failing)
{
	allocations = 0;
	largest_allocation = 0;
	failing_allocation = failing;
}

static int alloc_fails(size_t size)
{
	if (size > largest_allocation)
		largest_allocation = size;
	return ++allocations == failing_allocation;
}

void *__wrap_malloc(size_t size)
{
	return alloc_fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return alloc_fails(n * size) ? NULL : __real_calloc(n, size);
}

#endif
