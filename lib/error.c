// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "internal.h"

const char *sgic_version(void)
{
	return SGIC_VERSION;
}

static void __attribute__((format(printf, 4, 0)))
fill(struct sgic_error *error, enum sgic_step step, int err, const char *fmt,
     va_list ap)
{
	*error = (struct sgic_error){
		.err = err,
		.step = step,
		.vcpu = -1,
		.its = -1,
	};
	vsnprintf(error->message, sizeof(error->message), fmt, ap);
}

int sgic_fail(struct sgic_error *error, enum sgic_step step, int err,
	      const char *fmt, ...)
{
	va_list ap;

	if (error) {
		va_start(ap, fmt);
		fill(error, step, err, fmt, ap);
		va_end(ap);
	}
	return err;
}

int sgic_fail_errno(struct sgic_error *error, enum sgic_step step, int err,
		    const char *fmt, ...)
{
	size_t len;
	va_list ap;

	if (!error)
		return err;
	va_start(ap, fmt);
	fill(error, step, err, fmt, ap);
	va_end(ap);

	/* strerror() is not for programs with threads. */
	len = strlen(error->message);
	if (len + sizeof(": ") < sizeof(error->message)) {
		memcpy(error->message + len, ": ", sizeof(": "));
		len += strlen(": ");
		strerror_r(-err, error->message + len,
			   sizeof(error->message) - len);
	}
	return err;
}

int sgic_fail_reg(struct sgic_error *error, enum sgic_step step, int err,
		  const struct sgic_reg *reg, const char *what)
{
	char name[64];

	if (!error)
		return err;
	sgic_reg_name(reg, name, sizeof(name));
	sgic_fail_errno(error, step, err, "%s %s", what, name);
	if (sgic_reg_has_vcpu(reg))
		error->vcpu = reg->vcpu;
	if (sgic_reg_has_its(reg))
		error->its = reg->its;
	error->group = reg->group;
	error->attr = reg->attr;
	return err;
}
