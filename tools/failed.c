// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>

#include "swiftgic.h"

int failed(int status, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "swiftgic: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	return status;
}
