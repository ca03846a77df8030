// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Intervals in which followed tasks do not run, reported when they are over. What a task that is not followed pays at each switch
 * and wake-up is the call of these programs and a load.
 *
 * A task has a record of its own here from its exec, its creation or the walk on; it is never made in the scheduler's hooks,
 * which hold the lock of a run queue and must not allocate. Compiled twice: with stacks, and without what they cost. */
#include "reason.bpf.h"
#include "../../bpf/interrupts.bpf.h"

struct off_state {
	/* Since when it does not run; 0 while it runs. */
	u64 since;
	/* When it was last woken after it ran; 0 for not at all. May be a moment before `since`: the waker need not wait for the
	 * task to have left its CPU. */
	u64 woken;
	/* Since when it runs or last ran, 0 before it was seen to run; and the clock of stolen time of its CPU then. */
	u64 runs_since;
	u64 stolen;
	/* When it stopped by the scheduler's clock, 0 where that is not known; and how long it had waited in run queues until then, by the
	 * kernel's count. */
	u64 clock;
	u64 run_delay;
	/* Where the last interval that was reported ends. */
	u64 reported_until;
	u32 waker_pid;
	u32 waker_tid;
	int syscall;
	u32 reason;
	/* The last reason that was a wait, for one that goes on. */
	u32 waited_for;
	/* Its call stack when it stopped. */
	u32 stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct off_state);
} waits SEC(".maps");

/* Less stolen time in one stay on a CPU is not reported: hypervisors interrupt often and shortly. */
#define SHORTEST_STOLEN_NS 20000ULL

static __always_inline struct off_state *off_of(struct task_struct *task)
{
	return has_storage(task) ? bpf_task_storage_get(&waits, task, 0, 0) : 0;
}

/* Time that the hypervisor took so far from the CPU that a task runs on, as of the scheduler's last look at the clock. */
static __always_inline u64 stolen_here(struct task_struct *task)
{
	struct rq *queue = queue_of(task);
	if (!queue || !bpf_core_field_exists(queue->prev_steal_time_rq))
		return 0;
	return queue->prev_steal_time_rq;
}

/* When the current task, which is about to stop, began to run: by the scheduler's own account, in its clock, of which both the
 * task's arrival and the time of this switch are known. 0 where it keeps none (CONFIG_SCHED_INFO). */
static __always_inline u64 arrival(struct task_struct *current, u64 now)
{
	struct rq *queue = queue_of(current);
	if (!queue || !bpf_core_field_exists(current->sched_info.last_arrival))
		return 0;
	return now - (queue->clock - current->sched_info.last_arrival);
}

/* When a task stops or goes on, by our clock and by the scheduler's; and how long it stood in run queues until then.
 *
 * The scheduler looks at its clock when it begins to switch, and not at all for a switch that follows a wake-up (rq_clock_skip_update):
 * the event of the switch is reported one to several microseconds later. What it counts, run times and waits, is by its own clock;
 * intervals that are to add up with these must be too. */
struct moment {
	u64 now;
	/* 0: not known. */
	u64 clock;
	/* NOT_KEPT: not known. */
	u64 run_delay;
};

/* Of a task that is about to run. The kernel adds to its count a moment later (sched_info_arrive in kernel/sched/stats.h), by
 * the same clock of which both ends are known here. */
static __always_inline struct moment moment_of_going_on(struct task_struct *task, u64 now)
{
	struct moment moment = { .now = now, .run_delay = NOT_KEPT };
	struct rq *queue = queue_of(task);
	if (!queue)
		return moment;
	moment.clock = queue->clock;
	if (bpf_core_field_exists(task->sched_info.last_queued)) {
		u64 queued = task->sched_info.last_queued;
		moment.run_delay = task->sched_info.run_delay + (queued ? queue->clock - queued : 0);
	}
	return moment;
}

/* More than this the two clocks do not drift apart in one interval, nor are they read apart, unless the scheduler's differs from
 * CPU to CPU. */
#define MOST_APART_NS 100000000LL

/* How long a task did not run. */
static __always_inline u64 away(struct off_state *state, struct moment *until)
{
	u64 by_event = until->now - state->since, by_clock = until->clock - state->clock;
	long long apart = by_clock - by_event;
	if (!until->clock || !state->clock || (long long)by_clock < 0 || apart > MOST_APART_NS || apart < -MOST_APART_NS)
		return by_event;
	return by_clock;
}

/* Whether the current task is the one that wakes. In an interrupt it is not, whoever was interrupted. What a task sends to a
 * socket of this machine is delivered by a softirq in its own context. */
static __always_inline bool wakes(struct task_struct *current)
{
	if (!current->pid)
		return false;
	u32 count = preempt_count(current);
	if (count & NMI_OR_HARDIRQ_MASK)
		return false;
	if (!(count & SERVING_SOFTIRQ))
		return true;
	enum wait_class class = class_of(call_of(current));
	return class == WAITS_STREAM || class == WAITS_SOCKET;
}

