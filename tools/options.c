// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "options.h"
#include "regs.h"

bool parse_number(const char *s, unsigned long max, char **end, uint32_t *val)
{
	unsigned long n;

	if (*s < '0' || *s > '9')
		return false;
	n = strtoul(s, end, 0);
	*val = n;
	return n <= max;
}

bool parse_whole(const char *s, unsigned long max, uint32_t *val)
{
	char *end;

	return parse_number(s, max, &end, val) && !*end;
}

bool parse_irqs(const char *s, uint32_t *irqs)
{
	return parse_whole(s, SGIC_MAX_IRQS, irqs) && *irqs >= SGIC_MIN_IRQS &&
	       *irqs % 32 == 0;
}
