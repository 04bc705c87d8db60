// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Names and values of algorithms and parameters, and sentences for errors. No floats but constants. */
#include "lists.h"

#define FRACTION_MAX 9u		/* digits of a number that count behind its point */

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

int nn_is(const char *text, const char *name, size_t length)
{
	size_t i = 0;

	while (i < length && text[i] && text[i] == name[i])
		i++;
	return i == length && !text[i];
}

u32 nn_q16(double constant)
{
	return (u32)(constant * NN_ONE + 0.5);
}

const struct nn_algorithm *nn_named(const char *name)
{
	for (u32 i = 0; name && i < nn_n_algorithms; i++)
		if (same(nn_algorithms[i]->name, name))
			return nn_algorithms[i];
	return NULL;
}

/* The number that a text is, as Q16, rounded to nearest; more than any parameter has if it is too great. */
static int number(const char *text, u64 *value)
{
	u64 whole = 0, fraction = 0, unit = 1;
	u32 digits = 0, behind = 0;

	for (; *text >= '0' && *text <= '9'; text++, digits++)
		whole = nn_min(whole * 10 + (u64)(*text - '0'), 1ull << 32);
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++, digits++) {
			if (behind++ >= FRACTION_MAX)
				continue;
			fraction = fraction * 10 + (u64)(*text - '0');
			unit *= 10;
		}
	}
	if (*text || !digits)
		return NETNICE_E_SETTING;
	/* 33 + 16 bits; 30 + 17 bits */
	*value = whole * NN_ONE + (2 * fraction * NN_ONE + unit) / (2 * unit);
	return 0;
}

/* The choice that a text names, of "this|that", or the number that it is; as Q16. */
static int chosen(const char *unit, const char *text, u64 *value)
{
	u64 choice = 0;
	size_t length;
	int several = 0;

	for (const char *c = unit; *c; c++)
		several |= *c == '|';
	for (; several; unit += length + 1, choice++) {
		for (length = 0; unit[length] && unit[length] != '|'; length++)
			;
		if (nn_is(text, unit, length)) {
			*value = choice * NN_ONE;
			return 0;
		}
		if (!unit[length])
			break;
	}
	return number(text, value);
}

int nn_value_of(const struct nn_param *p, const char *text, u32 *value)
{
	u64 found = 0;
	int error = chosen(p->unit, text, &found);

	if (error)
		return error;
	if (found < nn_q16(p->least) || found > nn_q16(p->most))
		return NETNICE_E_RANGE;
	*value = (u32)found;
	return 0;
}

EXPORT const char *netnice_strerror(int error)
{
	switch (error) {
	case 0:
		return "no error";
	case NETNICE_E_ARGUMENT:
		return "a pointer is NULL or not aligned to 8 bytes, or a number is none that is known";
	case NETNICE_E_SIZE:
		return "the memory is smaller than netnice_flow_size() or netnice_group_size()";
	case NETNICE_E_ALGORITHM:
		return "there is no algorithm of that name; netnice_algorithm() lists them";
	case NETNICE_E_SETTING:
		return "a setting is NAME=NUMBER or NAME=CHOICE";
	case NETNICE_E_PARAMETER:
		return "the algorithm has no such parameter; netnice_parameter() lists them";
	case NETNICE_E_RANGE:
		return "the value is out of its range";
	case NETNICE_E_STATE:
		return "not now: initialise, start, then tell of ACKs, then close";
	case NETNICE_E_TIME:
		return "the time went backwards";
	case NETNICE_E_GROUP:
		return "the group's members have another algorithm, or it still has members; or the flow is one, "
		       "or its algorithm has no groups";
	}
	return "no error of this library";
}

EXPORT const char *netnice_algorithm(size_t index)
{
	return index < nn_n_algorithms ? nn_algorithms[index]->name : NULL;
}

EXPORT const char *netnice_class(const char *name)
{
	for (u32 i = 0; name && i < nn_n_classes; i++)
		if (same(nn_classes[i].name, name))
			return nn_classes[i].algorithm->name;
	return NULL;
}

EXPORT int netnice_parameter(const char *algorithm, size_t index, struct netnice_parameter *parameter)
{
	const struct nn_algorithm *a = nn_named(algorithm);

	if (!parameter)
		return NETNICE_E_ARGUMENT;
	if (!a)
		return NETNICE_E_ALGORITHM;
	if (index >= a->n_params)
		return NETNICE_E_PARAMETER;
	*parameter = (struct netnice_parameter){
		.name = a->params[index].name,
		.unit = a->params[index].unit,
		.help = a->params[index].help,
		.standard = nn_q16(a->params[index].def),
		.least = nn_q16(a->params[index].least),
		.most = nn_q16(a->params[index].most),
	};
	return 0;
}