/* The kernel's account of a task. That of one which runs at this moment is as old as the scheduler's last look at it, a tick at
 * most. */
static __always_inline void emit_counters(struct task_struct *task, u64 now, u32 flags)
{
	struct thread_counters_event *event = reserve(EVENT_THREAD_COUNTERS, sizeof(*event), task);
	if (!event)
		return;
	event->header.flags = flags;
	event->header.ts = now;
	event->run_time = task->se.sum_exec_runtime;
	event->utime = task->utime;
	event->stime = task->stime;
	event->run_delay = bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : NOT_KEPT;
	if (bpf_probe_read_kernel_str(event->name, sizeof(event->name), task->comm) < 0)
		event->name[0] = 0;
	submit(event);
}

/* The interval as far as it goes. */
static __always_inline void tell(struct task_struct *task, struct off_state *state, struct moment *until, u32 flags)
{
	struct off_cpu_event *event = reserve(EVENT_OFF_CPU, sizeof(*event), task);
	if (!event)
		return;
	u32 reason = state->reason;
	u64 since = state->since, woken = state->woken, duration = away(state, until);
	/* The scheduler's clock stood at the begin when that was reported. */
	if (since + duration > until->now)
		since = until->now - duration;
	if (since < state->reported_until) {
		since = state->reported_until;
		duration = until->now > since ? until->now - since : 0;
	}
	state->reported_until = since + duration;
	u64 queued = until->run_delay == NOT_KEPT ? NOT_KEPT : until->run_delay - state->run_delay;
	bool waited = reason != OFF_RUNNABLE && reason != OFF_THROTTLED;
	/* Back without a wake-up, and in a queue all the time: a signal that was pending had kept it from waiting. If it was in none, the
	 * kernel has not reported the wake-up (6.18 in a sandbox: of one in some hundreds). */
	if (waited && !woken && queued >= duration && !(flags & FLAG_OPEN)) {
		reason = OFF_RUNNABLE;
		waited = false;
	}
	event->header.flags = flags;
	event->header.stack = state->stack;
	event->header.ts = since;
	event->duration = duration;
	event->reason = reason;
	event->syscall = state->syscall;
	event->waker_pid = event->waker_tid = 0;
	event->woken = 0;
	event->runnable = queued;
	if (waited && woken) {
		event->woken = woken > since ? woken : since;
		if (event->woken > since + duration)
			event->woken = since + duration;
		event->waker_pid = state->waker_pid;
		event->waker_tid = state->waker_tid;
	}
	if (waited && queued == NOT_KEPT)
		event->runnable = woken ? since + duration - event->woken : 0;
	if (!waited || event->runnable > duration)
		event->runnable = duration;
	submit(event);
}

static __always_inline void emit_stolen(struct task_struct *task, struct off_state *state, u64 now)
{
	u64 stolen = stolen_here(task) - state->stolen, ran = now - state->runs_since;
	if (!state->runs_since || stolen < SHORTEST_STOLEN_NS || (long long)stolen < 0)
		return;
	if (stolen > ran)
		stolen = ran;
	struct off_cpu_event *event = reserve(EVENT_OFF_CPU, sizeof(*event), task);
	if (!event)
		return;
	/* Anywhere in the stay; not at its end, which may be moved to where the scheduler's clock stood. */
	event->header.ts = state->runs_since;
	state->reported_until = state->runs_since + stolen;
	event->duration = stolen;
	event->runnable = event->woken = 0;
	event->reason = OFF_STOLEN;
	event->syscall = -1;
	event->waker_pid = event->waker_tid = 0;
	submit(event);
}

static __always_inline void stops(struct task_struct *task, struct off_state *state, u32 task_state, u64 now)
{
	int call = call_of(task);
	state->reason = reason_of(task, task_state, call, state->waited_for);
	/* Which call it is in is shown to those who may trace it (proc_pid_syscall(5)). */
	state->syscall = !owner_is_root() && is_withheld(task, state_of(task)) ? -1 : call;
	if (task_state && state->reason != OFF_STOPPED)
		state->waited_for = state->reason;
	state->since = now;
	state->clock = 0;
	/* While it runs, it stands in no queue. */
	state->run_delay = bpf_core_field_exists(task->sched_info.run_delay) ? task->sched_info.run_delay : 0;
}

/* In the scheduler's hook the task that stops is still the current one, and its memory is there. */
static __always_inline void stops_here(struct task_struct *task, struct off_state *state, u32 task_state, u64 now)
{
	stops(task, state, task_state, now);
	struct rq *queue = queue_of(task);
	if (queue)
		state->clock = queue->clock;
#ifdef WITH_STACKS
	state->stack = user_stack(state_of(task), 0);
#endif
}

