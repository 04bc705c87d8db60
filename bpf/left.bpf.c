// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Counts the processes that something moves out of a run's cgroup: a login session, a container
 * engine, systemd-run. What they open from then on is not in the background.
 *
 * The kernel tells of a move when it is done, and not where the process was before. So one of the
 * run is the process that entered it, and every process below one that is in it.
 */
#include "kernel.h"
#include "nearest.h"
#include "totals.h"

char _license[] SEC("license") = "Dual MIT/GPL";

#define GENERATIONS 16

const volatile struct nn_watched watched SEC(".rodata.watched");

static __s32 command;		/* the process that entered the run first; 0: none yet */

nn_inline int is_netnice(void)
{
	char comm[sizeof(watched.comm)];

	if (bpf_get_current_comm(comm, sizeof(comm)))
		return 0;
	for (u32 i = 0; i < sizeof(comm); i++)
		if (comm[i] != watched.comm[i])
			return 0;
	return 1;
}

/* The id of the run that a process is in. */
nn_inline u64 run_of(const struct task_struct *task)
{
	return nn_nearest_run((u64)BPF_CORE_READ(task, cgroups, dfl_cgrp));
}

/* Whether a process that is in the run no more was one of it. */
nn_inline int was_in(struct task_struct *task)
{
	if (BPF_CORE_READ(task, tgid) == command)
		return 1;
	for (int i = 0; i < GENERATIONS; i++) {
		task = BPF_CORE_READ(task, real_parent);
		if (run_of(task) == watched.run)
			return 1;
		if (BPF_CORE_READ(task, tgid) <= 1)
			break;
	}
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(nn_left, struct cgroup *to, const char *path, struct task_struct *leader)
{
	struct nn_totals *t = the_totals();
	u64 run;

	if (!t || BPF_CORE_READ(to, root, hierarchy_id)) /* of version 1 */
		return 0;
	run = run_of(leader);
	if (!command && run == watched.run)
		command = BPF_CORE_READ(leader, tgid);
	else if (run == watched.run || !was_in(leader))
		return 0;
	else if (run)
		__sync_fetch_and_add(&t->inner, 1);
	else if (!is_netnice())
		__sync_fetch_and_add(&t->left, 1);
	return 0;
}
