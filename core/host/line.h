/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The line in which connections of the background wait in their host: one sends after the other, up to
 * 12 packets in a turn.
 *
 * A fair queue at the bottleneck (fq_codel: RFC 8290, 4.1) lets a packet pass before all others if none of its
 * connection waits there. Many connections that send single packets one after the other pass so with each, before
 * everybody else's, and none meets the queue that would tell of them (path.h: u). Packets of a turn
 * wait behind each other, as those of one connection do.
 *
 *	at	the place of a connection
 *	head	the last place that had its turn
 *	last	the last place that was given
 *	left	packets that whose turn it is may still send
 *	size	packets of a typical turn: the mean of the last 8 or so
 *
 *	join		comes, and is not in the line:	last += 1, at = last
 *	leave		a packet leaves. Not of whose turn it is: that turn ends, this one's begins;
 *			size += (12 - left - size) / 8, left = 12, head = at
 *			left -= 1;  0: the turn ends, and it joins again
 *	before		packets that leave before its first one: (at - head - 1) size + min(left, those that wait)
 *
 * A connection that has sent what waited keeps its turn until another one takes it: a transport sends more once
 * a packet has left. A host asks the one with the fewest packets before its own; where it cannot, it
 * lets each look when these may have left. So a place whose connection has gone holds up nobody for long.
 *
 * Range: places wrap; size is in sixteenths, and less than 13.
 */
#ifndef NN_LINE_H
#define NN_LINE_H

#include "../arith.h"

#define NN_LINE_TURN 12u
#define NN_LINE_SIZE 16		/* the unit of size is a packet / 16 */
#define NN_LINE_MAX (1u << 20)	/* places: more than there are connections */

/* All zero at first. */
struct nn_line {
	u64 turn;		/* whose turn it is */
	u32 left;		/* packets that it may still send */
	u32 waits;		/* packets of it that wait */
	u32 size;
	u32 head, last;
};

/* A connection in the line: all zero at first, but its id. */
struct nn_line_place {
	u64 id;
	u32 at;
	u32 waits;		/* its packets */
};

/* How many turns come before its own; NN_LINE_MAX or more: it has no place, or that was passed over. */
nn_inline u32 nn_line_turns(const struct nn_line *l, const struct nn_line_place *c)
{
	return c->at - l->head - 1;
}

nn_inline int nn_line_is_turn(const struct nn_line *l, const struct nn_line_place *c)
{
	return l->left && l->turn == c->id;
}

/* A packet of it comes. It gets a place, unless it has one that was not used yet, or its turn. */
nn_inline void nn_line_join(struct nn_line *l, struct nn_line_place *c)
{
	if (!c->waits && !nn_line_is_turn(l, c) && nn_line_turns(l, c) >= NN_LINE_MAX)
		c->at = ++l->last;
}

/* That packet waits. */
nn_inline void nn_line_wait(struct nn_line *l, struct nn_line_place *c)
{
	c->waits++;
	if (l->turn == c->id)
		l->waits = c->waits;
}

/* A packet of it leaves. `waited`: it was one of those that wait. */
nn_inline void nn_line_leave(struct nn_line *l, struct nn_line_place *c, int waited)
{
	c->waits -= waited && c->waits;
	if (!nn_line_is_turn(l, c)) {
		l->size += (NN_LINE_TURN - l->left) * NN_LINE_SIZE / 8 - l->size / 8;
		l->turn = c->id;
		l->left = NN_LINE_TURN;
		if (nn_line_turns(l, c) < NN_LINE_MAX)
			l->head = c->at;
	}
	l->waits = c->waits;
	if (!--l->left)
		c->at = ++l->last;
}

/* What waits of it was lost. */
nn_inline void nn_line_lose(struct nn_line *l, struct nn_line_place *c)
{
	c->waits = 0;
	if (l->turn == c->id)
		l->waits = 0;
}

/* How many packets leave before its first, about. */
nn_inline u32 nn_line_before(const struct nn_line *l, const struct nn_line_place *c)
{
	u32 turns = nn_line_turns(l, c);
	u64 size = nn_max(l->size, NN_LINE_SIZE); /* at least a packet */

	if (nn_line_is_turn(l, c))
		return 0;
	if (turns >= NN_LINE_MAX)
		turns = 0;
	return (u32)(turns * size / NN_LINE_SIZE + nn_min(l->left, l->waits));
}

#endif