static __always_inline struct off_state *follow(struct task_struct *task)
{
#ifdef WITH_STACKS
	prepare_walks(task);
#endif
	struct off_state *state = bpf_task_storage_get(&waits, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state)
		count_lost(EVENT_OFF_CPU, 1);
	return state;
}

/* A task that stops, and of which the kernel has not reported when it began to run. There are kernels (6.18 in a sandbox) that tell
 * no switch away from certain tasks, neither to this program nor to ftrace. */
static __always_inline void runs_unseen(struct task_struct *task, struct off_state *state, u64 now)
{
	u64 began = arrival(task, now);
	struct moment moment = moment_of_going_on(task, began);
	if (bpf_core_field_exists(task->sched_info.last_arrival))
		moment.clock = task->sched_info.last_arrival;
	if (began > state->since && began <= now)
		tell(task, state, &moment, 0);
	else
		count_lost(EVENT_OFF_CPU, 1);
	state->since = state->woken = 0;
	state->runs_since = began;
	state->stolen = stolen_here(task);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct off_state *state = off_of(next);
	if (state) {
		u64 now = bpf_ktime_get_ns();
		struct moment moment = moment_of_going_on(next, now);
		if (state->since)
			tell(next, state, &moment, 0);
		else if (state->runs_since)
			/* The kernel has not reported when it stopped. */
			count_lost(EVENT_OFF_CPU, 1);
		state->since = state->woken = 0;
		state->runs_since = now;
		state->stolen = stolen_here(next);
	}
	state = off_of(prev);
	if (state) {
		u64 now = bpf_ktime_get_ns();
		/* Nor when it ran again: the scheduler knows. */
		if (state->since)
			runs_unseen(prev, state, now);
		emit_stolen(prev, state, now);
		/* For good. What it did after its end was reported is in its account too: giving back its memory. */
		if (!preempted && prev_state & TASK_DEAD)
			emit_counters(prev, now, FLAG_COUNTERS_AT_END);
		stops_here(prev, state, preempted ? 0 : prev_state, now);
	}
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct off_state *state = off_of(task);
	if (!state)
		return 0;
	struct task_struct *current = bpf_get_current_task_btf();
	bool by_task = wakes(current);
	state->waker_pid = by_task ? current->tgid : 0;
	state->waker_tid = by_task ? current->pid : 0;
	state->woken = bpf_ktime_get_ns();
	return 0;
}

/* A new task waits for a CPU. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_new, struct task_struct *parent, struct task_struct *child)
{
	if (!off_of(parent))
		return 0;
	struct off_state *state = follow(child);
	if (!state)
		return 0;
	state->syscall = -1;
	state->reason = OFF_RUNNABLE;
	state->waited_for = OFF_KERNEL;
	state->since = bpf_ktime_get_ns();
	return 0;
}

/* What the launcher does in the target's process before its first exec is not the target's. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_first_exec, struct task_struct *task, int old_pid, struct linux_binprm *binary)
{
	if (!state_of(task) || off_of(task))
		return 0;
	struct off_state *state = follow(task);
	if (!state)
		return 0;
	state->waited_for = OFF_KERNEL;
	state->runs_since = bpf_ktime_get_ns();
	state->stolen = stolen_here(task);
	emit_counters(task, state->runs_since, 0);
	return 0;
}

/* Tasks that ran already when they began to be followed: what they wait for at that moment. */
SEC("iter/task")
int begin_waits(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	if (!task || task->exit_state || !state_of(task) || off_of(task))
		return 0;
	struct off_state *state = follow(task);
	if (!state)
		return 0;
	state->waited_for = OFF_KERNEL;
	u32 task_state = task->__state;
	u64 now = bpf_ktime_get_ns();
	/* One that is woken or dispatched at this moment begins with its next interval. */
	if (!task->on_cpu && !state->runs_since && !state->woken)
		stops(task, state, task_state, now);
	emit_counters(task, now, 0);
	return 0;
}

static __always_inline void emit_open(struct task_struct *task, struct off_state *state, u64 now)
{
	/* It was woken before it had stopped, went on, and waits still. */
	if (task->__state && state->woken < state->since)
		state->woken = 0;
	/* The clock of its queue may be old. */
	struct moment moment = { .now = now, .run_delay = NOT_KEPT };
	tell(task, state, &moment, FLAG_OPEN);
}

/* What is not over when recording ends. The task is followed no further: the other programs are there for a while yet. */
SEC("iter/task")
int end_waits(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	if (!task || task->exit_state)
		return 0;
	struct off_state *state = off_of(task);
	if (!state)
		return 0;
	u64 now = bpf_ktime_get_ns();
	if (state->since)
		emit_open(task, state, now);
	emit_counters(task, now, FLAG_COUNTERS_AT_END);
	bpf_task_storage_delete(&waits, task);
	return 0;
}
